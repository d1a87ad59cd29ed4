"""A collection without an index: fingerprints by worker processes, then all pairs and groups at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shinglefold.contracts import Document
from shinglefold.ingest import Pipeline, Record
from shinglefold.ingest.blocks import RAW_BUDGET, blocks, weight
from shinglefold.ingest.columns import Columns
from shinglefold.ingest.fingerprint import Beside
from shinglefold.ingest.processors.beside import FingerprintBeside
from shinglefold.ingest.writing.interrupts import Interrupts
from shinglefold.ingest.writing.workers import process_blocks
from shinglefold.scheme import Scheme
from shinglefold.sketch import Pairs, connected, find_pairs, led, packed_size

#: The field fingerprints travel in; text fields stay behind.
_FIELD = "dedup"


@dataclass(slots=True)
class Collection:
    """Documents by their fingerprints.

    ``ids`` and ``prints`` in the order read. ``failures``: why documents are missing, with where they stood.
    """

    ids: list[str] = field(default_factory=list)
    prints: Columns = field(default_factory=Columns)
    failures: list[str] = field(default_factory=list)
    #: Documents whose id came before; theirs here is told apart by where they stood.
    equal_ids: int = 0
    _seen: set[str] = field(default_factory=set)

    def add(self, name: str, place: str, found: Beside) -> None:
        """Add a document."""
        if name in self._seen:
            self.equal_ids += 1
            name = f"{name} ({place})"
        self._seen.add(name)
        self.ids.append(name)
        self.prints.add(found)


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


def collect(
    records: Iterable[Record],
    pipeline: Pipeline,
    wanted: Sequence[str],
    workers: int,
    progress: Callable[[float, str], None],
) -> Collection:
    """Return the fingerprints of all documents.

    Args:
        wanted: fields the pipeline needs; the others do not travel to the workers.
        workers: processes; 0 means one per core.
    """
    collection = Collection()
    pending: list[list[Record]] = []

    def documents() -> Iterator[list[Document]]:
        made = blocks(_readable(records, collection), lambda record: weight(record.document), RAW_BUDGET)
        while True:
            with interrupts.breakable():
                block = next(made, None)
            if block is None:
                return
            interrupts.check()
            pending.append(block)
            yield [_only(record.document or {}, wanted) for record in block]

    with (
        Interrupts() as interrupts,
        closing(process_blocks(pipeline, documents(), workers, check=interrupts.check)) as answers,
    ):
        for answer in answers:
            block = pending.pop(0)
            for record, outcome in zip(block, answer.outcomes, strict=True):
                _take(collection, record, outcome.document, outcome.failure)
            progress(block[-1].fraction, f"{len(collection.ids):,} documents")
        interrupts.check()
    return collection


def _readable(records: Iterable[Record], collection: Collection) -> Iterator[Record]:
    for record in records:
        if record.document is None:
            collection.failures.append(f"{record.source}:{record.line}: {record.reason}")
        else:
            yield record


def _only(document: Document, wanted: Sequence[str]) -> Document:
    return {name: document[name] for name in wanted if name in document}


def _take(collection: Collection, record: Record, document: Document | None, failure: Any) -> None:  # noqa: ANN401
    if document is None:
        reason = failure.reason if failure is not None else "dropped"
        collection.failures.append(f"{record.source}:{record.line}: {reason}")
        return
    place = f"{record.source}:{record.line}"
    named = str((record.document or {}).get("_id", place))
    collection.add(named, place, document[_FIELD])


def folding_pairs(collection: Collection, scheme: Scheme) -> Pairs:
    """Return every pair the scheme folds, by place, in the order read."""
    prints = collection.prints
    return find_pairs(
        prints.supershingles,
        prints.signatures(packed_size(scheme.sketch.values, scheme.sketch.bits)),
        prints.shingles,
        prints.digests,
        scheme.sketch,
        scheme.decision,
        prints.valid,
        prints.texts() if scheme.decision.verify == "text" else None,
    )


def folding_groups(collection: Collection, scheme: Scheme, linkage: str) -> list[list[int]]:
    """Return every group the scheme folds by places, each in the order read, single documents too.

    Args:
        linkage: ``connected``: chains of pairs are one group; ``leader``: each member matches the first.
    """
    if not collection.prints:
        return []
    pairs = folding_pairs(collection, scheme)
    firsts = (led if linkage == "leader" else connected)(pairs.a, pairs.b, len(collection.prints))
    order = np.argsort(firsts, kind="stable")
    cuts = np.flatnonzero(np.diff(firsts[order])) + 1
    return [places.tolist() for places in np.split(order, cuts)]
