"""Signs the documents of a task: returns their lines with fingerprints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document
from shinglefold.documents import put
from shinglefold.errors import InputError, ProcessorError
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.processors.context import Tools
from shinglefold.ingest.processors.texts import (
    NeverDiffer,
    declared_language,
    joined_text,
    with_joined_lists,
    without_markup,
)
from shinglefold.ingest.readers.jsonl import check_keys
from shinglefold.ingest.readers.record import ReadOptions, Record, to_document
from shinglefold.ingest.readers.streams import Line
from shinglefold.model.recipe import FIELD, LANGUAGE, check_field
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.offline.sign.parquet_file import encode_special
from shinglefold.offline.sign.tasks import ByteRange, LineRange, read_lines, read_range, record_of

if TYPE_CHECKING:
    from shinglefold.offline.sign.fast_path import FastPath

#: The number of sampled documents in which warnings look for other fields with text.
_SAMPLE = 200


@dataclass(frozen=True, slots=True)
class SignOptions:
    """Which texts are signed, and what is written.

    ``fields``: fields of the texts. ``language_field``: field of the language. ``html``: every document is
    HTML, else only those whose ``format`` is ``html``; a ``title`` never is. ``only_ids``: write only the id
    and the fingerprint. ``target``: field of the fingerprint. ``never_differ``: what copies must have in
    common; a hash of it is stored with the digest.
    """

    fields: tuple[str, ...]
    language_field: str = LANGUAGE
    html: bool = False
    only_ids: bool = False
    target: str = FIELD
    reading: ReadOptions = field(default_factory=ReadOptions)
    never_differ: NeverDiffer = field(default_factory=NeverDiffer)

    def __post_init__(self) -> None:
        check_field("field", self.target, self.fields)


@dataclass(slots=True)
class SignTally:
    """The result of a task without its lines.

    ``refused``: failed documents, with stage and reason. ``lines``: lines that begin in a range. ``size``:
    bytes of the part. ``present``: fields that some document has. ``sample``: a few documents of the first
    task. ``held``: the part is in memory until its position is known. ``placed``: it is in the output.
    ``problem``: why there is no part; ``unwritten``: the errno where writing failed.
    """

    signed: int = 0
    lines: int = 0
    size: int = 0
    refused: list[tuple[str, str, Record]] = field(default_factory=list)
    meter: Meter = field(default_factory=Meter)
    present: set[str] = field(default_factory=set)
    sample: list[Mapping[str, Any]] = field(default_factory=list)
    held: bool = False
    placed: bool = False
    problem: str = ""
    unwritten: int = 0


class ParsedLine(NamedTuple):
    """A document and where it was read; ``head``: its line without the closing brace, None to encode it."""

    document: Document
    head: bytes | None
    source: str
    line: int

    @property
    def record(self) -> Record:
        """The document as a record, to report a failure."""
        return Record(self.document, self.source, self.line)


class Signer:
    """Signs tasks under one scheme.

    Args:
        seal: seals the fingerprints; None leaves them without a seal.
    """

    def __init__(
        self,
        scheme: Scheme,
        options: SignOptions,
        canonicalizer: Canonicalizer | None = None,
        seal: Seal | None = None,
    ) -> None:
        self.tools = Tools(scheme, canonicalizer or Canonicalizer.of(scheme), seal=seal)
        self.options = options
        self._decode = msgspec.json.Decoder().decode
        self._encode = msgspec.json.Encoder(enc_hook=encode_special).encode
        self._simple = "." not in options.target
        self._named = options.only_ids or bool(options.reading.id_field)
        self._fast: FastPath | None = None
        self._flat = not any("." in name for name in options.fields)
        usual = options.language_field == LANGUAGE
        named = () if usual else (options.language_field,)
        self._watched = (*options.fields, *named, *options.never_differ.fields)

    def signed_lines(
        self, task: ByteRange | LineRange, tally: SignTally, sample: bool = False
    ) -> Sequence[bytes | memoryview]:
        """Return the lines of a task with their fingerprints, as pieces to be joined.

        Args:
            sample: put a few documents into the tally.
        """
        if (
            isinstance(task, ByteRange)
            and task.encoding == "utf-8"
            and not sample
            and (fast := self.fast_path())
        ):
            return self._signed_fast(fast, task, tally)
        read = read_lines(task, self.options.reading.max_bytes)
        tally.lines = read.count
        return [piece for _, pieces in self._sign_lines(read, tally) for piece in pieces]

    def fast_path(self) -> "FastPath | None":
        """Return the compiled signer of plain lines; None if options or missing code exclude it."""
        options, tools = self.options, self.tools
        looked_at = options.html or options.only_ids or options.reading.id_field or tools.seal is not None
        looked_at = looked_at or bool(options.never_differ)
        if self._fast is None and tools.fingerprinter.is_compiled and not looked_at:
            from shinglefold.offline.sign.fast_path import FastPath
            from shinglefold.offline.sign.json_scanner import FieldNames

            names = FieldNames.of(options.fields, options.language_field, options.target)
            if names is not None:
                self._fast = FastPath(tools, names, options.target, options.reading.max_bytes)
        return self._fast

    def _signed_fast(
        self, fast: "FastPath", task: ByteRange, tally: SignTally
    ) -> Sequence[bytes | memoryview]:
        from shinglefold.offline.sign.fast_path import in_order

        data, begin, end, last = read_range(task, self.options.reading.max_bytes)
        found = fast.sign(data, begin, end)
        odd = found.odd if last is None else [*found.odd, last._replace(number=found.lines + 1)]
        tally.lines = found.lines + (last is not None)
        tally.signed += len(found.signed)
        names = (*self.options.fields, self.options.language_field)
        there = {name for name, has in zip(names, found.present, strict=True) if has}
        tally.present |= there.intersection(self._watched)
        tally.meter.add(self.tools.meter.take())
        rest = LineRange(task.source, tuple(odd), task.encoding, task.fraction)
        others = dict(self._sign_lines(rest, tally)) if odd else {}
        return list(in_order(found, others))

    def _sign_lines(self, read: LineRange, tally: SignTally) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Yield the line numbers of signed documents, and their lines with fingerprints as pieces."""
        tally.refused += [("read", record.reason, record) for record in read.refused]
        tally.meter.counts["replaced"] += read.replaced
        for one, fingerprint in self.sign_documents(list(self._documents(read, tally)), tally):
            yield one.line, self.line_of(one, fingerprint, tally)

    def sign_documents(self, plain: Sequence[ParsedLine], tally: SignTally) -> list[tuple[ParsedLine, bytes]]:
        """Return the documents that have a text, each with its fingerprint as JSON."""
        self._record_fields(plain, tally)
        kept, texts, languages = self.texts(plain, tally)
        made = list(zip(kept, self.fingerprint_json(texts, languages, self.facts(texts, kept)), strict=True))
        tally.meter.add(self.tools.meter.take())
        return made

    def texts(
        self, plain: Sequence[ParsedLine], tally: SignTally
    ) -> tuple[list[ParsedLine], list[str], list[str | None]]:
        """Return the documents without those that fail, their texts, and their declared languages."""
        texts: list[str] = []
        languages: list[str | None] = []
        kept: list[ParsedLine] = []
        for one in plain:
            try:
                texts.append(self._joined_text(one.document))
            except ProcessorError as error:
                tally.refused.append(("sign", str(error), one.record))
                continue
            languages.append(self._language(one.document))
            kept.append(one)
        return kept, texts, languages

    def facts(self, texts: Sequence[str], kept: Sequence[ParsedLine]) -> list[str] | None:
        """Return the facts of documents and their texts; None if nothing needs to be equal."""
        return self.options.never_differ.facts(texts, [one.document for one in kept])

    def fingerprint_json(
        self, texts: Sequence[str], languages: Sequence[str | None], facts: Sequence[str] | None = None
    ) -> list[bytes]:
        """Return the fingerprint of each text as JSON.

        Args:
            facts: those of each document, from ``facts``.
        """
        seal = self.tools.seal
        if seal is None:
            return self.tools.fingerprinter.fingerprint_json(texts, languages, facts)
        made = self.tools.fingerprinter.fingerprint(texts, languages, facts)
        return [self._encode(seal.sealed(one).to_field()) for one in made]

    def _language(self, document: Document) -> str | None:
        name = self.options.language_field
        if name not in document and "." not in name:
            return None
        return declared_language(document, name, None, self.tools)

    def _joined_text(self, document: Document) -> str:
        try:
            return self._text(document)
        except ProcessorError:
            # Files have no pipeline that could join lists of texts.
            return self._text(with_joined_lists(document, self.options.fields))

    def _text(self, document: Document) -> str:
        options = self.options
        document = without_markup(document, options.fields, always=options.html)
        if self._flat:
            texts = [one for name in options.fields if (one := document.get(name)) is not None]
            if all(type(one) is str for one in texts):
                return "\n".join(texts)
        return joined_text(document, options.fields, True) or ""

    def _record_fields(self, plain: Sequence[ParsedLine], tally: SignTally) -> None:
        """Record in a tally which fields documents have, and a sample of the documents."""
        heads = {name: name.partition(".")[0] for name in self._watched}
        absent = set(heads.values())
        for one in plain:
            # Usually the first document has all fields.
            if not absent:
                break
            absent -= {name for name in absent if one.document.get(name) is not None}
        tally.present |= {name for name, head in heads.items() if head not in absent}
        tally.sample = tally.sample or [one.document for one in plain[:_SAMPLE]]

    def _documents(self, read: LineRange, tally: SignTally) -> Iterator[ParsedLine]:
        """Yield the documents of lines; parse a line like ``read`` if it can't be kept as it is."""
        spliced = read.encoding == "utf-8" and self._simple and not read.named
        for line in read.lines:
            found = self._kept_line(line, read) if spliced else None
            if found is None:
                found = self._parsed_line(line, read, tally)
            if found is not None:
                yield found

    def _kept_line(self, line: Line, read: LineRange) -> ParsedLine | None:
        """Return a document whose line can be kept and appended to; None for any other."""
        raw = line.raw.strip()
        try:
            value = self._decode(raw)
            check_keys(raw, value)
            document = value if self._is_simple(value) else to_document(value, self.options.reading.id_field)
        except (ValueError, RecursionError, InputError, msgspec.MsgspecError):
            return None
        target = self.options.target
        if not value or "_source" in value or any([key.startswith(target) for key in value]):  # noqa: C419
            return None
        return ParsedLine(document, raw[:-1], line.file or read.source, line.number)

    def _is_simple(self, value: Any) -> bool:  # noqa: ANN401 - JSON
        """Return whether a value is a document of strings only, without an empty id.

        ``to_document`` would accept it, and only add the ``_id``.
        """
        if type(value) is not dict or self._named:
            return False
        return all([type(one) is str for one in value.values()]) and "" not in (  # noqa: C419
            value.get("id"),
            value.get("_id"),
        )

    def _parsed_line(self, line: Line, read: LineRange, tally: SignTally) -> ParsedLine | None:
        record = record_of(line, read.source, replace(self.options.reading, encoding=read.encoding))
        if record is None:
            return None
        tally.meter.counts["replaced"] += record.replaced
        if record.document is None:
            tally.refused.append(("read", record.reason, record))
            return None
        bare = without_fingerprint(record.document, self.options.target)
        if bare is not record.document:
            if reason := overwrite_refusal(record.document, self.options.target):
                tally.refused.append(("read", reason, record))
                return None
            tally.meter.counts["fingerprints_left_out"] += 1
        given = b'"_id"' in line.raw and not read.named
        kept = bare if given or self.options.only_ids else self.as_given(bare)
        return ParsedLine(kept, None, record.source, record.line)

    def as_given(self, document: Document) -> Document:
        """Return a document without the ``_id`` that the reader added."""
        own = document.get(self.options.reading.id_field or "id")
        if own is None or str(own) != document.get("_id"):
            return document
        return {name: value for name, value in document.items() if name != "_id"}

    def line_of(self, one: ParsedLine, fingerprint: bytes, tally: SignTally) -> tuple[bytes, ...]:
        """Return the line of a document with its fingerprint, as pieces; none if it fails."""
        target = self.options.target
        if self.options.only_ids:
            if not self.has_id(one, tally):
                return ()
            document: Document = {"_id": one.document["_id"]}
        elif one.head is not None:
            tally.signed += 1
            return one.head, b',"%b":' % target.encode(), fingerprint, b"}\n"
        else:
            document = one.document
        try:
            whole = put(document, target, msgspec.Raw(fingerprint))
        except ProcessorError as error:
            tally.refused.append(("sign", str(error), one.record))
            return ()
        tally.signed += 1
        return self._encode(whole), b"\n"

    def has_id(self, one: ParsedLine, tally: SignTally) -> bool:
        """Return whether a document has an id, and count it as failed if it has none."""
        if one.document.get("_id") is not None:
            return True
        reason = "no id: name the field that has it with --id-field, or leave --only-ids out"
        tally.refused.append(("sign", reason, one.record))
        return False
