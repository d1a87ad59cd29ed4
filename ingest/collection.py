"""A collection without an index: the fingerprints of its texts, made by worker processes, into columns."""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from shinglefold.contracts import Document
from shinglefold.ingest import Outcome, Pipeline, Record
from shinglefold.ingest.blocks import RAW_BUDGET, blocks, weight
from shinglefold.ingest.fingerprint import Beside
from shinglefold.ingest.linking.prints import DIGEST, DIGESTED, SIGNED, Block, Prints, named
from shinglefold.ingest.linking.shelf import State
from shinglefold.ingest.linking.stages import Pause
from shinglefold.ingest.processors.supershingle import FingerprintBeside
from shinglefold.ingest.writing.interrupts import Interrupts
from shinglefold.ingest.writing.workers import process_blocks
from shinglefold.scheme import Scheme
from shinglefold.sketch import packed_size

#: The field fingerprints travel in; text fields stay behind.
_FIELD = "dedup"


def pipeline_for(scheme: Scheme, fields: Sequence[str], language_field: str, html: bool) -> Pipeline:
    """Return the pipeline that leaves nothing of a document but its fingerprint, and what stands beside it.

    Args:
        html: every document is HTML; else those whose ``format`` says so. A field ``title`` never is.
    """
    condition: dict[str, Any] = {} if html else {"if": "ctx.format == 'html'"}
    strip = [
        {"html_strip": {"field": name, "ignore_missing": True, "keep_hidden": True, **condition}}
        for name in fields
        if name != "title"
    ]
    beside = {"fields": list(fields), "target_field": _FIELD, "language_field": language_field}
    definition = {
        "processors": [
            *strip,
            {FingerprintBeside.type: beside},
            {"remove": {"field": list(fields), "ignore_missing": True}},
        ]
    }
    return Pipeline.from_json(definition, scheme, processors={FingerprintBeside.type: FingerprintBeside})


class Made(NamedTuple):
    """How many records were read so far, and the share of the sources that is."""

    records: int
    fraction: float


def collect(  # noqa: PLR0917 - what it reads, by what, and into what
    records: Iterable[Record],
    pipeline: Pipeline,
    wanted: Sequence[str],
    workers: int,
    prints: Prints,
    begun: int,
    progress: Callable[[Made, bool], None],
) -> int:
    """Add the fingerprints of all documents to columns, and return how many records were read.

    Args:
        wanted: fields the pipeline needs; the others do not travel to the workers.
        workers: processes; 0 means one per core.
        begun: records that an earlier run took; they are passed over.
        progress: told how far it is, and whether it is time for a note.
    """
    pending: list[list[Record]] = []
    read, pause = begun, Pause()

    def documents() -> Iterator[list[Document]]:
        made = blocks(islice(records, begun, None), lambda record: weight(record.document), RAW_BUDGET)
        while True:
            with interrupts.breakable():
                block = next(made, None)
            if block is None:
                return
            interrupts.check()
            pending.append(block)
            yield [_only(record.document, wanted) for record in block if record.document is not None]

    with (
        Interrupts() as interrupts,
        closing(process_blocks(pipeline, documents(), workers, check=interrupts.check)) as answers,
    ):
        for answer in answers:
            block = pending.pop(0)
            _take(prints, block, answer.outcomes)
            read += len(block)
            progress(Made(read, block[-1].fraction), pause.over())
        interrupts.check()
    return read


def _only(document: Document, wanted: Sequence[str]) -> Document:
    return {name: document[name] for name in wanted if name in document}


def _take(prints: Prints, block: Sequence[Record], outcomes: Sequence[Outcome]) -> None:
    made = iter(outcomes)
    kept: list[tuple[Record, Beside]] = []
    for record in block:
        place = f"{record.source}:{record.line}"
        if record.document is None:
            prints.failures.add(f"{place}: {record.reason}")
            continue
        outcome = next(made)
        if outcome.document is None:
            prints.failures.add(f"{place}: {outcome.failure.reason if outcome.failure else 'dropped'}")
        else:
            kept.append((record, outcome.document[_FIELD]))
    if kept:
        prints.add(_block(prints, kept))


def _block(prints: Prints, kept: Sequence[tuple[Record, Beside]]) -> Block:
    sketch = prints.scheme.sketch
    found = [beside for _, beside in kept]
    flags = [SIGNED * bool(one.made.signature) | DIGESTED * bool(one.made.digest) for one in found]
    blank, none = bytes(packed_size(sketch.values, sketch.bits)), bytes(DIGEST)
    ids = [(record.document or {}).get("_id") for record, _ in kept]
    texts = prints.has_texts
    return Block(
        np.frombuffer(b"".join(one.supershingles for one in found), np.uint64).reshape(len(found), -1),
        _rows(one.made.signature or blank for one in found),
        np.array([one.made.shingles for one in found], np.int64),
        _rows(urlsafe_b64decode(one.made.digest) or none for one in found),
        np.array(flags, np.uint8),
        *named([None if name is None else str(name) for name in ids]),
        [record.source for record, _ in kept],
        np.array([record.line for record, _ in kept], np.int64),
        [one.written for one in found] if texts else (),
        [one.canonical for one in found] if texts else (),
        np.array([one.facts for one in found], np.uint64)
        if prints.scheme.decision.facts == "numbers"
        else None,
    )


def _rows(found: Iterable[bytes]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    parts = list(found)
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), -1)


def state_of(made: Made, prints: Prints, done: bool) -> State:
    """Return how far the columns are, as it is noted."""
    return {"records": made.records, "done": done, **prints.state()}
