"""Random searches whose pages must be those that folding the complete list gives, and who disturbs them.

How many were made is told by a line a layout (``support.servers.lines``).
"""

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.hits import SCHEME, Spec, fingerprint_of, match
from support.topologies import Identity, Place, ranked

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse, duplicates

COUNT = 90
_SORTS: tuple[Any, ...] = (
    None,
    [{"rank": "asc"}],
    {"rank": {"order": "desc"}},
    [{"rank": {"order": "asc", "missing": "_first"}}, "_score"],
    ["_score", {"number": "desc"}],
)
_QUERIES: tuple[JSON, ...] = (
    {"match_all": {}},
    {"match": {"body": "a"}},
    {"match": {"body": "b c"}},
    {"bool": {"filter": [{"term": {"list": 1}}]}},
)


@dataclass(frozen=True)
class Trial:
    """A search to make, chosen by its seed."""

    body: JSON
    options: FoldOptions
    size: int
    by_cursor: bool

    @classmethod
    def of(cls, seed: int) -> "Trial":
        rng = random.Random(seed)
        body: JSON = {"query": rng.choice(_QUERIES), "_source": ["number"]}
        if (sort := rng.choice(_SORTS)) is not None:
            body["sort"] = sort
        options = FoldOptions(
            window=rng.choice([5, 17, 40, 200]),
            members=1000,
            explain=rng.random() < 0.2,
            min_shared=rng.choice([None, None, None, 1]),
        )
        return cls(body, options, rng.randrange(1, 30), rng.random() < 0.6)


def specs(seed: int) -> list[Spec]:
    """Documents to make: copies of few originals, about the threshold, some of them without a signature."""
    rng = random.Random(seed)
    return [
        Spec(
            original=rng.randrange(30),
            changed=rng.choice([0, 10, 30, 55, 60, 64]),
            seed=rng.randrange(1000),
            digest=rng.choice(["", "", "", f"digest{rng.randrange(8)}"]),
            signed=rng.random() > 0.1,
        )
        for _ in range(COUNT)
    ]


def documents(made: list[Spec]) -> list[JSON]:
    """The documents, with ties in all they are sorted by."""
    rng = random.Random(len(made))
    return ranked(
        [
            {
                "number": number,
                "list": number % 3,
                "body": " ".join(rng.choices("abc", k=rng.randrange(1, 5))),
                "_dedup": fingerprint_of(spec).to_field(),
            }
            for number, spec in enumerate(made)
        ]
    )


def properties() -> JSON:
    made = mappings(SCHEME)
    made["properties"] |= {
        "number": {"type": "integer"},
        "list": {"type": "integer"},
        "body": {"type": "text"},
    }
    return made


def run_trials(engine: Engine, place: Place, first: int, count: int) -> None:
    """Make trials with the seeds from ``first`` on."""
    for seed in range(first, first + count):
        _check(engine, place, seed)


def _complete(engine: Engine, place: Place, trial: Trial, settled: bool) -> list[JSON]:
    """Return all hits in the order that is promised, with their fingerprints."""
    body = {**trial.body, "size": 1000, "_source": ["number", "_dedup"], "track_total_hits": True}
    if settled:
        keys = body.get("sort") or ["_score"]
        body["sort"] = [*(keys if isinstance(keys, list) else [keys]), {"_seq_no": "asc"}]
    hits: list[JSON] = engine.search(place.target, body)["hits"]["hits"]
    return hits


def _pages(folded: FoldedSearch, place: Place, trial: Trial) -> Iterator[JSON]:
    """Yield every page, by cursor or by from and size."""
    body = {**trial.body, "size": trial.size}
    if trial.by_cursor:
        yield from folded.pages(place.target, body, trial.options)
        return
    start = 0
    while True:
        answer = folded.search(place.target, {**body, "from": start}, trial.options)
        yield answer
        start += trial.size
        if len(answer["hits"]["hits"]) < trial.size:
            return


def _check(engine: Engine, place: Place, seed: int) -> None:
    trial = Trial.of(seed)
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    one_shard = engine.search(place.target, {"size": 0})["_shards"]["total"] == 1
    settled = engine.can.seq_no and (trial.by_cursor or not one_shard)
    hits = _complete(engine, place, trial, settled)
    groups = collapse(hits, SCHEME, trial.options).groups
    expected = [[place.number(hits[member]) for member in group.members] for group in groups]
    found = []
    for answer in _pages(folded, place, trial):
        told = answer["dedup"]
        assert told["vanished"] == 0, seed
        assert told["order"] == ("_seq_no" if settled else "engine"), seed
        assert told["groups"] + told["folded"] == told["window"], seed
        found += [[place.number(hit), *map(place.number, duplicates(hit))] for hit in answer["hits"]["hits"]]
    assert [group[0] for group in found] == [group[0] for group in expected], f"seed {seed}: {trial}"
    if not trial.by_cursor and trial.options.window >= COUNT:
        assert found == expected, f"seed {seed}: {trial}"
    assert told["groups_total"] == {"value": len(expected), "relation": "eq"}, f"seed {seed}: {trial}"


def walk_disturbed(engine: Engine, place: Place, made: list[Spec], first: int, count: int) -> None:
    """Walk by cursor while others write and delete: no document, and no group, is shown twice."""
    with Disturbed(engine, place, first):
        for seed in range(first, first + count):
            _check_walk(engine, place, made, seed)


def _check_walk(engine: Engine, place: Place, made: list[Spec], seed: int) -> None:
    trial = Trial.of(seed)
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    shown: list[tuple[Identity, int]] = []
    for answer in folded.pages(place.target, {**trial.body, "size": trial.size}, trial.options):
        told = answer["dedup"]
        assert told["groups"] + told["folded"] <= told["window"], seed
        for hit in answer["hits"]["hits"]:
            own = Identity(hit["_index"], hit["_id"], hit.get("_routing", ""))
            shown.append((own, hit["_source"]["number"]))
    assert len(set(shown)) == len(shown), f"seed {seed}: {trial}"
    shared = trial.options.min_shared or 0
    pairs = [(a, b) for at, (_, b) in enumerate(shown) for _, a in shown[:at]]
    twice = [(a, b) for a, b in pairs if match(made[a], made[b], shared=shared)]
    assert not twice, f"seed {seed}: {trial}"


class Disturbed:
    """Writes documents again, or copies of them where none may be written again, and deletes some."""

    def __init__(self, engine: Engine, place: Place, seed: int) -> None:
        self._engine, self._place, self._rng = engine, place, random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._written = 0
        self.failed: list[object] = []

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        assert not self.failed
        assert self._written, "nobody wrote meanwhile"

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                numbers = self._rng.sample(range(COUNT), 8)
                deleted = self._place.action(numbers[0], _op_type="delete")
                result = self._engine.bulk([deleted, *map(self._write, numbers[1:])])
                # What is gone already can't be deleted again.
                self.failed += [one for one in result.failures if one.status != 404]
                self._written += result.indexed
                self._engine.refresh(self._place.target)
        except BaseException as error:
            self.failed.append(error)

    def _write(self, number: int) -> JSON:
        if not self._place.appends_only:
            return self._place.action(number)
        source = self._place.documents[number]
        return {"_op_type": "create", "_index": self._place.target, "_id": None, "_source": source}
