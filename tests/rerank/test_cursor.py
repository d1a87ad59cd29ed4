"""Endless paging: every group once, at any depth, whatever happens between the pages."""

import asyncio
import itertools
import math
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, fill, fingerprint_of, ids, leader_groups, split
from support.servers.choose import examples
from support.taps import Awaited, Changed, Tapped

from shinglefold.contracts.engine import Capabilities
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, EngineError
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions
from shinglefold.rerank.page.cursor import LONGEST, Cursor, decrypt_cursor, encrypt_cursor

KEY = b"a key that several processes share"


@pytest.fixture
def folded(library):
    return FoldedSearch(library.engine, SCHEME, cursor_key=KEY)


def shown(answers):
    return [id_ for answer in answers for id_ in ids(answer["hits"]["hits"])]


@given(
    st.integers(0, 11),
    st.integers(1, 25),
    st.sampled_from([5, 10, 17, 60, 200]),
    st.sampled_from([[], ["newest:published"], ["prefer:host=b.org,a.org", "oldest:published"]]),
)
@settings(max_examples=examples(40), deadline=None)
def test_pages_of_a_cursor_are_those_of_from_and_size(library, number, size, window, representative):
    folded = FoldedSearch(library.engine, SCHEME)
    options = FoldOptions.parse({"window": window, "representative": representative})
    whole = folded.search("pages", library.body(number, size=60), options)
    answers = list(folded.pages("pages", library.body(number, size=size), options))
    assert shown(answers) == ids(whole["hits"]["hits"])
    assert all(len(answer["hits"]["hits"]) == size for answer in answers[:-1])
    assert answers[-1]["dedup"]["groups_total"] == whole["dedup"]["groups_total"]
    assert answers[-1]["dedup"]["cursor"] is None


@given(st.integers(0, 11), st.integers(1, 10), st.integers(1, 20), st.integers(1, 30))
@settings(max_examples=examples(25), deadline=None)
def test_a_cap_shortens_pages_but_loses_and_repeats_nothing(library, number, size, window, cap):
    options = FoldOptions(window=min(window, cap), max_window=cap)
    answers = list(
        FoldedSearch(library.engine, SCHEME).pages("pages", library.body(number, size=size), options)
    )
    assert shown(answers) == [f"{number}-{group[0]}" for group in leader_groups(library.lists[number])]


def test_pages_may_change_their_size_and_what_they_fetch(library, folded):
    first = folded.search("pages", library.body(3, size=4, ext={"dedup": {"cursor": True}}))
    cursor = first["dedup"]["cursor"]
    body = library.body(3, size=7, _source=["rank"], ext={"dedup": {"cursor": cursor, "members": 1}})
    second = folded.search("pages", body)
    expected = [f"3-{group[0]}" for group in leader_groups(library.lists[3])]
    assert shown([first, second]) == expected[:11]
    assert all(hit["_source"].keys() == {"rank"} for hit in second["hits"]["hits"])


def test_a_page_that_shows_the_last_group_hands_out_no_cursor(library, folded):
    groups, body = leader_groups(library.lists[3]), {"dedup": {"cursor": True, "window": 60}}
    answer = folded.search("pages", library.body(3, size=len(groups), ext=body))
    assert (answer["dedup"]["stopped_by"], answer["dedup"]["cursor"]) == ("page_full", None)


def test_documents_added_meanwhile_do_not_move_the_pages(library, folded, tmp_path):
    tapped = Tapped(library.engine)
    answers = FoldedSearch(tapped, SCHEME).pages("pages", library.body(7, size=5))
    found = shown([next(answers)])
    library.engine.bulk(
        [{"_index": "pages", "_id": "new", "_source": {"list": 7, "rank": -1, "title": "new"}}]
    )
    library.engine.refresh("pages")
    try:
        found += shown(answers)
    finally:
        library.engine.bulk([{"_op_type": "delete", "_index": "pages", "_id": "new"}])
        library.engine.refresh("pages")
    assert found == [f"7-{group[0]}" for group in leader_groups(library.lists[7])]
    assert tapped.names.count("open_pit") == tapped.names.count("close_pit") == 1


