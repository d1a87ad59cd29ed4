"""Copies found anywhere in an index, on a real one, against every pair compared value by value."""

import asyncio
from collections.abc import Iterator

import pytest
from support.hits import SCHEME, find_similar, fingerprint_of, split
from support.random_pages import COUNT, SPECS, alike
from support.taps import Awaited, Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, IndexMissing, InputError, SchemeMismatch
from shinglefold.ingest import mappings
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import Scope
from shinglefold.rerank.similar import AsyncSimilarSearch, QueryDocument, SimilarOptions, SimilarSearch


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("similar"), split) as engine:
        made = mappings(SCHEME)
        made["properties"] |= {"host": {"type": "keyword"}, "published": {"type": "date"}}
        made["properties"] |= {"title": {"type": "text"}}
        engine.create_index("pages", made, {})
        engine.create_index("plain", {"properties": {"title": {"type": "text"}}}, {})
        assert not engine.bulk(map(action, range(COUNT))).failures
        engine.refresh("pages")
        yield engine


def action(number: int) -> dict[str, object]:
    spec = SPECS[number]
    source = {"title": f"page {number}", "_dedup": fingerprint_of(spec).to_field()}
    source["published"] = (spec.published or 0) * 1000
    if spec.host is not None:
        source["host"] = spec.host
    return {"_index": "pages", "_id": f"p{number:03}", "_source": source}


def copies(number: int, least: float = SCHEME.decision.min_resemblance, **narrowed: str) -> set[str]:
    """The ids of all that match and share a supershingle or the text, found without the product."""
    return {
        f"p{other:03}"
        for other, spec in enumerate(SPECS)
        if other != number
        and alike(number, other, least)
        and all(getattr(spec, name) == value for name, value in narrowed.items())
    }


#: One with many copies.
RICH = max(range(COUNT), key=lambda number: len(copies(number)) * SPECS[number].signed)
RICH_ID = f"p{RICH:03}"
USUAL = [number for number, spec in enumerate(SPECS) if spec.scheme == SCHEME.id][:60]


def ids(page) -> list[str]:
    return [one.id for one in page.matches]


def test_every_copy_is_found_and_nothing_else(engine):
    search = SimilarSearch(engine)
    found = 0
    for number in USUAL:
        page = search.find("pages", f"p{number:03}", SimilarOptions(size=COUNT))
        assert set(ids(page)) == copies(number)
        assert (page.total, page.exact, page.stopped_by) == (len(ids(page)), True, "end_of_results")
        found += page.total
    assert found > 100


def test_the_most_alike_come_first_and_equal_ones_by_name(engine):
    page = find_similar(engine, "pages", RICH_ID, size=COUNT)
    keys = [(-one.resemblance, one.id) for one in page.matches]
    assert keys == sorted(keys)
    assert len(keys) > 5
    assert all(one.resemblance == 1 for one in page.matches if one.same_text)


@pytest.mark.long(every=12)
@pytest.mark.parametrize("window", [1, 3, pytest.param(7, marks=pytest.mark.long), 1000])
@pytest.mark.parametrize("size", [1, 4])
def test_pages_have_each_copy_once_whatever_the_block(engine, window, size):
    search = SimilarSearch(engine)
    for number in USUAL[:8]:
        pages = list(
            search.pages("pages", f"p{number:03}", SimilarOptions(size=size, window=window, max_window=10))
        )
        found = [id_ for page in pages for id_ in ids(page)]
        assert sorted(found) == sorted(copies(number))
        assert pages[-1].next is None
        assert all(len(page.matches) <= size for page in pages)


def test_a_text_that_is_not_stored_finds_the_copies_of_its_fingerprint(engine):
    made = fingerprint_of(SPECS[USUAL[0]])
    stored = f"p{USUAL[0]:03}"
    page = find_similar(engine, "pages", made, size=COUNT)
    assert set(ids(page)) == copies(USUAL[0]) | {stored}
    assert page.matches[0].same_text


def test_the_look_up_tells_all_with_one_request(engine):
    tapped = Tapped(engine)
    search = SimilarSearch(tapped, SCHEME, "_dedup")
    prints = [fingerprint_of(SPECS[number]) for number in USUAL]
    found = search.look_up("pages", prints, SimilarOptions(window=COUNT))
    assert tapped.names == ["all_mappings", "msearch"]
    for number, one in zip(USUAL, found, strict=True):
        assert {match.id for match in one.matches} == copies(number) | {f"p{number:03}"}
        assert one.complete
        assert not one.lacks


