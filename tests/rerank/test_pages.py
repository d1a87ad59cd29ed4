"""Pages of representatives over a real index: full, disjoint, the same whatever their size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, hits_of, ids, leader_groups
from support.servers.choose import examples
from support.taps import Tapped

from shinglefold.rerank import FoldedSearch, FoldOptions, collapse

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