def test_a_page_is_read_again_with_its_cursor_also_by_another_process_with_the_same_key(library, folded):
    first = folded.search("pages", library.body(3, size=4, ext={"dedup": {"cursor": True}}))
    body = library.body(3, size=4, ext={"dedup": {"cursor": first["dedup"]["cursor"]}})
    others = FoldedSearch(library.engine, SCHEME, cursor_key=KEY)
    pages = [ids(one.search("pages", body)["hits"]["hits"]) for one in (folded, folded, others)]
    assert pages == [pages[0]] * 3 != [[]] * 3
    with pytest.raises(ConfigError, match="cursor_key"):
        FoldedSearch(library.engine, SCHEME).search("pages", body)


@given(st.integers(min_value=0), st.integers(1, 255))
@settings(max_examples=examples(100), deadline=None)
def test_a_changed_cursor_is_refused(place, change):
    shown = ({"mark": "1", "rank": 0, "fields": {"host": ["a.org"]}},)
    cursor = Cursor("a request", "a point in time", [1, "x"], 1, 1, shown)
    sealed = encrypt_cursor(cursor, KEY)
    assert decrypt_cursor(sealed, KEY) == cursor
    raw = bytearray(urlsafe_b64decode(sealed))
    raw[place % len(raw)] ^= change
    with pytest.raises(ConfigError, match="changed"):
        decrypt_cursor(urlsafe_b64encode(raw).decode(), KEY)


@pytest.mark.parametrize("cursor", ["", "no cursor", "€", "AAAA", "A" * 200])
def test_what_is_no_cursor_is_refused(library, folded, cursor):
    with pytest.raises(ConfigError, match="changed"):
        folded.search("pages", library.body(3, ext={"dedup": {"cursor": cursor}}))


def test_a_cursor_of_another_search_is_refused(library, folded):
    first = folded.search("pages", library.body(3, size=4, ext={"dedup": {"cursor": True}}))
    cursor = first["dedup"]["cursor"]
    for body, options in (
        (library.body(4), {}),
        (library.body(3), {"window": 50}),
        (library.body(3), {"scope": "host"}),
    ):
        with pytest.raises(ConfigError, match="another search"):
            folded.search("pages", body | {"ext": {"dedup": {"cursor": cursor, **options}}})


@pytest.mark.parametrize("after_pages", [1, 3])
def test_after_its_point_in_time_ended_a_cursor_says_how_to_go_on_and_goes_on(library, after_pages):
    tapped = Tapped(library.engine)
    folded = FoldedSearch(tapped, SCHEME)
    options = FoldOptions(window=12)
    answers = folded.pages("pages", library.body(5, size=4), options)
    read = [next(answers) for _ in range(after_pages)]
    cursor = read[-1]["dedup"]["cursor"]
    pit = next(body["pit"]["id"] for body in tapped.searches if "pit" in body)
    library.engine.close_pit(pit)
    with pytest.raises(EngineError, match='"renew": true'):
        folded.search("pages", library.body(5, size=4, ext={"dedup": {"cursor": cursor}}), options)
    body = library.body(5, size=60, ext={"dedup": {"cursor": cursor, "renew": True}})
    read.append(folded.search("pages", body, options))
    expected = [f"5-{group[0]}" for group in leader_groups(library.lists[5])]
    assert shown(read) == expected
    # One more if a block has the first hits of another scheme, so that the mappings are read again.
    assert tapped.names.count("open_pit") in (2, 3)


@pytest.mark.parametrize(
    ("more", "ours", "said"),
    [
        ({"from": 5}, {}, "from"),
        ({"search_after": [1]}, {}, "search_after"),
        ({"pit": {"id": "x"}}, {}, "pit"),
        ({"size": 0}, {}, "size"),
        ({}, {"linkage": "connected"}, "leader"),
        ({}, {"fold": False}, "groups"),
        ({}, {"cursor": 7}, "cursor"),
        ({"query": {"hybrid": {"queries": []}}}, {}, "hybrid"),
        ({"rescore": {"query": {}}}, {}, "rescore"),
        ({"query": {"function_score": {"random_score": {}}}}, {}, "random_score"),
    ],
)
def test_a_cursor_that_cannot_be_meant_is_refused(library, folded, more, ours, said):
    with pytest.raises(ConfigError, match=said):
        folded.search("pages", library.body(3) | more | {"ext": {"dedup": {"cursor": True, **ours}}})


