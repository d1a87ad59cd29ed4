"""Random searches on every layout: pages and cursors show what folding the complete list shows."""

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.hits import SCHEME, Spec, fingerprint_of, match, split
from support.topologies import NAMES, Place, laid_out, ranked

from shinglefold.contracts import JSON, Engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse, duplicates

COUNT = 90
#: On each layout; with four servers, six layouts on most and the embedded engine, more than 1,000.
TRIALS = 45
SORTS: tuple[Any, ...] = (
    None,
    [{"rank": "asc"}],
    {"rank": {"order": "desc"}},
    [{"rank": {"order": "asc", "missing": "_first"}}, "_score"],
    ["_score", {"number": "desc"}],
)
QUERIES: tuple[JSON, ...] = (
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
        body: JSON = {"query": rng.choice(QUERIES), "_source": ["number"]}
        if (sort := rng.choice(SORTS)) is not None:
            body["sort"] = sort
        options = FoldOptions(
            window=rng.choice([5, 17, 40, 200]),
            members=1000,
            explain=rng.random() < 0.2,
            min_shared=rng.choice([None, None, None, 1]),
        )
        return cls(body, options, rng.randrange(1, 30), rng.random() < 0.6)


def specs(seed: int) -> list[Spec]:
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
    rng = random.Random(len(made))
    return ranked(
        [
            {
                "number": number,
                "list": number % 3,
                "body": " ".join(rng.choices("abc", k=rng.randrange(1, 5))),
                "dedup": fingerprint_of(spec).to_field(),
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


def complete(engine: Engine, place: Place, trial: Trial, settled: bool) -> list[JSON]:
    """Return all hits in the order that is promised, with their fingerprints."""
    body = {**trial.body, "size": 1000, "_source": ["number", "dedup"], "track_total_hits": True}
    if settled:
        keys = body.get("sort") or ["_score"]
        body["sort"] = [*(keys if isinstance(keys, list) else [keys]), {"_seq_no": "asc"}]
    hits: list[JSON] = engine.search(place.target, body)["hits"]["hits"]
    return hits


def pages(folded: FoldedSearch, place: Place, trial: Trial) -> Iterator[JSON]:
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


def check(engine: Engine, place: Place, seed: int) -> None:
    trial = Trial.of(seed)
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    one_shard = engine.search(place.target, {"size": 0})["_shards"]["total"] == 1
    hits = complete(engine, place, trial, engine.can.seq_no and (trial.by_cursor or not one_shard))
    groups = collapse(hits, SCHEME, trial.options).groups
    expected = [[place.number(hits[member]) for member in group.members] for group in groups]
    found = []
    for answer in pages(folded, place, trial):
        told = answer["dedup"]
        assert told["vanished"] == 0, seed
        assert told["groups"] + told["folded"] == told["window"], seed
        found += [[place.number(hit), *map(place.number, duplicates(hit))] for hit in answer["hits"]["hits"]]
    assert [group[0] for group in found] == [group[0] for group in expected], f"seed {seed}: {trial}"
    if not trial.by_cursor and trial.options.window >= COUNT:
        assert found == expected, f"seed {seed}: {trial}"
    assert told["groups_total"] == {"value": len(expected), "relation": "eq"}, f"seed {seed}: {trial}"


@pytest.mark.parametrize("topology", NAMES)
def test_pages_and_cursors_show_what_the_complete_list_folds_to(engine, server, topology):
    first = random.SystemRandom().randrange(10**9)
    print("seeds from", first)
    with laid_out(topology, engine, server, documents(specs(first)), properties()) as place:
        for seed in range(first, first + TRIALS):
            check(engine, place, seed)


def test_in_the_embedded_engine_too(tmp_path):
    first = random.SystemRandom().randrange(10**9)
    print("seeds from", first)
    with (
        EmbeddedEngine(tmp_path / "site", split) as engine,
        laid_out("one_shard", engine, None, documents(specs(first)), properties()) as place,
    ):
        for seed in range(first, first + TRIALS):
            check(engine, place, seed)


@pytest.mark.parametrize("topology", [name for name in NAMES if name != "data_stream"])
def test_while_others_write_and_delete_no_group_comes_twice(engine, server, topology):
    first = random.SystemRandom().randrange(10**9)
    print("seeds from", first)
    made = specs(first)
    with (
        laid_out(topology, engine, server, documents(made), properties()) as place,
        disturbed(engine, place, first),
    ):
        for seed in range(first, first + 10):
            trial = Trial.of(seed)
            folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
            shown = []
            for answer in folded.pages(place.target, {**trial.body, "size": trial.size}, trial.options):
                told = answer["dedup"]
                assert told["groups"] + told["folded"] <= told["window"], seed
                shown += [hit["_source"]["number"] for hit in answer["hits"]["hits"]]
            assert len(set(shown)) == len(shown), f"seed {seed}: {trial}"
            shared = trial.options.min_shared or 0
            pairs = [(a, b) for at, b in enumerate(shown) for a in shown[:at]]
            twice = [pair for pair in pairs if match(made[pair[0]], made[pair[1]], shared=shared)]
            assert not twice, f"seed {seed}: {trial}"


class disturbed:  # noqa: N801 - used as a statement
    """Writes documents again and deletes some, until its block ends."""

    def __init__(self, engine: Engine, place: Place, seed: int) -> None:
        self._engine, self._place, self._rng = engine, place, random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failed: list[BaseException] = []

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        assert not self.failed

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                numbers = self._rng.sample(range(COUNT), 8)
                deleted = [self._place.action(number, _op_type="delete") for number in numbers[:1]]
                self._engine.bulk([*deleted, *map(self._place.action, numbers[1:])])
                self._engine.refresh(self._place.target)
        except BaseException as error:
            self.failed.append(error)
