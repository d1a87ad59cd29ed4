"""Copies found anywhere are decided by their texts, where both are at hand."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
from support.doubtful_texts import doubtful_texts
from support.hits import find_similar, split
from support.taps import Tapped

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter, Pipeline, default_definition, mappings
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Scheme
from shinglefold.offline.compare_texts import Comparison, compare_texts
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, duplicates
from shinglefold.rerank.similar import QueryDocument, SimilarOptions, SimilarSearch

ALL = SimilarOptions(size=100)


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return make_scheme(codes=["ru", "any"])


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {f"p{at}": body for at, body in enumerate(doubtful_texts())}


@pytest.fixture(scope="module")
def engine(
    tmp_path_factory: pytest.TempPathFactory, scheme: Scheme, pages: dict[str, str]
) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("similar"), split) as engine:
        made = mappings(scheme)
        made["properties"] |= {"body": {"type": "text"}, "host": {"type": "keyword"}}
        engine.create_index("pages", made, {})
        given = [{"id": id_, "body": body, "host": "a.org"} for id_, body in pages.items()]
        stored = [one.document or {} for one in Pipeline.from_json(default_definition(), scheme).run(given)]
        assert not engine.bulk(
            {"_index": "pages", "_id": one["id"], "_source": one} for one in stored
        ).failures
        engine.refresh("pages")
        yield engine


@lru_cache
def _canonicalizer(_: str) -> Canonicalizer:
    return Canonicalizer.of(make_scheme(codes=["ru", "any"]))


def _compared(scheme: Scheme, one: str, other: str) -> Comparison:
    return compare_texts((one, other), ("a", "b"), (None, None), scheme, _canonicalizer(scheme.id))


def _copies(scheme: Scheme, pages: dict[str, str], id_: str, verify: str) -> set[str]:
    """The ids of what two texts compared alone say, if they share a supershingle."""
    chosen = scheme.with_options(verify=verify)
    return {
        other for other, text in pages.items() if other != id_ and _compared(chosen, pages[id_], text).folds
    }


def _ids(page: Any) -> set[str]:
    return {match.id for match in page.matches}


def test_texts_decide_unless_signatures_are_asked_for(engine, scheme, pages):
    by_text = find_similar(engine, "pages", "p0", size=100)
    by_signature = find_similar(engine, "pages", "p0", size=100, verify="signature")
    assert _ids(by_text) == _copies(scheme, pages, "p0", "text")
    assert _ids(by_signature) == _copies(scheme, pages, "p0", "signature")
    assert _ids(by_text) != _ids(by_signature)
    assert (by_text.verify, by_signature.verify) == ("text", "signature")


def test_a_match_tells_the_edit_similarity_that_decided(engine, scheme, pages):
    page = find_similar(engine, "pages", "p0", size=100)
    told = {match.id: match.similarity for match in page.matches}
    asked = {id_: similarity for id_, similarity in told.items() if similarity is not None}
    assert asked
    assert any(similarity is None for similarity in told.values())
    for id_, similarity in asked.items():
        assert similarity == pytest.approx(_compared(scheme, pages["p0"], pages[id_]).similarity)
    shown = {one["_id"]: one.get("similarity") for one in page.to_json()["matches"]}
    assert shown.keys() == told.keys()
    assert {id_ for id_, similarity in shown.items() if similarity is not None} == asked.keys()


def test_it_takes_one_request_more_and_only_where_texts_are_in_doubt(engine):
    tapped = Tapped(engine)
    SimilarSearch(tapped).find("pages", "p0", ALL)
    assert tapped.names == ["all_mappings", "search", "search", "search"]
    again = Tapped(engine)
    SimilarSearch(again).find("pages", "p0", SimilarOptions(size=100, verify="signature"))
    assert again.names == ["all_mappings", "search", "search"]


@pytest.mark.parametrize("window", [2, 5, 1000])
def test_pages_have_each_copy_once_whatever_the_block(engine, scheme, pages, window):
    search = SimilarSearch(engine)
    options = SimilarOptions(size=3, window=window)
    found = [match.id for page in search.pages("pages", "p0", options) for match in page.matches]
    assert sorted(found) == sorted(_copies(scheme, pages, "p0", "text"))


def test_a_text_that_is_not_stored_is_compared_as_one_that_is(engine, scheme, pages):
    (made,) = Fingerprinter(scheme).fingerprint([pages["p0"]])
    stored = _ids(find_similar(engine, "pages", "p0", size=100))
    given = find_similar(engine, "pages", QueryDocument(made, text=pages["p0"]), size=100)
    assert _ids(given) == stored | {"p0"}
    bare = find_similar(engine, "pages", made, size=100)
    assert bare.verify == "signature"
    assert _ids(bare) == _copies(scheme, pages, "p0", "signature") | {"p0"}


@pytest.mark.parametrize(("rows", "texts"), [(64, 100), (2, 1), (3, 5)])
def test_a_look_up_decides_as_each_alone(engine, pages, monkeypatch, rows, texts):
    search, names = SimilarSearch(engine), list(pages)
    alone = [_ids(search.find("pages", name, ALL)) for name in names]
    monkeypatch.setattr("shinglefold.rerank.similar.decision._ROWS", rows)
    monkeypatch.setattr("shinglefold.rerank.similar.decision._AT_ONCE", texts)
    prints = Fingerprinter(Recipe.of(engine.mappings("pages"), "pages").scheme).fingerprint(
        list(pages.values())
    )
    asked = [QueryDocument(made, text=text) for made, text in zip(prints, pages.values(), strict=True)]
    found = search.look_up("pages", asked, ALL)
    assert [
        {match.id for match in one.matches} - {name} for one, name in zip(found, names, strict=True)
    ] == alone


def test_whoever_is_found_finds_the_other(engine, pages):
    search = SimilarSearch(engine)
    found = {name: _ids(search.find("pages", name, ALL)) for name in pages}
    assert all(one in found[other] for one, others in found.items() for other in others)


def test_a_threshold_says_what_decides_and_two_do_not(engine, pages):
    assert find_similar(engine, "pages", "p0", min_resemblance=0.7).verify == "signature"
    close = find_similar(engine, "pages", "p0", size=100, min_similarity=0.93)
    assert close.verify == "text"
    assert _ids(close) < _ids(find_similar(engine, "pages", "p0", size=100))
    with pytest.raises(ConfigError, match="one of them decides"):
        SimilarOptions(min_resemblance=0.7, min_similarity=0.8)
    with pytest.raises(ConfigError, match="way to verify"):
        SimilarOptions(verify="texts")  # type: ignore[arg-type]


def test_by_keywords_whatever_shares_one_is_found(engine, scheme, pages):
    found = _ids(find_similar(engine, "pages", "p0", size=100, verify="keywords"))
    one, *others = Fingerprinter(scheme).fingerprint(list(pages.values()))
    sharing = {
        id_
        for id_, other in zip(list(pages)[1:], others, strict=True)
        if set(one.supershingles) & set(other.supershingles)
    }
    assert found == sharing


def test_members_from_the_index_are_decided_by_text_as_similar_does(engine, scheme):
    search = FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())
    body: dict[str, Any] = {"query": {"ids": {"values": ["p0"]}}, "size": 1}
    for said in ({}, {"verify": "text"}, {"verify": "signature"}):
        dedup = {"members": {"size": 50, "from": "index"}, **said}
        for source in (True, ["host"], False):
            page = search.search("pages", {**body, "_source": source, "ext": {"dedup": dedup}})
            (hit,) = page["hits"]["hits"]
            own = said if said == {"verify": "signature"} else {}
            wanted = find_similar(engine, "pages", "p0", size=100, **own)
            assert {one["_id"] for one in duplicates(hit)} == _ids(wanted)
