"""An index of a server that is built anew under its name: an alias afterwards, and never missing."""

from collections.abc import Iterator
from typing import Any

import pytest

from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.writing.target_index import rebuild, unfinished_rebuilds
from shinglefold.model.scheme import Scheme


@pytest.fixture
def plain(scheme: Scheme) -> Pipeline:
    return Pipeline.from_json({"processors": []}, scheme)


def documents(count: int, age: str) -> list[dict[str, Any]]:
    return [{"_id": str(n), "age": age} for n in range(count)]


def ages(engine, index: str) -> list[str]:
    return [hit["_source"]["age"] for hit in engine.search(index, {"size": 100})["hits"]["hits"]]


def test_it_takes_the_name_once_it_is_whole_again_and_again(engine, plain, name):
    def built(age: str) -> Any:
        def given() -> Iterator[dict[str, Any]]:
            if age != "first":
                assert len(ages(engine, name)) == 3
            yield from documents(3, age)

        return lambda index: index_documents(engine, index, given(), plain, workers=1)

    for age in ("first", "second", "third"):
        summary = rebuild(engine, name, built(age))
        assert (summary.index, summary.indexed, summary.stopped) == (name, 3, "")
        assert ages(engine, name) == [age] * 3
        assert len(engine.indices(f"{name}*")) == 1


def test_what_a_killed_run_left_is_told_from_what_took_the_name(engine, plain, name):
    def built(index: str) -> Any:
        return index_documents(engine, index, documents(3, "new"), plain, workers=1)

    for _ in range(2):
        assert rebuild(engine, name, built).indexed == 3
    (taken,) = engine.indices(f"{name}*")
    assert taken.aliases == (name,)
    killed = f"{name}-{'1' * 20}"
    built(killed)
    found = list(unfinished_rebuilds(engine, engine.indices(f"{name}*")))
    assert [(info.name, of) for info, of in found] == [(killed, name)]


def test_a_run_that_is_cut_short_leaves_it_as_it_was(engine, plain, name):
    index_documents(engine, name, documents(3, "old"), plain, workers=1)

    def given() -> Iterator[dict[str, Any]]:
        yield from documents(1_500, "new")
        raise KeyboardInterrupt

    summary = rebuild(engine, name, lambda index: index_documents(engine, index, given(), plain, workers=1))
    assert (summary.stopped, summary.index) == ("interrupted", name)
    assert ages(engine, name) == ["old"] * 3
    assert [info.name for info in engine.indices(f"{name}*")] == [name]
