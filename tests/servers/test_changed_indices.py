"""Indices that change under a running application: aliases that move, mappings and schemes that differ."""

import asyncio
import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic, sleep

import pytest
from support.hits import SCHEME, Spec, fingerprint_of
from support.maintenance import put

import shinglefold
from shinglefold.engines import open_async_engine
from shinglefold.errors import ConfigError, EngineError, SchemeMismatch, ShinglefoldError
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch

pytestmark = pytest.mark.newest

COUNT = 60
BODY = {"query": {"match_all": {}}, "sort": [{"number": "asc"}], "size": 10}
OTHER = SCHEME.with_options(word_width=3)


def documents(scheme=SCHEME, *, groups=True):
    """Three documents of each of 20 texts."""
    return [
        {
            "number": number,
            "_dedup": fingerprint_of(Spec(original=number // 3, scheme=scheme.id)).to_field()
            | ({"group": number // 3} if groups else {}),
        }
        for number in range(COUNT)
    ]


def mapped(scheme=SCHEME, *, groups=True):
    made = recipe_mappings(replace(default_recipe(scheme), groups=groups))
    made["properties"]["number"] = {"type": "integer"}
    return made


def filled(engine, index, given):
    put(engine, index, {str(one["number"]): one for one in given})
    return index


def move(server, alias, index, *others):
    actions = [{"remove": {"index": other, "alias": alias}} for other in others]
    server.ask("POST", "/_aliases", {"actions": [*actions, {"add": {"index": index, "alias": alias}}]})


@contextmanager
def swapping(server, alias, indices):
    """Move an alias from one index to the other and back, every 20 ms."""
    stop = threading.Event()

    def swap():
        here, there = indices
        while not stop.wait(0.02):
            move(server, alias, there, here)
            here, there = there, here

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def swapped(engine, server, new_index):
    """An alias, and two equal indices of three shards behind it by turns."""
    settings = {"number_of_shards": 3, "number_of_replicas": 0}
    indices = [filled(engine, new_index(mapped(), settings), documents()) for _ in range(2)]
    alias = f"{indices[0]}-alias"
    move(server, alias, indices[0])
    return alias, indices


def sizes(page):
    """The members of each group on a page, the one shown included."""
    return [len(hit["inner_hits"]["duplicates"]["hits"]["hits"]) for hit in page["hits"]["hits"]]


def check(page):
    indices = {
        hit["_index"]
        for shown in page["hits"]["hits"]
        for hit in shown["inner_hits"]["duplicates"]["hits"]["hits"]
    }
    assert sizes(page) == [3] * 10, page["dedup"]
    assert len(indices) == 1
    assert page["dedup"]["vanished"] == 0
    assert "mode" in page["dedup"]
    assert "partial" not in page["dedup"]


def searched(folded, alias, how):
    if how == "msearch":
        for page in folded.msearch([(alias, BODY)] * 3):
            if isinstance(page, BaseException):
                raise page
            check(page)
        return
    check(folded.search(alias, {**BODY, "ext": {"dedup": HOW[how]}}))


HOW = {
    "window": {},
    "small windows": {"window": 5},
    "inner_hits": {"inner_hits": {"name": "all", "size": 3}},
    "texts": {"verify": "text"},
    "auto": {"mode": "auto"},
    "cursor": {"cursor": True},
    "msearch": {},
}


def test_while_an_alias_moves_no_page_is_empty(engine, server, swapped):
    alias, indices = swapped
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    with swapping(server, alias, indices):
        for how in HOW:
            end = monotonic() + 0.8
            while monotonic() < end:
                searched(folded, alias, how)
        asyncio.run(_awaited(server, engine.tiebreaker(), alias))


async def _awaited(server, tiebreaker, alias):
    engine = open_async_engine(server.url)
    folded = AsyncFoldedSearch(engine, SCHEME, tiebreaker=tiebreaker)
    try:
        end = monotonic() + 0.8
        while monotonic() < end:
            for page in await asyncio.gather(*(folded.search(alias, BODY) for _ in range(3))):
                check(page)
    finally:
        await engine.close()


TEXTS = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
BARE = {"number": {"type": "integer"}}
NO_DOC_VALUES = mapped()
NO_DOC_VALUES["properties"]["_dedup"]["properties"]["digest"] = {"type": "keyword", "doc_values": False}
#: What an alias may move to; the reason that is told, and the error for those who want one.
UNREADABLE = {
    "another scheme": (mapped(OTHER), documents(OTHER), OTHER.id, SchemeMismatch),
    "mapped as text": (
        {"properties": BARE | {"_dedup": {"properties": {"digest": TEXTS, "signature": TEXTS}}}},
        documents(),
        "as text",
        ConfigError,
    ),
    "no mapping": ({"dynamic": False, "properties": BARE}, documents(), "has no fingerprints", ConfigError),
    "no doc values": (NO_DOC_VALUES, documents(), "without doc values", ConfigError),
    # Nothing in the mappings says so: the window itself is refused.
    "not a keyword": (
        {
            "properties": BARE
            | {"_dedup": {"properties": {"digest": {"type": "completion"}, "signature": {"type": "binary"}}}}
        },
        [{"number": number} for number in range(COUNT)],
        "",
        EngineError,
    ),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_where_no_fingerprint_can_be_read_the_page_is_the_engines_own(
    engine, server, new_index, caplog, what
):
    made, given, reason, error = UNREADABLE[what]
    settings = {"number_of_shards": 2, "number_of_replicas": 0}
    good = filled(engine, new_index(mapped(), settings), documents())
    bad = filled(engine, new_index(made, settings), given)
    alias = f"{good}-alias"
    move(server, alias, good)
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    strict = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker(), on_trouble="raise")
    check(folded.search(alias, BODY))
    check(strict.search(alias, BODY))
    move(server, alias, bad, good)
    own = engine.search(alias, BODY)
    with caplog.at_level(logging.WARNING, "shinglefold"):
        pages = [folded.search(alias, {**BODY, "ext": {"dedup": HOW[how]}}) for how in ("window", "auto")]
    pages += folded.msearch([(alias, BODY)] * 2)
    for page in pages:
        assert page["dedup"]["mode"] == "unfolded"
        assert reason in page["dedup"]["mode_reason"]
        assert page["hits"]["total"] == own["hits"]["total"]
        assert sizes(page) == [1] * 10
        assert [_plain(hit) for hit in page["hits"]["hits"]] == own["hits"]["hits"]
    assert reason in caplog.text
    assert alias in caplog.text
    with pytest.raises(error):
        strict.search(alias, BODY)
    with pytest.raises(error):
        folded.search(alias, {**BODY, "ext": {"dedup": {"on_trouble": "raise"}}})
    walked = [hit["_id"] for page in folded.pages(alias, BODY) for hit in page["hits"]["hits"]]
    assert walked == [str(number) for number in range(COUNT)]
    move(server, alias, good, bad)
    check(folded.search(alias, BODY))
    check(strict.search(alias, BODY))


def _plain(hit):
    return {name: value for name, value in hit.items() if name != "inner_hits"}


def test_a_mistake_of_the_caller_is_an_error_as_of_the_engine(engine, new_index):
    index = filled(engine, new_index(mapped()), documents())
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    for body in ({"query": {"no_such_query": {}}}, {"sort": [{"number": "sideways"}]}):
        with pytest.raises(EngineError) as native:
            engine.search(index, body)
        with pytest.raises(type(native.value)):
            folded.search(index, body)
    for wrong in ({"window": 0}, {"scope": "nowhere"}, {"on_trouble": "ignore"}):
        with pytest.raises(ConfigError):
            folded.search(index, {**BODY, "ext": {"dedup": wrong}})
    with pytest.raises(ShinglefoldError, match="shinglefold-absent"):
        folded.search("shinglefold-absent", BODY)


def test_an_index_among_others_that_has_another_scheme_stands_alone(engine, new_index):
    good = filled(engine, new_index(mapped()), documents())
    other = filled(engine, new_index(mapped(OTHER)), documents(OTHER))
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    for target in (f"{good},{other}", f"{good[:-3]}*,{other}"):
        page = folded.search(target, {**BODY, "size": 80})
        assert page["dedup"]["mode"] == "window"
        assert page["dedup"]["other_schemes"]
        assert sorted(sizes(page)) == [1] * 60 + [3] * 20
        with pytest.raises(SchemeMismatch):
            folded.search(target, {**BODY, "ext": {"dedup": {"on_trouble": "raise"}}})


def test_group_numbers_that_are_gone_are_noticed_at_once(engine, server, new_index):
    with_numbers = filled(engine, new_index(mapped()), documents())
    without = filled(engine, new_index(mapped(groups=False)), documents(groups=False))
    alias = f"{with_numbers}-alias"
    move(server, alias, with_numbers)
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    body = {**BODY, "ext": {"dedup": {"mode": "auto"}}}
    modes = []
    for here, there in [(with_numbers, without), (without, with_numbers)] * 2:
        page = folded.search(alias, body)
        assert sizes(page) == [3] * 10
        modes.append((page["dedup"]["mode"], here == with_numbers))
        move(server, alias, there, here)
    assert modes == [("native", True), ("window", False)] * 2


def test_an_order_that_each_search_draws_anew_is_no_moved_alias(engine, new_index):
    names = [filled(engine, new_index(mapped()), documents()) for _ in range(2)]
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    drawn = {"function_score": {"query": {"match_all": {}}, "random_score": {}}}
    options = {"dedup": {"mode": "native", "members": 1}}
    for _ in range(5):
        page = folded.search(",".join(names), {"query": drawn, "size": 10, "ext": options})
        assert page["dedup"]["mode"] == "native", page["dedup"]


def test_an_open_index_follows_a_change_of_its_scheme(engine, server, new_index):
    index = filled(engine, new_index(mapped()), documents())
    with shinglefold.open(server.url, index) as site:
        check(site.search(BODY))
        sleep(0.3)
        engine.put_mappings(index, {"_meta": mappings(OTHER)["_meta"]})
        filled(engine, index, documents(OTHER))
        page = site.search(BODY)
        check(page)
        assert page["dedup"]["scheme"] == OTHER.id
        assert len(site.similar("3").matches) == 2

    async def awaited():
        opened = await shinglefold.open_async(server.url, index)
        async with opened:
            check(await opened.search(BODY))
            # Mappings that were just read are believed for 0.2 s.
            await asyncio.sleep(0.3)
            engine.put_mappings(index, {"_meta": mappings(SCHEME)["_meta"]})
            filled(engine, index, documents())
            check(await opened.search(BODY))

    asyncio.run(awaited())


def test_a_search_with_a_scheme_of_its_own_says_that_the_index_has_another_now(engine, new_index):
    index = filled(engine, new_index(mapped()), documents())
    folded = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())
    check(folded.search(index, BODY))
    sleep(0.3)
    engine.put_mappings(index, {"_meta": json.loads(json.dumps(mappings(OTHER)["_meta"]))})
    filled(engine, index, documents(OTHER))
    page = folded.search(index, BODY)
    assert page["dedup"]["mode"] == "unfolded"
    assert OTHER.id in page["dedup"]["mode_reason"]
