"""Placeholders in an index, and the removal of those that crashed writers left."""

from dataclasses import dataclass
from typing import NamedTuple

from shinglefold.contracts.engine import JSON, Engine, Guard, GuardedWrites
from shinglefold.grouping.gate.opening import concrete_index
from shinglefold.grouping.gate.protocol.member import DONE, GateFields, now
from shinglefold.model.stored_fingerprint import PENDING, placeholder_query
from shinglefold.rerank.hits import check_complete

#: The most placeholders read at once.
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder that reserves an id and routing; its lease expires at ``until``, in milliseconds."""

    id: str
    routing: str | None
    until: int
    guard: Guard

    @property
    def expired(self) -> bool:
        """Whether the lease has expired: the writer died or stalled."""
        return self.until < now()

    def to_json(self) -> JSON:
        """Return the placeholder as JSON."""
        data: JSON = {"_id": self.id, "until": self.until, "left": self.expired}
        return data if self.routing is None else {**data, "_routing": self.routing}


def placeholders(engine: Engine, index: str, field: str) -> list[Placeholder]:
    """Return the placeholders in an index, at most 1,000; none on an embedded engine."""
    if not isinstance(engine, GuardedWrites):
        return []
    concrete, pending = concrete_index(engine, index), f"{field}.{PENDING}"
    engine.refresh(concrete)
    order = {pending: {"order": "asc", "unmapped_type": "long"}}
    body = {"query": placeholder_query(field), "size": _PAGE, "sort": [order], "_source": False}
    body |= engine.can.unaltered
    hits = check_complete(engine.search(concrete, body, engine.can.newest))["hits"]["hits"]
    routings = [hit.get("_routing") for hit in hits]
    stored = engine.read(concrete, [hit["_id"] for hit in hits], [pending], routings)
    gate_fields = GateFields(field)
    return [
        Placeholder(document.id, routing, until, document.guard)
        for routing, document in zip(routings, stored, strict=True)
        if document is not None and (until := gate_fields.pending(document.source)) is not None
    ]


class SweepResult(NamedTuple):
    """The placeholders that were removed, and the reasons why others were not."""

    removed: tuple[Placeholder, ...] = ()
    reasons: tuple[str, ...] = ()


def sweep(engine: Engine, index: str, field: str) -> SweepResult:
    """Remove placeholders left by crashed writers, each under its guard.

    If the writer only stalled, it finds its placeholder missing and decides about the document again.
    """
    if not isinstance(engine, GuardedWrites):
        return SweepResult()
    removed: list[Placeholder] = []
    concrete = concrete_index(engine, index)
    while expired := [one for one in placeholders(engine, concrete, field) if one.expired]:
        results = engine.write([_deletion(concrete, one) for one in expired])
        gone = [one for one, result in zip(expired, results, strict=True) if result.status == DONE]
        removed += gone
        if not gone:
            return SweepResult(tuple(removed), tuple(dict.fromkeys(result.reason for result in results)))
    return SweepResult(tuple(removed))


def _deletion(index: str, placeholder: Placeholder) -> JSON:
    guard = {"if_seq_no": placeholder.guard.seq_no, "if_primary_term": placeholder.guard.primary_term}
    action = {"_op_type": "delete", "_index": index, "_id": placeholder.id, **guard}
    return action if placeholder.routing is None else {**action, "routing": placeholder.routing}
