"""An index that changes in the midst of a run: the run ends with the reason, and with what mends it."""

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from support.gate.indices import gated_index
from support.maintenance import mapped, pages, store
from support.servers.admin import ask
from support.servers.server import add_alias
from support.taps import Changed

import shinglefold
from shinglefold.errors import EngineError, IndexExists
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.regroup import regroup
from shinglefold.ingest import index_documents, mappings
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.writing.target_index import IndexChanged
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.model.scheme import Scheme

pytestmark = pytest.mark.newest

COUNT = 1_200
#: The document before which the index changes; the first block was sent before.
AT = 1_000


@pytest.fixture
def made(scheme: Scheme) -> dict[str, Any]:
    return mapped(scheme)


def other_scheme(scheme: Scheme) -> dict[str, Any]:
    return mappings(scheme.with_options(values=84, groups=20))


def make_anew(engine: Any, index: str, body: dict[str, Any]) -> None:
    """Make an index anew; a bulk request in between may have made it, too."""
    for _ in range(20):
        engine.delete_index(index)
        with suppress(IndexExists):
            engine.create_index(index, body, {})
            return
    raise AssertionError(f"{index} was always made by a bulk request")


CHANGES: dict[str, tuple[Callable[..., None], str]] = {
    "nothing": (lambda *_: None, ""),
    "another scheme": (
        lambda engine, index, scheme: engine.put_mappings(index, {"_meta": other_scheme(scheme)["_meta"]}),
        "the recipe of",
    ),
    "no recipe": (lambda engine, index, _: engine.put_mappings(index, {"_meta": {}}), "the recipe of"),
    "deleted": (lambda engine, index, _: engine.delete_index(index), "was deleted during this run"),
    "made anew without mappings": (
        lambda engine, index, _: make_anew(engine, index, {}),
        "another of its name was made",
    ),
    "made anew alike": (
        lambda engine, index, scheme: make_anew(engine, index, mappings(scheme)),
        "another of its name was made",
    ),
}


def _count(engine: Any, index: str) -> int:
    engine.refresh(index)
    return int(engine.search(index, {"size": 0})["hits"]["total"]["value"])


def changing(change: Callable[[], None], at: int = AT) -> Iterator[dict[str, Any]]:
    for number, page in enumerate(pages(COUNT, length=400)):
        if number == at:
            change()
        yield page


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_into_an_index_that_changes_says_so(engine, new_index, made, scheme, pipeline, name):
    change, told = CHANGES[name]
    index = new_index(made)
    records = changing(lambda: change(engine, index, scheme))
    summary = index_documents(engine, index, records, pipeline, workers=1)
    assert told in summary.stopped
    assert bool(summary.stopped) == bool(told)
    assert not told or "`shinglefold" in summary.stopped


def test_an_alias_that_moves_leaves_documents_behind(engine, server, new_index, made, pipeline):
    alias = f"shinglefold-alias-{uuid.uuid4().hex[:8]}"
    old, new = new_index(made), new_index(made)
    add_alias(server, alias, old)
    swap = [{"remove": {"index": old, "alias": alias}}, {"add": {"index": new, "alias": alias}}]

    def move() -> None:
        # Documents that are not written yet go to the new index.
        end = time.monotonic() + 20
        while not _count(engine, old) and time.monotonic() < end:
            time.sleep(0.05)
        ask(server.url, "POST", "/_aliases", {"actions": swap})

    summary = index_documents(engine, alias, changing(move), pipeline, workers=1)
    assert f"went into {old!r}" in summary.stopped


def test_an_index_that_comes_behind_an_alias_is_no_change(engine, server, new_index, made, pipeline):
    alias = f"shinglefold-alias-{uuid.uuid4().hex[:8]}"
    old, new = new_index(made), new_index(made)
    add_alias(server, alias, old, is_write_index=True)
    rolled = [
        {"add": {"index": old, "alias": alias, "is_write_index": False}},
        {"add": {"index": new, "alias": alias, "is_write_index": True}},
    ]
    records = changing(lambda: ask(server.url, "POST", "/_aliases", {"actions": rolled}))
    summary = index_documents(engine, alias, records, pipeline, workers=1)
    assert (summary.stopped, summary.indexed) == ("", COUNT)


#: What a run that changes stored documents says, by the change; a deleted index fails in its own way.
MAINTAINED = {
    name: told for name, (_, told) in CHANGES.items() if name not in ("nothing", "deleted", "made anew alike")
}


