"""Makes fingerprints of texts as ``sign`` does, but with all supershingles of the scheme."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from shinglefold.documents import values_at
from shinglefold.errors import ConfigError, shorten
from shinglefold.ingest.field_statistics import FieldWatch
from shinglefold.ingest.fingerprinter import FingerprintArrays
from shinglefold.ingest.readers.jsonl import WHOLE
from shinglefold.ingest.readers.read import format_of, read
from shinglefold.ingest.readers.record import ReadOptions, Record
from shinglefold.ingest.writing.dead_letters import is_bare_letter
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import facts_number, text_digest
from shinglefold.offline.dedupe.decode import TaskAnswer
from shinglefold.offline.dedupe.fingerprint_table import (
    DIGEST,
    DIGESTED,
    SIGNED,
    FingerprintBlock,
    id_columns,
    with_facts,
)
from shinglefold.offline.sign.signer import ParsedLine, Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import (
    LineRange,
    RowGroup,
    Task,
    known_size,
    read_lines,
    record_of,
    record_tasks,
    source_tasks,
)

#: The most values of a field that are shown.
_VALUES = 20


class TextReader:
    """Fingerprints the texts of tasks.

    Args:
        watched: the field that the user named for languages, to warn if no document has it; else empty.
        shown: fields to keep of each document, as far as it has them.
    """

    def __init__(
        self, scheme: Scheme, options: SignOptions, watched: str = "", shown: Sequence[str] = ()
    ) -> None:
        self.options = options.reading
        self._shown = shown
        self._signer = Signer(scheme, options)
        self._watch = FieldWatch(options.fields, language=watched, facts=options.never_differ.fields)

    def warm(self, sources: Sequence[str], lexicon_file: str) -> None:
        """Load dictionaries, known words and compiled code (if it pays): forked workers share them."""
        tools = self._signer.tools
        if lexicon_file:
            tools.canonicalizer.lexicon.load(lexicon_file)
        # A character takes a byte or two; markup and names of fields are extra.
        tools.fingerprinter.expect(known_size(sources) // 2)
        tools.warm()

    def __call__(self, task: Task) -> TaskAnswer:
        """Return the fingerprints of a task."""
        assert not isinstance(task, RowGroup)
        found = read_lines(task, self.options.max_bytes)
        records = list(self._records(found))
        left_out = [(one.source, one.line, one.reason) for one in records if one.document is None]
        lines = [
            ParsedLine(one.document, None, one.source, one.line)
            for one in records
            if one.document is not None
        ]
        tally = SignTally()
        kept, texts, languages = self._signer.texts(lines, tally)
        left_out += [(one.source, one.line, reason) for _, reason, one in tally.refused]
        facts = self._signer.facts(texts, kept)
        made = self._signer.tools.fingerprinter.fingerprint_arrays(texts, languages, facts)
        blocks = [replace(_block(made, kept), shown=list(self._shown_fields(made, kept)))] if kept else []
        left_out.sort(key=lambda one: one[1])
        return TaskAnswer(blocks, found.count, left_out, seen=self._watch_fields(lines))

    def _records(self, found: LineRange) -> Iterator[Record]:
        options = replace(self.options, encoding=found.encoding)
        yield from found.refused
        yield from filter(None, (record_of(line, found.source, options) for line in found.lines))

    def _shown_fields(self, made: FingerprintArrays, lines: Sequence[ParsedLine]) -> Iterator[bytes]:
        """Yield the fields of documents that are shown, and the language they were read in."""
        if not self._shown:
            return
        for line, language in zip(lines, made.languages, strict=True):
            short = {
                name: [shorten(one) if isinstance(one, str) else one for one in found[:_VALUES]]
                for name in self._shown
                if (found := values_at(line.document, name))
            }
            yield json.dumps([language, short], default=str).encode()

    def _watch_fields(self, lines: Sequence[ParsedLine]) -> FieldWatch:
        """Return the fields of documents, and the documents to add to the sample of all tasks."""
        before = len(self._watch.sample)
        found = replace(self._watch, documents=0)
        for line in lines:
            found.add(line.document)
        self._watch = replace(found, sample=list(found.sample))
        return replace(found, sample=found.sample[before:])


def _block(made: FingerprintArrays, lines: Sequence[ParsedLine]) -> FingerprintBlock:
    digested = np.array([bool(one) for one in made.digests])
    digests = np.zeros((len(lines), DIGEST), np.uint8)
    decoded = urlsafe_b64decode("".join(map(text_digest, made.digests)))
    digests[digested] = np.frombuffer(decoded, np.uint8).reshape(-1, DIGEST)
    facts = np.array([facts_number(one) for one in made.digests], np.uint64)
    ids = [line.document.get("_id") for line in lines]
    texts = made.texts
    return FingerprintBlock(
        made.supershingles,
        np.where(made.valid[:, None], made.signatures, np.uint8(0)),
        made.shingles,
        with_facts(digests, facts),
        (made.valid * SIGNED | digested * DIGESTED).astype(np.uint8),
        *id_columns([None if one is None else str(one) for one in ids]),
        [line.source for line in lines],
        np.array([line.line for line in lines], np.int64),
        [] if texts is None else list(texts.written.bytes_of()),
        [] if texts is None else list(texts.canonical.bytes_of()),
        facts if facts.any() else None,
    )


def text_tasks(sources: Sequence[str], options: ReadOptions, prefixes: Mapping[int, str]) -> Iterator[Task]:
    """Return an iterator over the tasks of all sources, in order.

    Args:
        prefixes: prefixes of the ids of pages, by the number of their source.

    Raises:
        InputError: a source does not exist.
        ConfigError: its format is not known; or, while it is read, it holds dead letters.
    """
    own = [replace(options, prefix=prefixes.get(number, "")) for number in range(len(sources))]
    # Open all sources before the first is read, so that a mistyped name fails at once.
    streams = [read(source, one) for source, one in zip(sources, own, strict=True)]
    return _tasks(sources, streams, own)


def _tasks(
    sources: Sequence[str],
    streams: Sequence[Iterator[Record]],
    options: Sequence[ReadOptions],
) -> Iterator[Task]:
    for number, (source, records, own) in enumerate(zip(sources, streams, options, strict=True)):
        for task in _source_tasks(source, records, own):
            yield replace(task, fraction=(number + task.fraction) / len(sources))


def _source_tasks(source: str, records: Iterator[Record], options: ReadOptions) -> Iterator[Task]:
    first = next(records, None)
    if first is None:
        return
    if first.document is not None and is_bare_letter(first.document):
        raise ConfigError(f"{first.source} holds dead letters, not documents")
    if not Path(source).is_file() or format_of(source, options) != "jsonl":
        yield from record_tasks(source, chain([first], records))
    elif first.reason.startswith(WHOLE):
        # The source is JSON, but not one object a line.
        yield LineRange(first.source, (), "utf-8", 1.0, (first,))
    else:
        yield from source_tasks(source, options)
