"""Several searches at once are answered as each alone, with the requests of one."""

import asyncio

import pytest
from support.hits import SCHEME
from support.taps import Awaited, Tapped

from shinglefold.errors import ConfigError, EngineUnavailable, IndexMissing
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions


def without_time(answer):
    return {name: value for name, value in answer.items() if name not in ("took", "pit_id")}


def bodies(library, size=7, **more):
    return [library.body(number, size=size, track_total_hits=True, **more) for number in range(5)]


def test_each_is_answered_as_alone_with_two_requests_for_all(library):
    tapped = Tapped(library.engine)
    searches = [("pages", body) for body in bodies(library)]
    answers = FoldedSearch(tapped, SCHEME).msearch(searches, FoldOptions(members=3))
    assert tapped.names == ["all_mappings", "msearch", "msearch"]
    alone = FoldedSearch(library.engine, SCHEME)
    for answer, (index, body) in zip(answers, searches, strict=True):
        assert without_time(answer) == without_time(alone.search(index, body, FoldOptions(members=3)))


def test_searches_of_different_lengths_go_on_as_long_as_each_needs(library):
    tapped = Tapped(library.engine)
    searches = [
        ("pages", library.body(1, size=5)),
        ("pages", library.body(2, size=40, ext={"dedup": {"window": 10}})),
        ("pages", library.body(3, size=3, ext={"dedup": {"fold": False}})),
        ("pages", library.body(4, size=9, ext={"dedup": {"window": 5, "cursor": True}})),
    ]
    answers = FoldedSearch(tapped, SCHEME).msearch(searches)
    alone = FoldedSearch(library.engine, SCHEME)
    for answer, search in zip(answers, searches, strict=True):
        assert answer["hits"] == alone.search(*search)["hits"]
    opened, closed = tapped.names.count("open_pit"), tapped.names.count("close_pit")
    # That of the cursor stays open for its next page.
    assert opened == closed + 1 >= 2


def test_what_one_raises_stands_in_its_place(library):
    searches = [
        ("pages", library.body(1)),
        ("absent", library.body(1)),
        ("pages", library.body(1, ext={"dedup": {"windw": 3}})),
        ("pages", library.body(1, collapse={"field": "host"})),
        ("pages", library.body(2)),
    ]
    first, absent, mistaken, collapsed, last = FoldedSearch(library.engine, SCHEME).msearch(searches)
    assert isinstance(absent, IndexMissing)
    assert isinstance(mistaken, ConfigError)
    assert "window" in str(mistaken)
    assert isinstance(collapsed, ConfigError)
    assert first["hits"]["hits"]
    assert last["hits"]["hits"]


def test_none_are_answered_by_nothing(library):
    tapped = Tapped(library.engine)
    assert FoldedSearch(tapped, SCHEME).msearch([]) == []
    assert tapped.names == []


class Failing(Tapped):
    """Fails at some request for several searches."""

    def __init__(self, engine, at, error):
        super().__init__(engine)
        self.at = at
        self.error = error

    def __getattr__(self, name):
        if name == "msearch":
            self.at -= 1
            if self.at < 0:

                def fail(_):
                    raise self.error

                return fail
        return super().__getattr__(name)


def test_where_the_engine_fails_all_fail_and_give_back_what_they_hold(library):
    engine = Failing(library.engine, 1, EngineUnavailable("gone"))
    searches = [("pages", body) for body in bodies(library, size=50, ext={"dedup": {"window": 10}})]
    answers = FoldedSearch(engine, SCHEME).msearch(searches)
    assert all(isinstance(answer, EngineUnavailable) for answer in answers)
    assert engine.names.count("open_pit") == engine.names.count("close_pit") == len(searches)


def test_an_interrupt_is_raised_after_all_gave_back_what_they_hold(library):
    engine = Failing(library.engine, 1, KeyboardInterrupt())
    searches = [("pages", body) for body in bodies(library, size=50, ext={"dedup": {"window": 10}})]
    with pytest.raises(KeyboardInterrupt):
        FoldedSearch(engine, SCHEME).msearch(searches)
    assert engine.names.count("open_pit") == engine.names.count("close_pit") == len(searches)


def test_the_awaited_face_answers_the_same(library):
    searches = [("pages", body) for body in bodies(library)]
    awaited = asyncio.run(AsyncFoldedSearch(Awaited(library.engine), SCHEME).msearch(searches))
    assert [one["hits"] for one in awaited] == [
        one["hits"] for one in FoldedSearch(library.engine, SCHEME).msearch(searches)
    ]
