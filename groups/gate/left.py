"""Places in an index that gates keep for documents they decide on, and those that the dead have left."""

from dataclasses import dataclass
from typing import NamedTuple

from shinglefold.contracts.engine import JSON, Engine, Guard, GuardedWrites
from shinglefold.groups.gate.mapped import concrete_index
from shinglefold.groups.gate.protocol.placeholders import Forms
from shinglefold.groups.gate.protocol.requests import DONE
from shinglefold.groups.gate.stores.server import now
from shinglefold.model.stored_fingerprint import PENDING, placeholder_query

#: Places looked at together.
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """A place that a gate keeps: for a document of this id and routing, until a time in milliseconds."""

    id: str
    routing: str | None
    until: int
    guard: Guard

    @property
    def left(self) -> bool:
        """Whether the lease is over, so that who kept it died, or has stood still for longer."""
        return self.until < now()

    def to_json(self) -> JSON:
        """Return it as JSON."""
        told: JSON = {"_id": self.id, "until": self.until, "left": self.left}
        return told if self.routing is None else {**told, "_routing": self.routing}


def places(engine: Engine, index: str, field: str) -> list[Place]:
    """Return the places that gates keep in an index, at most 1,000; none where one process writes.

    Raises:
        EngineError: the engine can't tell.
        ConfigError: the name means several indices.
    """
    if not isinstance(engine, GuardedWrites):
        return []
    concrete, pending = concrete_index(engine, index), f"{field}.{PENDING}"
    engine.refresh(concrete)
    order = {pending: {"order": "asc", "unmapped_type": "long"}}
    body = {"query": placeholder_query(field), "size": _PAGE, "sort": [order], "_source": False}
    body |= engine.can.unaltered
    hits = engine.search(concrete, body, engine.newest)["hits"]["hits"]
    named = [(hit["_id"], hit.get("_routing")) for hit in hits]
    held = engine.read(concrete, [id_ for id_, _ in named], [pending], [routing for _, routing in named])
    forms = Forms(field)
    return [
        Place(one.id, routing, until, one.guard)
        for (_, routing), one in zip(named, held, strict=True)
        if one is not None and (until := forms.pending(one.source)) is not None
    ]


class Swept(NamedTuple):
    """The places that were removed, and why others were not."""

    removed: tuple[Place, ...] = ()
    reasons: tuple[str, ...] = ()


def sweep(engine: Engine, index: str, field: str) -> Swept:
    """Remove the places that the dead have left, each under its guard.

    A writer that only stood still begins again with that document.
    """
    if not isinstance(engine, GuardedWrites):
        return Swept()
    removed: list[Place] = []
    concrete = concrete_index(engine, index)
    while found := [place for place in places(engine, concrete, field) if place.left]:
        written = engine.write([_drop(concrete, place) for place in found])
        gone = [place for place, one in zip(found, written, strict=True) if one.status == DONE]
        removed += gone
        if not gone:
            return Swept(tuple(removed), tuple(dict.fromkeys(one.reason for one in written)))
    return Swept(tuple(removed))


def _drop(index: str, place: Place) -> JSON:
    guard = {"if_seq_no": place.guard.seq_no, "if_primary_term": place.guard.primary_term}
    sent = {"_op_type": "delete", "_index": index, "_id": place.id, **guard}
    return sent if place.routing is None else {**sent, "routing": place.routing}
