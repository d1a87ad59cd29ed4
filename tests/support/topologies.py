"""Documents laid out as production has them: many shards, several indices, equal ids, aliases, data streams.

A test that must hold everywhere takes ``NAMES`` as its parameters::

    @pytest.mark.parametrize("topology", NAMES)
    def test_a_walk_meets_every_document_once(engine, server, topology):
        with laid_out(topology, engine, server, ranked(pages(300)), mappings(scheme)) as place:
            answer = engine.search(place.target, {"size": 1000})
            assert sorted(map(place.number, answer["hits"]["hits"])) == list(range(300))

What a server has not (a data stream, a second node for replicas, anything but one shard in the embedded
engine) skips with its reason.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.error import HTTPError

import pytest
from support.servers.server import Server

from shinglefold.contracts.engine import JSON, Engine

#: Three documents in a row share an ``_id`` where a topology has equal ids.
_WAYS = 3


class Identity(NamedTuple):
    """What names one document: an ``_id`` is unique in an index and routing only."""

    index: str
    id: str
    routing: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Documents in an engine, and how they are asked for.

    Args:
        target: what a search, a backfill or a doctor is given: an index, an alias or a data stream.
        indices: the indices behind it.
        identities: of each document, in the order given; ``documents[n]`` is ``identities[n]``.
        appends_only: the target takes new documents alone (``_op_type`` ``create``), as data streams do.
    """

    engine: Engine
    target: str
    indices: tuple[str, ...]
    documents: tuple[JSON, ...]
    identities: tuple[Identity, ...]
    appends_only: bool = False
    _numbers: dict[Identity, int] = field(default_factory=dict, repr=False)

    def number(self, hit: Mapping[str, Any]) -> int:
        """Return which of the documents a hit is; a hit that is none of them fails the test."""
        identity = Identity(hit["_index"], hit["_id"], hit.get("_routing", ""))
        if not self._numbers:
            self._numbers.update((identity, number) for number, identity in enumerate(self.identities))
        assert identity in self._numbers, f"{identity} is no document that {self.target} shows"
        return self._numbers[identity]

    def action(self, number: int, **more: Any) -> JSON:
        """Return a bulk action for a document, by default one that writes it again."""
        identity = self.identities[number]
        action: JSON = {"_index": identity.index, "_id": identity.id, **more}
        if identity.routing:
            action["_routing"] = identity.routing
        if action.get("_op_type", "index") == "index":
            action.setdefault("_source", self.documents[number])
        return action


def ranked(documents: Sequence[Mapping[str, Any]]) -> list[JSON]:
    """Return documents with a field ``rank`` to sort by: many ties, and every fourth document has none."""
    return [
        dict(document) if number % 4 == 3 else {**document, "rank": number % 5}
        for number, document in enumerate(documents)
    ]


@contextmanager
def laid_out(
    topology: str,
    engine: Engine,
    server: Server | None,
    documents: Sequence[Mapping[str, Any]],
    mappings: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Place]:
    """Lay documents out, refreshed, and remove them afterwards; skip where the server has no such thing.

    Args:
        topology: one of ``NAMES``.
        server: None for the embedded engine.
        documents: what is stored; the topology gives them their ``_id`` (``number(hit)`` finds them again).
        mappings: of the documents; what the topology needs (``visible``, ``@timestamp``, ``rank``) is added.
        settings: of each index, over the topology's own.
    """
    sources = tuple({key: value for key, value in one.items() if key != "_id"} for one in documents)
    work = _Work(engine, server, f"shinglefold-topology-{uuid.uuid4().hex[:12]}", dict(mappings or {}))
    work.settings = dict(settings or {})
    try:
        yield _LAYOUTS[topology](work, sources)
    finally:
        work.clear()


@dataclass(slots=True)
class _Work:
    """One layout in the making: what it is named after, and what must be removed."""

    engine: Engine
    server: Server | None
    name: str
    mappings: JSON
    settings: JSON = field(default_factory=dict)
    indices: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None) -> JSON:
        if self.server is None:
            pytest.skip("the embedded engine has one index of one shard")
        return self.server.ask(method, path, body)

    def index(self, suffix: str = "", shards: int = 1, replicas: int = 0, **properties: JSON) -> str:
        if shards > 1 and self.server is None:
            pytest.skip("the embedded engine has one index of one shard")
        name = self.name + suffix
        own = {"number_of_shards": shards, "number_of_replicas": replicas}
        self.engine.create_index(name, self.mapped(**properties), {**own, **self.settings})
        self.indices.append(name)
        return name

    def mapped(self, **properties: JSON) -> JSON:
        more = {"rank": {"type": "integer"}, **properties}
        return {**self.mappings, "properties": {**self.mappings.get("properties", {}), **more}}

    def alias(self, **more: Any) -> str:
        name = f"{self.name}-alias"
        adds = [{"add": {"index": index, "alias": name, **more}} for index in self.indices]
        self.ask("POST", "/_aliases", {"actions": adds})
        return name

    def place(
        self, target: str, sources: Sequence[JSON], identities: Sequence[Identity], **more: Any
    ) -> Place:
        """Write the documents where they belong and return the place."""
        place = Place(self.engine, target, tuple(self.indices), tuple(sources), tuple(identities), **more)
        self.write(place.action(number) for number in range(len(place.documents)))
        return place

    def write(self, actions: Iterator[JSON]) -> None:
        result = self.engine.bulk(actions)
        assert not result.failures, result.failures[0]
        for index in self.indices:
            self.engine.refresh(index)

    def clear(self) -> None:
        for path in self.others:
            self.ask("DELETE", path)
        for index in self.indices:
            if self.engine.index_exists(index):
                self.engine.delete_index(index)