@pytest.mark.parametrize(
    "sort", ["_doc", [{"_doc": "desc"}], ["rank", {"_shard_doc": {"order": "asc"}}]], ids=str
)
def test_a_cursor_by_a_place_that_moves_is_refused_with_the_order_that_stays(library, sort):
    body = library.body(3, sort=sort, ext={"dedup": {"cursor": True}})
    server = Tapped(library.engine)
    server.can = Capabilities(seq_no=True)
    with pytest.raises(ConfigError, match=r'order of _\w*doc changes .* "_seq_no"'):
        FoldedSearch(server, SCHEME).search("pages", body)
    assert server.names == ["all_mappings"]
    # Under a point in time no place moves.
    assert len(FoldedSearch(library.engine, SCHEME).search("pages", body)["hits"]["hits"]) == 10


def test_a_cursor_without_a_total_order_is_refused(library):
    with pytest.raises(ConfigError, match="tiebreaker"):
        FoldedSearch(library.engine, SCHEME, tiebreaker=None).search(
            "pages", library.body(3, ext={"dedup": {"cursor": True}})
        )


def test_a_failure_on_the_first_page_closes_the_point_in_time(library):
    def fail(number):
        raise EngineError("the wire was cut")

    tapped = Tapped(library.engine, before=fail)
    with pytest.raises(EngineError, match=r"^the wire was cut$"):
        next(FoldedSearch(tapped, SCHEME).pages("pages", library.body(3)))
    assert tapped.names[-1] == "close_pit"


def test_a_cursor_grows_by_little_for_each_hit_shown(library, folded):
    first = folded.search("pages", library.body(8, size=1, ext={"dedup": {"cursor": True}}))
    body = library.body(8, size=11, ext={"dedup": {"cursor": True}})
    second = folded.search("pages", body)
    assert second["dedup"]["cursor"] is not None
    assert len(second["dedup"]["cursor"]) - len(first["dedup"]["cursor"]) < 10 * 180


def test_the_awaited_face_pages_too(library):
    async def read():
        folded = AsyncFoldedSearch(Awaited(library.engine), SCHEME)
        return [answer async for answer in folded.pages("pages", library.body(3, size=9))]

    assert shown(asyncio.run(read())) == [f"3-{group[0]}" for group in leader_groups(library.lists[3])]


COUNT, PAGE = 1000, 80
#: Every tenth page is a copy of one a few hundred ranks above it.
SPECS = [Spec(original=n - 700 if n >= 800 and n % 10 == 0 else n) for n in range(COUNT)]
FIRST = [rank for rank, spec in enumerate(SPECS) if spec.original == rank]
BODY = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": PAGE, "_source": ["rank"]}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    with EmbeddedEngine(tmp_path_factory.mktemp("deep"), split) as engine:
        sources = {
            f"secret-{rank}": {"rank": rank, "_dedup": fingerprint_of(spec).to_field()}
            for rank, spec in enumerate(SPECS)
        }
        fill(engine, "pages", sources, rank="integer")
        yield engine


@pytest.fixture(scope="module")
def deep(stored):
    return FoldedSearch(stored, SCHEME, cursor_key=KEY)


@pytest.mark.long
def test_at_any_depth_a_cursor_is_short_and_no_group_comes_again(deep):
    shown, cursors = [], []
    for answer in deep.pages("pages", BODY):
        shown += [hit["_source"]["rank"] for hit in answer["hits"]["hits"]]
        cursors.append(answer["dedup"]["cursor"] or "")
        assert answer["dedup"]["groups"] + answer["dedup"]["folded"] == answer["dedup"]["window"]
    assert shown == FIRST
    assert max(map(len, cursors)) < 16_000
    assert decrypt_cursor(cursors[-2], KEY).old > 500
    assert answer["dedup"]["groups_total"] == {"value": len(shown), "relation": "eq"}


def _answers(deep, *, window=PAGE, pages=1):
    """The first pages, each of the hits of one block as long as nothing folds."""
    found = deep.pages("pages", BODY, FoldOptions(window=window))
    return [next(found) for _ in range(pages)]


def _next(deep, cursor, *, window=PAGE, **more):
    body = {**BODY, "ext": {"dedup": {"cursor": cursor, **more}}}
    return deep.search("pages", body, FoldOptions(window=window))


def _ranks(answer):
    return [hit["_source"]["rank"] for hit in answer["hits"]["hits"]]


