"""A rebuilt index: the old one stays until the new one is complete."""

from collections.abc import Iterator
from typing import Any

import pytest

from shinglefold.errors import ConfigError, EngineUnavailable
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.writing.target_index import rebuild


@pytest.fixture
def plain(make_pipeline) -> Pipeline:
    return make_pipeline({"fail": {"if": "ctx.bad == true", "message": "bad"}})


def documents(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"_id": str(n), "n": n, **more} for n in range(count)]


@pytest.fixture
def old(engine, plain) -> str:
    assert index_documents(engine, "pages", documents(3, age="old"), plain, workers=1).indexed == 3
    return "pages"


def ages(engine, index: str) -> list[str]:
    hits = engine.search(index, {"size": 100})["hits"]["hits"]
    return [hit["_source"]["age"] for hit in hits]


def names(engine) -> list[str]:
    return [info.name for info in engine.indices()]


def test_searches_meet_the_old_one_until_the_new_one_is_whole(engine, plain, old):
    def watched() -> Iterator[dict[str, Any]]:
        for document in documents(2, age="new"):
            assert ages(engine, old) == ["old"] * 3
            yield document

    summary = rebuild(engine, old, lambda name: index_documents(engine, name, watched(), plain, workers=1))
    assert (summary.index, summary.indexed, summary.stopped) == (old, 2, "")
    assert ages(engine, old) == ["new"] * 2
    assert names(engine) == [old]


def interrupted() -> Iterator[dict[str, Any]]:
    yield from documents(1_500, age="new")
    raise KeyboardInterrupt


def broken() -> Iterator[dict[str, Any]]:
    yield from documents(1_500, age="new")
    raise ValueError("from outside")


@pytest.mark.parametrize("given", [interrupted, list, lambda: documents(5, bad=True)])
def test_a_run_that_does_not_succeed_leaves_it_as_it_was(engine, plain, old, given):
    summary = rebuild(engine, old, lambda name: index_documents(engine, name, given(), plain, workers=1))
    assert summary.counts["discarded"] == summary.indexed
    assert summary.index == old
    assert ages(engine, old) == ["old"] * 3
    assert names(engine) == [old]


def test_so_does_one_that_breaks(engine, plain, old):
    with pytest.raises(ValueError, match="from outside"):
        rebuild(engine, old, lambda name: index_documents(engine, name, broken(), plain, workers=1))
    assert ages(engine, old) == ["old"] * 3
    assert names(engine) == [old]


def test_where_there_is_none_it_is_just_built(engine, plain):
    built = lambda name: index_documents(engine, name, documents(2, age="new"), plain, workers=1)  # noqa: E731
    assert rebuild(engine, "pages", built).index == "pages"
    assert names(engine) == ["pages"]


def test_an_index_that_cannot_replace_the_old_one_is_kept_and_reported(engine, plain, old):
    class Held:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def replace_index(self, index: str, by: str) -> None:
            raise EngineUnavailable("another process is writing to this index")

    summary = rebuild(
        Held(), old, lambda name: index_documents(engine, name, documents(2, age="new"), plain, workers=1)
    )
    assert "another process is writing" in summary.stopped
    assert f"the new index is complete under the name {summary.index}" in summary.stopped
    assert (ages(engine, old), ages(engine, summary.index)) == (["old"] * 3, ["new"] * 2)


def test_a_name_of_several_indices_is_refused_before_anything_is_done(engine, plain, old):
    class Aliased:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def indices(self, pattern: str = "*") -> list[Any]:
            return engine.indices("*") * 2

    with pytest.raises(ConfigError, match="an alias of several indices"):
        rebuild(Aliased(), old, lambda _: pytest.fail("built"))