def _one_shard(work: _Work, sources: Sequence[JSON]) -> Place:
    """One index of one shard: what everything else must agree with."""
    return _plainly(work, sources, work.index())


def _five_shards(work: _Work, sources: Sequence[JSON]) -> Place:
    """One index of five shards."""
    return _plainly(work, sources, work.index(shards=5))


def _replicas(work: _Work, sources: Sequence[JSON]) -> Place:
    """Two shards with a copy of each on another node."""
    if work.ask("GET", "/_cluster/health")["number_of_data_nodes"] < 2:
        pytest.skip("one node has no place for replicas; the fixture cluster has three")
    index = work.index(shards=2, replicas=1)
    work.ask("GET", f"/_cluster/health/{index}?wait_for_status=green&timeout=60s")
    return _plainly(work, sources, index)


def _plainly(work: _Work, sources: Sequence[JSON], index: str) -> Place:
    return work.place(index, sources, [Identity(index, f"d{number}") for number in range(len(sources))])


def _three_indices(work: _Work, sources: Sequence[JSON]) -> Place:
    """Three indices of two shards behind an alias, three documents in a row with one ``_id``."""
    for suffix in "abc":
        work.index(f"-{suffix}", shards=2)
    numbers = range(len(sources))
    places = [Identity(work.indices[number % _WAYS], f"d{number // _WAYS}") for number in numbers]
    return work.place(work.alias(), sources, places)


def _equal_ids_under_routing(work: _Work, sources: Sequence[JSON]) -> Place:
    """One index of five shards, three documents in a row with one ``_id``, each under its own routing."""
    index = work.index(shards=5)
    routings: dict[int, str] = {}
    for number in range(100):
        # Two routings that lead to one shard would let the second document replace the first.
        found = work.ask("GET", f"/{index}/_search_shards?routing=r{number}")
        routings.setdefault(found["shards"][0][0]["shard"], f"r{number}")
        if len(routings) == _WAYS:
            break
    ways = list(routings.values())
    numbers = range(len(sources))
    places = [Identity(index, f"d{number // _WAYS}", ways[number % _WAYS]) for number in numbers]
    return work.place(index, sources, places)


def _filtered_alias(work: _Work, sources: Sequence[JSON]) -> Place:
    """An alias that hides a copy of every document: whatever shows one of those has ignored the filter."""
    index = work.index(shards=3, visible={"type": "boolean"})
    target = work.alias(filter={"term": {"visible": True}})
    hidden = [{**source, "visible": False} for source in sources]
    work.write(
        {"_index": index, "_id": f"hidden{number}", "_source": source} for number, source in enumerate(hidden)
    )
    shown = [{**source, "visible": True} for source in sources]
    return work.place(target, shown, [Identity(index, f"d{number}") for number in range(len(shown))])


def _data_stream(work: _Work, sources: Sequence[JSON]) -> Place:
    """A data stream of three generations of two shards, three documents in a row with one ``_id``."""
    name, path = work.name, f"/_data_stream/{work.name}"
    _template(work, name)
    work.ask("PUT", path)
    work.others[:0] = [path]
    stamped = [
        {"@timestamp": f"2026-01-01T00:00:{number % 60:02}Z", **one} for number, one in enumerate(sources)
    ]
    places: list[Identity] = [Identity("", "")] * len(stamped)
    for way in range(_WAYS):
        if way:
            work.ask("POST", f"/{name}/_rollover")
        index = work.ask("GET", path)["data_streams"][0]["indices"][-1]["index_name"]
        for number in range(way, len(stamped), _WAYS):
            places[number] = Identity(index, f"d{number // _WAYS}")
        work.write(
            {"_op_type": "create", "_index": name, "_id": places[number].id, "_source": stamped[number]}
            for number in range(way, len(stamped), _WAYS)
        )
    work.engine.refresh(name)
    indices = tuple(dict.fromkeys(place.index for place in places))
    return Place(work.engine, name, indices, tuple(stamped), tuple(places), appends_only=True)


def _template(work: _Work, name: str) -> None:
    body = {
        "index_patterns": [name],
        "data_stream": {},
        "priority": 500,
        "template": {
            "mappings": work.mapped(**{"@timestamp": {"type": "date"}}),
            "settings": {"number_of_shards": 2, "number_of_replicas": 0, **work.settings},
        },
    }
    try:
        work.ask("GET", "/_data_stream")
        work.ask("PUT", f"/_index_template/{name}", body)
    except HTTPError as error:
        pytest.skip(f"this server has no data streams ({error.code})")
    work.others.append(f"/_index_template/{name}")


_LAYOUTS: Mapping[str, Callable[[_Work, Sequence[JSON]], Place]] = {
    "one_shard": _one_shard,
    "five_shards": _five_shards,
    "three_indices": _three_indices,
    "equal_ids_under_routing": _equal_ids_under_routing,
    "filtered_alias": _filtered_alias,
    "data_stream": _data_stream,
    "replicas": _replicas,
}
#: Every topology; ``replicas`` needs the fixture ``cluster``.
NAMES = tuple(_LAYOUTS)
