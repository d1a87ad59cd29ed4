"""Partial answers: the page says so, and is filled as far as there are hits."""

import json

import pytest
from support.hits import SCHEME, ids, leader_groups

from shinglefold.contracts.engine import Capabilities
from shinglefold.rerank import FoldedSearch, FoldOptions

_LACKS = {
    "a shard that failed": {"_shards": {"total": 1, "successful": 0, "skipped": 0, "failed": 1}},
    "too little time": {"timed_out": True},
}


class Lacking:
    """A real engine whose answers say that they lack something."""

    can = Capabilities()

    def __init__(self, engine, lacks):
        self.engine, self.lacks = engine, lacks

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def search(self, index, body, *more):
        return self.engine.search(index, body, *more) | self.lacks


@pytest.mark.parametrize("lacks", _LACKS.values(), ids=_LACKS)
def test_what_ends_before_the_page_is_full_ended_with_a_partial_answer(library, lacks):
    body = library.body(3, size=60, ext={"dedup": {"cursor": True}})
    answer = FoldedSearch(Lacking(library.engine, lacks), SCHEME).search("pages", body)
    told = answer["dedup"]
    assert (told["stopped_by"], told["groups_total"]["relation"]) == ("partial_answer", "gte")
    assert told["partial"]
    assert told["cursor"] is None
    assert {
        hit["inner_hits"]["duplicates"]["hits"]["total"]["relation"] for hit in answer["hits"]["hits"]
    } == {"gte"}


@pytest.mark.parametrize("lacks", _LACKS.values(), ids=_LACKS)
def test_an_answer_with_all_the_hits_that_were_asked_for_is_read_on_from(library, lacks):
    groups = leader_groups(library.lists[3])
    folded = FoldedSearch(Lacking(library.engine, lacks), SCHEME)
    answer = folded.search("pages", library.body(3, size=len(groups) - 1), FoldOptions(window=5))
    assert ids(answer["hits"]["hits"]) == [f"3-{group[0]}" for group in groups[:-1]]
    assert answer["dedup"]["stopped_by"] == "page_full"


class LackingMembers(Lacking):
    """The same, whose searches for members alone lack something."""

    def search(self, index, body, *more):
        return self.engine.search(index, body, *more)

    def msearch(self, searches):
        return [answer | self.lacks for answer in self.engine.msearch(searches)]


@pytest.mark.parametrize("lacks", _LACKS.values(), ids=_LACKS)
def test_members_that_lack_something_are_told(library, lacks):
    body = library.body(3, size=5, ext={"dedup": {"inner_hits": {"name": "all", "size": 3}}})
    whole = FoldedSearch(library.engine, SCHEME).search("pages", body)
    answer = FoldedSearch(LackingMembers(library.engine, lacks), SCHEME).search("pages", body)
    assert ids(answer["hits"]["hits"]) == ids(whole["hits"]["hits"])
    assert "partial" not in whole["dedup"]
    assert answer["dedup"]["partial"]


class Sharded:
    """A real engine whose answers say how many shards gave them; it keeps what it was asked."""

    def __init__(self, engine, shards):
        self.engine, self.shards, self.asked = engine, shards, []

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def search(self, index, body, **more):
        self.asked.append(body)
        answer = self.engine.search(index, body, **more)
        return {**answer, "_shards": {"total": self.shards, "successful": self.shards}}


@pytest.mark.parametrize(("shards", "told_apart"), [(1, False), (2, True), (3, True)])
def test_hits_of_several_shards_are_asked_for_by_index_and_routing_too(library, shards, told_apart):
    engine = Sharded(library.engine, shards)
    FoldedSearch(engine, SCHEME).search("pages", library.body(0, size=5))
    read, fetched, *_ = map(json.dumps, engine.asked)
    assert "_routing" not in read
    assert '"0-0"' in fetched
    assert ("_routing" in fetched) == told_apart
