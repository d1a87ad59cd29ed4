"""Pages of representatives: full, disjoint, the same whatever their size; and their totals."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, fill, fingerprint_of, hits_of, ids, leader_groups, split
from support.servers.choose import examples
from support.taps import Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse
from shinglefold.rerank.fold.clustering import BlockwiseFolding, folding_of
from shinglefold.rerank.page.response import METHOD, groups_total, later_groups_total
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.fold_options import SearchRequest
from shinglefold.runtime.sans_io import run

LISTS = st.integers(0, 11)
SIZES = st.integers(1, 25)
WINDOWS = st.sampled_from([5, 10, 17, 60, 200])
POLICIES = st.sampled_from([[], ["newest:published"], ["prefer:host=b.org,a.org", "oldest:published"]])


def pages(library, number, size, **options):
    """All pages of a list, one after another, as far as they are not empty."""
    folded = FoldedSearch(library.engine, SCHEME)
    found = []
    while True:
        body = library.body(number, size=size, **{"from": len(found) * size}, ext={"dedup": options})
        found.append(folded.search("pages", body))
        if len(found[-1]["hits"]["hits"]) < size:
            return found


def shown(answers):
    return [hit for answer in answers for hit in answer["hits"]["hits"]]


@given(LISTS, SIZES, WINDOWS)
@settings(max_examples=examples(25), deadline=None)
def test_pages_show_the_groups_of_the_whole_list(library, number, size, window):
    expected = leader_groups(library.lists[number])
    hits = shown(pages(library, number, size, window=window))
    assert ids(hits) == [f"{number}-{group[0]}" for group in expected]


@pytest.mark.long
@given(LISTS, SIZES, SIZES, WINDOWS, POLICIES)
@settings(max_examples=examples(25), deadline=None)
def test_a_page_is_the_same_whatever_page_size_it_was_reached_with(
    library, number, size, other, window, representative
):
    options = {"window": window, "representative": representative}
    one, two = (shown(pages(library, number, of, **options)) for of in (size, other))
    assert [without_groups(hit) for hit in one] == [without_groups(hit) for hit in two]


def without_groups(hit):
    return {name: value for name, value in hit.items() if name != "inner_hits"}


@given(LISTS, SIZES, WINDOWS, POLICIES)
@settings(max_examples=examples(25), deadline=None)
def test_no_hit_is_shown_or_folded_twice(library, number, size, window, representative):
    answers = pages(library, number, size, window=window, representative=representative, members=100)
    everyone = [id_ for hit in shown(answers) for id_ in ids(inner(hit)["hits"])]
    assert len(everyone) == len(set(everyone))
    assert answers[-1]["dedup"]["stopped_by"] == "end_of_results"


def inner(hit):
    return hit["inner_hits"]["duplicates"]["hits"]


@given(LISTS, SIZES, st.integers(0, 40), st.integers(1, 30), st.integers(1, 80))
@settings(max_examples=examples(60), deadline=None)
def test_a_page_is_full_unless_the_answer_says_what_ended(library, number, size, start, window, cap):
    window = min(window, cap)
    body = library.body(
        number, size=size, ext={"dedup": {"window": window, "max_window": cap}}, **{"from": start}
    )
    answer = FoldedSearch(library.engine, SCHEME).search("pages", body)
    page, told = answer["hits"]["hits"], answer["dedup"]
    groups = leader_groups(library.lists[number][: told["window"]])
    assert told["groups"] == len(groups)
    assert told["folded"] == told["window"] - len(groups)
    assert len(page) == max(0, min(size, len(groups) - start))
    if told["stopped_by"] == "page_full":
        assert len(page) == size
    elif told["stopped_by"] == "end_of_results":
        assert told["window"] == 60
    else:
        assert told["stopped_by"] == "window_cap"
        assert told["window"] == cap


@given(LISTS, SIZES, WINDOWS)
@settings(max_examples=examples(30), deadline=None)
def test_reading_longer_windows_from_the_start_shows_the_same(library, number, size, window):
    options = FoldOptions(window=window)
    body = library.body(number, size=size)
    under_pit = FoldedSearch(library.engine, SCHEME).search("pages", body, options)
    tapped = Tapped(library.engine)
    again = FoldedSearch(tapped, SCHEME, tiebreaker=None).search("pages", body, options)
    assert "open_pit" not in tapped.names
    assert ids(again["hits"]["hits"]) == ids(under_pit["hits"]["hits"])


@pytest.mark.long(every=6)
@pytest.mark.parametrize("number", range(12))
def test_connected_groups_are_cut_from_one_grouping(library, number):
    options = {"linkage": "connected", "max_window": 200}
    hits = shown(pages(library, number, 7, **options))
    groups = collapse(hits_of(library.lists[number]), SCHEME, FoldOptions(linkage="connected")).groups
    assert ids(hits) == [f"{number}-{group.representative}" for group in groups]
    assert [inner(hit)["total"]["value"] for hit in hits] == [len(group.members) for group in groups]


def test_the_total_of_groups_is_exact_at_the_end_and_else_called_an_estimate(library):
    folded = FoldedSearch(library.engine, SCHEME)
    expected = len(leader_groups(library.lists[3]))
    whole = folded.search("pages", library.body(3))
    assert whole["dedup"]["groups_total"] == {"value": expected, "relation": "eq"}
    part = folded.search("pages", library.body(3, size=2), FoldOptions(window=20))
    assert part["dedup"]["groups_total"]["relation"] == "estimate"
    assert "window" in part["dedup"]["groups_total"]["method"]
    assert 0.5 * expected < part["dedup"]["groups_total"]["value"] <= 60


_COUNT, _WINDOW = 120, 10


def _hits(seed):
    """Hits of which up to eight follow each other that are equal in what they are sorted by."""
    chance = random.Random(seed)
    hits = hits_of([Spec(original=number) for number in range(_COUNT)])
    keys = [key for key in range(_COUNT) for _ in range(chance.randint(1, 8))]
    for hit, key in zip(hits, keys, strict=False):
        hit["sort"] = [key]
    return hits


def _borders(hits, most):
    """Read all hits, at most so many at a time, and return where the block of each begins."""
    body = {"query": {"match_all": {}}, "sort": ["key"], "size": _COUNT + 1}
    request = SearchRequest("pages", body, FoldOptions(window=_WINDOW))
    reading = WindowReader(request, SCHEME, "_dedup", tie="_seq_no", most=most)

    def answer(call):
        _, asked = call.arguments
        after = asked.get("search_after", [-1])
        found = [hit for hit in hits if hit["sort"] > after][: asked["size"]]
        total = {"value": len(hits), "relation": "eq"}
        return {"hits": {"total": total, "hits": found}, "_shards": {"total": 2, "failed": 0}}

    run(reading.read_on(), answer)
    assert len(reading.hits) == _COUNT
    return [reading.block_start(place) for place in range(_COUNT)]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [9, 11, 16, 25, 9_999])
def test_where_blocks_end_depends_on_the_hits_alone(seed, most):
    hits = _hits(seed)
    borders = _borders(hits, most)
    expected, begin = [], 0
    while begin < _COUNT:
        end = min(begin + _WINDOW, _COUNT)
        while end < _COUNT and hits[end]["sort"] == hits[end - 1]["sort"]:
            end -= 1
        expected += [begin] * (end - begin)
        begin = end
    assert borders == expected


#: Mean sizes of groups: all alone, pairs, fives, a mixture of small and large.
GROUP_SIZES = {"alone": [1], "pairs": [2], "fives": [5], "mixed": [1, 1, 1, 2, 3, 8]}


def ranked(rng, sizes, hits, scatter):
    """The group of each hit in rank order, about so many hits; copies are ``scatter`` of the list apart."""
    drawn = rng.choice(sizes, hits // int(np.ceil(np.mean(sizes))))
    groups = np.repeat(np.arange(len(drawn)), drawn)
    scores = rng.random(len(drawn))[groups] + scatter * rng.standard_normal(len(groups))
    return groups[np.argsort(scores)]


def first_ranks(groups):
    return np.sort(np.unique(groups, return_index=True)[1]).tolist()


def mean_ratio(sizes, hits, window, scatter, rounds=60):
    """The mean of the estimates as a share of the truth."""
    rng = np.random.default_rng(11)
    ratios = []
    for _ in range(rounds):
        groups = ranked(rng, sizes, hits, scatter)
        total = {"value": len(groups), "relation": "eq"}
        told = groups_total(first_ranks(groups[:window]), window, total, ended=False)
        assert told["relation"] == "estimate"
        ratios.append(told["value"] / len(np.unique(groups)))
    return float(np.mean(ratios))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("sizes", GROUP_SIZES.values(), ids=GROUP_SIZES)
@pytest.mark.parametrize(("hits", "window"), [(500, 200), (2_000, 200), (10_000, 1_000)])
@pytest.mark.parametrize("scatter", [0, 0.003, 0.03])
def test_where_copies_rank_near_each_other_it_is_nearly_right_in_the_mean(sizes, hits, window, scatter):
    assert 0.85 <= mean_ratio(sizes, hits, window, scatter) <= 1.15


@pytest.mark.parametrize("sizes", GROUP_SIZES.values(), ids=GROUP_SIZES)
def test_where_copies_are_scattered_it_is_too_high_by_the_size_of_a_group_at_worst(sizes):
    ratio = mean_ratio(sizes, 2_000, 200, scatter=100)
    assert 0.95 <= ratio <= np.mean(sizes)
    # The plain share of groups in the window would be further off.
    assert ratio <= mean_share(sizes)


def mean_share(sizes):
    rng = np.random.default_rng(11)
    lists = [ranked(rng, sizes, 2_000, 100) for _ in range(60)]
    found = [len(np.unique(one[:200])) / 200 * len(one) / len(np.unique(one)) for one in lists]
    return float(np.mean(found))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(0, 1000), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_it_is_never_below_what_was_seen_nor_above_all_hits(groups, more, exact):
    first = first_ranks(np.array(groups))
    total = {"value": len(groups) + more, "relation": "eq" if exact else "gte"}
    told = groups_total(first, len(groups), total, ended=False)
    assert len(first) <= told["value"] <= len(first) + more
    if told["relation"] == "estimate":
        assert (told["of"], told["window"], told["method"]) == (total, len(groups), METHOD)
    else:
        assert more == 0
        assert told == {"value": len(first), "relation": "eq" if exact else "gte"}


@pytest.mark.parametrize("total", [None, 7, {}, {"value": None}, {"value": 5, "relation": "gte"}])
def test_where_the_engine_says_too_little_only_what_was_seen_is_told(total):
    assert groups_total([0, 3], 5, total, ended=False) == {"value": 2, "relation": "gte"}


def test_at_the_end_it_is_counted_whatever_the_engine_says():
    assert groups_total([0, 3], 5, {"value": 9, "relation": "gte"}, ended=True) == {
        "value": 2,
        "relation": "eq",
    }
    assert groups_total([], 0, {"value": 0, "relation": "eq"}, ended=False) == {"value": 0, "relation": "eq"}


def test_a_later_page_of_a_cursor_repeats_the_estimate_until_more_were_seen():
    told = {"value": 30, "relation": "estimate", "method": METHOD, "window": 10, "of": {}}
    assert later_groups_total(told, 12, ended=False) == told
    assert later_groups_total(told, 31, ended=False) == {**told, "value": 31}
    assert later_groups_total(told, 28, ended=True) == {"value": 28, "relation": "eq"}
    assert later_groups_total({"value": 3, "relation": "gte"}, 5, ended=False) == {
        "value": 5,
        "relation": "gte",
    }


@given(st.integers(0, 11), st.integers(1, 20), st.integers(2, 30), st.sampled_from(["page", "cap"]))
@settings(max_examples=40, deadline=None)
def test_a_search_never_touches_the_total_of_hits(library, number, size, window, why):
    cap = window if why == "cap" else 1000
    body = library.body(number, size=size, track_total_hits=True)
    plain = library.engine.search("pages", body)
    answer = FoldedSearch(library.engine, SCHEME).search(
        "pages", body, FoldOptions(window=window, max_window=cap)
    )
    assert answer["hits"]["total"] == plain["hits"]["total"]
    told, truth = answer["dedup"]["groups_total"], len(leader_groups(library.lists[number]))
    if told["relation"] == "eq":
        assert told["value"] == truth
    else:
        assert told["relation"] == "estimate"
        assert answer["dedup"]["stopped_by"] in ("page_full", "window_cap")
        assert told["window"] == answer["dedup"]["window"]
        assert told["value"] >= answer["dedup"]["groups"]


def test_a_cursor_tells_the_estimate_of_its_first_page_and_counts_at_the_end(library):
    pages = list(
        FoldedSearch(library.engine, SCHEME).pages(
            "pages", library.body(3, size=8, track_total_hits=True), FoldOptions(window=10)
        )
    )
    told = [page["dedup"]["groups_total"] for page in pages]
    assert len(told) > 2
    assert told[0]["relation"] == "estimate"
    assert {one["window"] for one in told[:-1] if "window" in one} == {told[0]["window"]}
    assert told[-1] == {"value": len(leader_groups(library.lists[3])), "relation": "eq"}


def test_the_total_after_a_hit_is_not_estimated_from_all_hits(library):
    body = library.body(5, size=2, search_after=[19])
    answer = FoldedSearch(library.engine, SCHEME).search("pages", body, FoldOptions(window=5))
    assert answer["dedup"]["groups_total"]["relation"] == "gte"


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    with EmbeddedEngine(tmp_path_factory.mktemp("dated"), split) as engine:
        copy = {"open": True, "_dedup": fingerprint_of(Spec()).to_field()}
        days = ["2026-02-01", "2026-02-01T00:00:00+05:00", "2026-02-01T09:00", "soon"]
        sources = {f"{number}": {"day": day, **copy} for number, day in enumerate(days)}
        fill(engine, "pages", sources, day="keyword", open="boolean")
        yield engine


def test_days_that_are_keywords_are_compared_as_iso_8601(dated):
    folded = FoldedSearch(dated, SCHEME)
    for policy, shown_one in (("newest:day", "2"), ("oldest:day", "1")):
        assert ids(
            folded.search("pages", {}, FoldOptions.parse({"representative": policy}))["hits"]["hits"]
        ) == [shown_one]
    near = folded.search("pages", {}, FoldOptions.parse({"scope": "day:1d", "members": 5}))
    assert sorted(len(inner(hit)["hits"]) for hit in near["hits"]["hits"]) == [1, 3]


@pytest.mark.parametrize("given", [{"representative": "newest:open"}, {"scope": "open:7d"}])
def test_a_field_without_dates_is_refused_as_a_date_also_where_it_was_named_otherwise_before(dated, given):
    folded = FoldedSearch(dated, SCHEME)
    assert len(folded.search("pages", {}, FoldOptions.parse({"scope": "open"}))["hits"]["hits"]) == 1
    with pytest.raises(ConfigError, match="'open' is of type boolean, which has no dates"):
        folded.search("pages", {}, FoldOptions.parse(given))


class Counted(list):
    """Sort values that count how often they are compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("ties", [1, 250, 3_000])
def test_hits_that_are_equal_in_their_order_stay_in_one_block_at_no_more_cost(ties):
    hits = [{"_index": "i", "_id": f"{n}", "sort": Counted([n // ties])} for n in range(6_000)]
    folding = folding_of(SCHEME, FoldOptions(), "_dedup")
    blocks, Counted.compared = BlockwiseFolding(folding, 200), 0
    blocks.pending = list(hits)
    blocks.fold([], last=True, ties=True)
    assert folding.hits == hits
    assert Counted.compared < 4 * len(hits)
    assert blocks.begin_of(5_999) == {1: 5_800, 250: 5_750, 3_000: 3_000}[ties]
