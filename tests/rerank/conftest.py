"""One real index of many result lists, each found by its number."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.hits import SCHEME, Spec, fill, fingerprint_of, split

from shinglefold.contracts.engine import Engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.rerank import FoldedSearch

LISTS = 12
LENGTH = 60


@dataclass(frozen=True)
class Library:
    """An engine with an index ``pages``, and what was made for each list, best first."""

    engine: Engine
    lists: list[list[Spec]]

    def body(self, number: int, **more: Any) -> dict[str, Any]:
        """A search for one list in its order."""
        return {"query": {"term": {"list": number}}, "sort": [{"rank": "asc"}], **more}


def random_specs(number: int) -> list[Spec]:
    rng = random.Random(number)
    originals = rng.choice([2, 6, 20, 40])
    return [
        Spec(
            original=rng.randrange(originals) + 100 * number,
            changed=rng.choice([0, 10, 30, 55, 60, 64]),
            seed=rng.randrange(1000),
            digest=rng.choice(["", "", "", "", f"digest{rng.randrange(8)}"]),
            signed=rng.random() > 0.1,
            scheme="sf1-other" if rng.random() < 0.05 else SCHEME.id,
            host=rng.choice(["a.org", "b.org", None]),
            published=rng.randrange(1_000_000),
        )
        for _ in range(LENGTH)
    ]


@pytest.fixture(autouse=True)
def _believed_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mappings that were just read are believed also on a slow machine: here nobody changes them."""
    monkeypatch.setattr("shinglefold.rerank.index_knowledge._FRESH_SECONDS", 600.0)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with EmbeddedEngine(tmp_path_factory.mktemp("library"), split) as engine:
        lists = [random_specs(number) for number in range(LISTS)]
        order = [(number, rank) for number in range(LISTS) for rank in range(LENGTH)]
        random.Random(5).shuffle(order)
        sources = {f"{number}-{rank}": document(number, rank, lists[number][rank]) for number, rank in order}
        types = {
            "title": "text",
            "list": "integer",
            "rank": "integer",
            "host": "keyword",
            "published": "date",
        }
        fill(engine, "pages", sources, **types)
        yield Library(engine, lists)


@pytest.fixture
def folded(library: Library) -> FoldedSearch:
    return FoldedSearch(library.engine, SCHEME)


def document(number: int, rank: int, spec: Spec) -> dict[str, Any]:
    source = {"title": f"Page {rank} of list {number}", "list": number, "rank": rank}
    if spec.host is not None:
        source["host"] = spec.host
    return source | {"published": (spec.published or 0) * 1000, "_dedup": fingerprint_of(spec).to_field()}