def test_a_look_up_says_where_it_did_not_look_at_all_candidates(engine):
    (one,) = SimilarSearch(engine).look_up("pages", [fingerprint_of(SPECS[RICH])], SimilarOptions(window=2))
    assert (one.complete, one.candidates) == (False, 2)
    assert one.matches[0].same_text


def test_awaited_it_finds_the_same(engine):
    alone = find_similar(engine, "pages", RICH_ID)
    awaited = asyncio.run(AsyncSimilarSearch(Awaited(engine)).find("pages", RICH_ID))
    assert awaited.to_json() == alone.to_json()


def test_a_filter_and_a_scope_narrow_what_is_found(engine):
    for number in USUAL[:20]:
        wanted = f"p{number:03}"
        chosen = find_similar(engine, "pages", wanted, size=COUNT, filters=({"term": {"host": "a.org"}},))
        assert set(ids(chosen)) == copies(number, host="a.org")
        own = SPECS[number].host
        scoped = find_similar(engine, "pages", wanted, size=COUNT, scope=(Scope("host"),))
        assert set(ids(scoped)) == (copies(number, host=own) if own else set())


def test_a_fingerprint_brings_the_values_of_its_scopes(engine):
    asked = QueryDocument(fingerprint_of(SPECS[RICH]), {"published": [5]})
    near = find_similar(engine, "pages", asked, size=COUNT, scope=(Scope("published", within=1e9),))
    none = find_similar(engine, "pages", asked, size=COUNT, scope=(Scope("published", within=0.0),))
    assert near.total > 0
    assert none.total == 0


def test_a_lower_threshold_finds_more(engine):
    for number in USUAL[:10]:
        page = find_similar(engine, "pages", f"p{number:03}", size=COUNT, min_resemblance=0.4)
        assert set(ids(page)) == copies(number, 0.4)


def test_supershingles_asked_for_are_counted_by_the_engine(engine):
    own = SPECS[RICH]
    words = set(fingerprint_of(own).supershingles)
    page = find_similar(engine, "pages", RICH_ID, size=COUNT, min_shared=5, min_resemblance=0.0)
    ratio = SCHEME.decision.min_length_ratio
    wanted = {
        f"p{number:03}"
        for number, spec in enumerate(SPECS)
        if number != RICH
        and spec.scheme == SCHEME.id
        and 2 * min(own.shingles, spec.shingles) / (own.shingles + spec.shingles) >= ratio
        and len(words & set(fingerprint_of(spec).supershingles)) >= 5
    }
    assert set(ids(page)) == wanted
    assert len(wanted) > 5


def test_sources_are_fetched_for_the_copies_shown_only(engine):
    tapped = Tapped(engine)
    page = find_similar(tapped, "pages", RICH_ID, size=2, source=["title"])
    assert [one.hit["_source"] for one in page.matches] == [
        {"title": f"page {int(one.id[1:])}"} for one in page.matches
    ]
    assert tapped.searches[-1]["size"] == 2


def test_an_empty_text_has_no_copies_and_asks_for_nothing(engine):
    tapped = Tapped(engine)
    page = find_similar(tapped, "pages", Fingerprint(SCHEME.id, "und", 0))
    assert (page.total, page.stopped_by) == (0, "nothing_to_compare")
    assert tapped.names == ["all_mappings"]


@pytest.mark.parametrize(
    ("index", "wanted", "error", "said"),
    [
        ("pages", "absent", InputError, "no document 'absent'"),
        ("plain", "p000", ConfigError, "not made for fingerprints"),
        ("absent", "p000", IndexMissing, "absent"),
        ("pages", Fingerprint("sf3-other", "ru", 3, "x"), SchemeMismatch, "scheme of the index"),
    ],
)
def test_what_cannot_be_asked_is_told(engine, index, wanted, error, said):
    with pytest.raises(error, match=said):
        find_similar(engine, index, wanted)


def test_a_place_of_another_search_is_refused(engine):
    page = find_similar(engine, "pages", RICH_ID, size=1)
    with pytest.raises(ConfigError, match="another document"):
        SimilarSearch(engine).find("pages", f"p{USUAL[1]:03}", SimilarOptions(size=1), place=page.next)
    with pytest.raises(ConfigError, match="not a place"):
        SimilarSearch(engine).find("pages", RICH_ID, SimilarOptions(size=1), place="W10=")