class ChangingAt(Changed):
    """An engine whose index changes after the first bulk request."""

    def __init__(self, engine, change: Callable[[], None]) -> None:
        super().__init__(engine)
        self.changes = [change]

    def bulk(self, actions):
        done = self.engine.bulk(actions)
        while self.changes:
            self.changes.pop()()
        return done


@pytest.mark.parametrize("name", MAINTAINED)
def test_a_backfill_of_an_index_that_changes_says_so(engine, new_index, made, scheme, pipeline, name):
    index = new_index(made)
    store(engine, index, pages(COUNT))
    changing = ChangingAt(engine, lambda: CHANGES[name][0](engine, index, scheme))
    summary = backfill(changing, index, pipeline, BackfillOptions(workers=1))
    assert (MAINTAINED[name] in summary.stopped, summary.anew) == (True, True)
    assert "`shinglefold backfill" in summary.stopped


@pytest.mark.parametrize("name", MAINTAINED)
def test_a_regrouping_of_an_index_that_changes_says_so(engine, new_index, scheme, pipeline, name):
    recipe = replace(pipeline.recipe(), groups=True)
    index = new_index(recipe_mappings(recipe))
    twins = [{**page, "id": f"{page['id']}-{copy}"} for page in pages(40) for copy in "ab"]
    assert index_documents(engine, index, twins, pipeline, workers=1).stopped == ""

    def change(step: str, _documents: int, _share: float) -> None:
        if step == "writing":
            CHANGES[name][0](engine, index, scheme)

    summary = regroup(engine, index, report=change)
    assert (MAINTAINED[name] in summary.stopped, summary.settled) == (True, False)


@pytest.mark.parametrize("name", MAINTAINED)
def test_a_gate_of_an_index_that_changes_says_so(engine, scheme, pipeline, name):
    with gated_index(engine, pipeline) as index:
        gate = Gate(engine, index, Policy("refuse"), pipeline=pipeline)
        assert gate.add({"id": "one", "body": "word " * 40}).status == "accepted"
        CHANGES[name][0](engine, index, scheme)
        with pytest.raises(EngineError, match=r"changed while a gate was open|another of its name"):
            gate.close()
        gate.close()


_SET_UP = "import sys, shinglefold; shinglefold.setup(sys.argv[1], sys.argv[2], text=[sys.argv[3]])"
_PAGE = {"title": "no word of the other", "body": "the bridge over the river is closed until monday"}


@pytest.fixture
def named(server, new_index) -> Callable[[str], str]:
    """Make an index with two texts, and return its name, or that of an alias of it."""

    def make(kind: str) -> str:
        index = new_index({"properties": {"title": {"type": "text"}, "body": {"type": "text"}}})
        if kind == "index":
            return index
        alias = f"shinglefold-alias-{uuid.uuid4().hex[:8]}"
        add_alias(server, alias, index)
        return alias

    return make


@pytest.mark.parametrize("kind", ["index", "alias"])
def test_an_open_index_whose_recipe_another_process_changes_says_so(server, named, kind):
    name = named(kind)
    shinglefold.setup(server.url, name, text=["body"])
    with shinglefold.open(server.url, name) as site:
        site.index([{**_PAGE, "id": "1"}, {**_PAGE, "id": "2"}])
        assert [match.id for match in site.similar({**_PAGE}).matches] == ["1", "2"]
        subprocess.run([sys.executable, "-c", _SET_UP, server.url, name, "title"], check=True)
        for examine in (
            lambda: site.similar(_PAGE),
            lambda: site.explain("1", "2"),
            site.doctor,
            site.groups,
        ):
            site._watch._pause = 0
            with pytest.raises(IndexChanged, match="open the index again"):
                examine()
        assert len(site.search()["hits"]["hits"]) == 1


@pytest.mark.parametrize("kind", ["index", "alias"])
def test_an_open_index_that_is_made_anew_alike_is_read_on(server, engine, named, kind):
    name = named(kind)
    shinglefold.setup(server.url, name, text=["body"])
    with shinglefold.open(server.url, name) as site:
        site.index([{**_PAGE, "id": "1"}])
        assert [match.id for match in site.similar(_PAGE).matches] == ["1"]
        (info,) = engine.indices(name)
        engine.delete_index(info.name)
        shinglefold.setup(server.url, info.name, text=["body"], properties={"title": {"type": "text"}})
        if kind == "alias":
            add_alias(server, name, info.name)
        site.index([{**_PAGE, "id": "2"}, {**_PAGE, "id": "3"}])
        site._watch._pause = 0
        assert [match.id for match in site.similar(_PAGE).matches] == ["2", "3"]
        assert site.explain("2", "3")["folds"]
        assert site.doctor().healthy
        assert len(site.groups().groups) == 1