def test_a_page_that_ends_with_its_block_has_the_next_one_read_and_no_more(deep):
    answers = _answers(deep, pages=3)
    assert [answer["dedup"]["window"] for answer in answers] == [PAGE] * 3
    assert [_ranks(answer)[0] for answer in answers] == [0, PAGE, 2 * PAGE]


@pytest.mark.parametrize("window", [PAGE, 2 * PAGE])
def test_what_was_found_again_ends_where_it_was_forgotten(deep, window):
    (first,) = _answers(deep, window=window)
    forgotten = decrypt_cursor(first["dedup"]["cursor"], KEY).without_oldest(PAGE)
    assert (forgotten.old, forgotten.shown) == (PAGE, ())
    assert _ranks(_next(deep, encrypt_cursor(forgotten, KEY), window=window))[0] == PAGE


def test_a_renewed_cursor_counts_from_the_first_hit_and_forgets_none_of_the_old_ones(deep):
    *_, third = _answers(deep, pages=3)
    renewed = _next(deep, third["dedup"]["cursor"], renew=True)
    assert _ranks(renewed) == [*range(3 * PAGE, 4 * PAGE)]
    assert decrypt_cursor(renewed["dedup"]["cursor"], KEY).behind == 4 * PAGE
    shown = ({"mark": "a", "rank": 3, "fields": {}},)
    assert Cursor("a request", old=500, shown=shown).without_oldest(1).old == 500


def test_a_renewed_cursor_shows_what_came_meanwhile(stored, deep):
    (first,) = _answers(deep)
    new = {"rank": -1, "_dedup": fingerprint_of(Spec(original=COUNT)).to_field()}
    stored.bulk([{"_index": "pages", "_id": "new", "_source": new}])
    stored.refresh("pages")
    try:
        assert _ranks(_next(deep, first["dedup"]["cursor"]))[0] == PAGE
        assert _ranks(_next(deep, first["dedup"]["cursor"], renew=True))[:2] == [-1, PAGE]
    finally:
        stored.bulk([{"_op_type": "delete", "_index": "pages", "_id": "new"}])
        stored.refresh("pages")


class Renaming(Changed):
    """A real engine that gives a point in time another name with each answer; the old one is good no more."""

    can = Capabilities()

    def __init__(self, engine):
        super().__init__(engine)
        self.known, self._names = {}, map(str, itertools.count())

    def open_pit(self, *given):
        return self._named(self.engine.open_pit(*given))

    def search(self, index, body, *more):
        if "pit" not in body:
            return self.engine.search(index, body, *more)
        pit = self.known.pop(body["pit"]["id"])
        answer = self.engine.search(index, {**body, "pit": {**body["pit"], "id": pit}}, *more)
        return {**answer, "pit_id": self._named(pit)}

    def close_pit(self, name):
        self.engine.close_pit(self.known.pop(name))

    def _named(self, pit):
        name = next(self._names)
        self.known[name] = pit
        return name


@pytest.mark.long
@pytest.mark.parametrize("window", [PAGE, 25])
def test_a_point_in_time_is_read_by_the_name_that_the_last_answer_gave_it(stored, window):
    renaming = Renaming(stored)
    folded = FoldedSearch(renaming, SCHEME, cursor_key=KEY)
    answers = [*folded.pages("pages", BODY, FoldOptions(window=window))]
    assert [rank for answer in answers for rank in _ranks(answer)] == FIRST
    assert decrypt_cursor(answers[-2]["dedup"]["cursor"], KEY).old
    assert not renaming.known


def test_nothing_can_be_read_in_a_cursor(deep):
    body = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 20}
    cursor = next(deep.pages("pages", body))["dedup"]["cursor"]
    raw = urlsafe_b64decode(cursor)
    assert b"secret" not in raw
    assert b"dedup" not in raw
    counts = [raw.count(byte) for byte in range(256)]
    entropy = -sum(n / len(raw) * math.log2(n / len(raw)) for n in counts if n)
    assert entropy > 7.5
    assert next(deep.pages("pages", body))["dedup"]["cursor"] != cursor


def test_a_sort_value_too_long_for_a_cursor_is_told():
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 12_000)))
    with pytest.raises(ConfigError, match="shorter field"):
        encrypt_cursor(Cursor("a request", after=[text]), KEY)
    assert len(encrypt_cursor(Cursor("a request", after=[text[:100]]), KEY)) < LONGEST
