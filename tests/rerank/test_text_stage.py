"""Pairs in doubt are decided by their texts: on a page, and among copies found anywhere."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.copied_texts import doubtful_texts
from support.hits import fill, find_similar, groups, signed, split
from support.taps import Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter, default_definition, mappings
from shinglefold.model.recipe import Recipe, with_never_differ
from shinglefold.model.scheme import Scheme
from shinglefold.offline.compare_texts import Comparison, compare_texts
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.fold.text_verification import TextStage, TextStages
from shinglefold.rerank.fold.uncertain_pairs import Signatures, apply_text_verdicts, pairs_of
from shinglefold.rerank.hits import FingerprintReader
from shinglefold.rerank.request.fold_options import Scope
from shinglefold.rerank.similar import QueryDocument, SimilarOptions, SimilarSearch
from shinglefold.sketch.b_bit_minhash import agreement_rows


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return make_scheme(codes=["ru", "any"])


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {f"p{at}": body for at, body in enumerate(doubtful_texts())}


@pytest.fixture(scope="module")
def ranked_pages(pages: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"id": id_, "rank": at, "body": body, "host": "a.org"} for at, (id_, body) in enumerate(pages.items())
    ]


@pytest.fixture(scope="module")
def engine(
    tmp_path_factory: pytest.TempPathFactory, scheme: Scheme, ranked_pages: list[dict[str, Any]]
) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("texts"), split) as engine:
        types = {"body": "text", "rank": "integer", "host": "keyword"}
        fill(engine, "pages", signed(scheme, ranked_pages), mappings(scheme), **types)
        yield engine


@pytest.fixture
def search(engine: EmbeddedEngine, scheme: Scheme) -> FoldedSearch:
    return FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())


def _decided(stage: TextStage, pairs: list[tuple[int, int]], sources: dict[int, Any]) -> dict[Any, Any]:
    texts = {place: stage.text(source) for place, source in sources.items()}
    return stage.decide_texts(pairs, texts, set(pairs))


def _shown(answer: dict[str, Any]) -> dict[str, list[str]]:
    return {group[0]: group for group in groups(answer)}


def _body(**dedup: Any) -> dict[str, Any]:
    return {
        "query": {"match_all": {}},
        "sort": [{"rank": "asc"}],
        "size": 20,
        "ext": {"dedup": {"members": 30, **dedup}},
    }


def test_the_page_is_what_the_texts_say(
    search: FoldedSearch, scheme: Scheme, ranked_pages: list[dict[str, Any]]
):
    stage = TextStages().stage(scheme, ("body",))
    sources = dict(enumerate(ranked_pages))
    by_signature = _shown(search.search("pages", _body()))
    answer = search.search("pages", _body(verify="text"))
    by_text = _shown(answer)
    alike = _decided(stage, [(0, at) for at in range(1, len(ranked_pages))], sources)
    wanted = {"p0", *(f"p{at}" for (_, at), verdict in alike.items() if verdict)}
    assert by_signature != by_text
    assert set(by_text["p0"]) == wanted
    assert answer["dedup"]["by_text"]["joined"] + answer["dedup"]["by_text"]["parted"] > 0
    assert sorted(name for group in by_text.values() for name in group) == sorted(
        page["id"] for page in ranked_pages
    )


def test_texts_that_a_request_does_not_show_are_read_beside_it(search: FoldedSearch):
    shown = _shown(search.search("pages", _body(verify="text")))
    hidden = search.search("pages", {**_body(verify="text"), "_source": ["rank"]})
    assert _shown(hidden) == shown
    assert all(set(hit["_source"]) == {"rank"} for hit in hidden["hits"]["hits"])


def test_pages_go_on_from_each_other(search: FoldedSearch, ranked_pages: list[dict[str, Any]]):
    seen = [
        name
        for page in search.pages("pages", {**_body(verify="text"), "size": 2})
        for group in _shown(page).values()
        for name in group
    ]
    assert len(seen) == len(set(seen))
    assert set(seen) <= {page["id"] for page in ranked_pages}


def test_without_a_threshold_nothing_is_in_doubt(scheme: Scheme):
    options = FoldOptions(min_resemblance=0.0, min_shared=1)
    prints = FingerprintReader(scheme, "_dedup").read([{}, {}])
    assert Signatures(scheme, options, (0, 1), prints).classify([(0, 1)]) == ([], set(), set())


@pytest.mark.parametrize(
    "options",
    [
        FoldOptions(),
        FoldOptions(min_resemblance=0.3, min_length_ratio=0.0),
        FoldOptions(min_resemblance=0.3, min_length_ratio=0.99),
        FoldOptions(min_shared=2),
        FoldOptions(scope=(Scope("host"),)),
    ],
)
def test_pairs_one_by_one_match_as_all_of_a_page_do(
    scheme: Scheme, ranked_pages: list[dict[str, Any]], options: FoldOptions
):
    made = [*signed(scheme, ranked_pages).values()]
    hits = [{"_source": {**one, "host": f"h{at % 2}"}} for at, one in enumerate([*made, made[0], {}])]
    prints = FingerprintReader(scheme, "_dedup", options.scope).read(hits)
    matcher = Matcher.of(scheme, options)
    ready, rows = matcher.prepare(prints), np.arange(len(hits))
    one, other = np.triu_indices(len(hits), 1)
    agreeing = agreement_rows(
        prints.signatures[one], prints.signatures[other], scheme.sketch.bits, scheme.sketch.values
    )
    whole = matcher.matches(ready, rows, ready)[one, other]
    assert matcher.matches_of_pairs(prints, one, other, agreeing).tolist() == whole.tolist()
    assert 0 < whole.sum() < len(whole)


GROUPS = [Group(0, (0, 2)), Group(1, (1,)), Group(3, (3, 4))]


def test_only_what_is_shown_and_its_own_members_are_asked():
    assert pairs_of(GROUPS, [[0, 2], [1], [3, 4]]) == [(0, 1), (0, 3), (1, 3), (0, 2), (3, 4)]


def test_alike_groups_join_the_better_ranked_and_others_part():
    verdicts = {(0, 2): False, (1, 3): True}
    assert apply_text_verdicts(GROUPS, verdicts) == (
        [Group(0, (0,)), Group(1, (1, 3, 4)), Group(2, (2,))],
        1,
        1,
    )
    assert apply_text_verdicts(GROUPS, {}).groups == GROUPS
    assert apply_text_verdicts(GROUPS, {(0, 2): False}, {2}).groups == GROUPS


def test_an_explained_page_tells_of_members_whose_texts_decided(search: FoldedSearch):
    answer = search.search("pages", _body(verify="text", explain=True))
    members = [one for group in answer["dedup"]["explain"] for one in group["members"]]
    told = [one["text"] for one in members if "text" in one]
    assert told
    assert len(told) < len(members)
    assert all(one["decided"] and one["needed"] == 0.8 for one in told)
    assert any(one.get("similarity", 0) >= 0.8 for one in told)
    by_signature = search.search("pages", _body(explain=True))["dedup"]["explain"]
    assert not any("text" in one for group in by_signature for one in group["members"])


def test_words_that_were_read_lately_say_the_same_again(scheme: Scheme, ranked_pages: list[dict[str, Any]]):
    stage = TextStages().stage(scheme, ("body",))
    pairs = [(0, at) for at in range(1, len(ranked_pages))]
    sources = dict(enumerate(ranked_pages))
    first = _decided(stage, pairs, sources)
    assert _decided(stage, pairs, sources) == first
    # Many other texts in between, so that they are read anew.
    many = {at: {"body": f"{ranked_pages[at % len(ranked_pages)]['body']} {at}"} for at in range(2100)}
    _decided(stage, [(at, at + 1) for at in range(2099)], many)
    assert _decided(stage, pairs, sources) == first
    assert _decided(stage, [(0, 1)], {0: {"body": "\ud800 one two"}, 1: {"body": "\ud800 one two"}})[
        0, 1
    ].alike


def test_members_that_leave_a_group_together_make_one(tmp_path, scheme):
    """Cards of one product whose shown copy has another number fold with each other, the newest shown."""
    body = "Смартфон с экраном, тройной камерой и быстрой зарядкой, корпус из стекла, защита от воды и пыли"
    cards = [
        {"id": "a1", "date": "2026-11-01", "body": f"Ока X5 128 ГБ. {body}"},
        {"id": "b1", "date": "2026-11-02", "body": f"Ока X5 128 ГБ, новый. {body}"},
        {"id": "a2", "date": "2026-11-03", "body": f"Ока X5 256 ГБ. {body}"},
    ]
    with EmbeddedEngine(tmp_path, split) as engine:
        strict = with_never_differ(default_definition(), "_dedup", ["numbers"])
        fill(engine, "cards", signed(scheme, cards, strict), mappings(scheme), body="text", date="date")
        options = FoldOptions.parse({"verify": "text", "representative": "newest:date"})
        for shown in (True, ["date"]):
            body_of_search = {"query": {"match_all": {}}, "_source": shown}
            page = FoldedSearch(engine, scheme).search("cards", body_of_search, options)
            assert _shown(page) == {"b1": ["b1", "a1"], "a2": ["a2"]}


ALL = SimilarOptions(size=100)


def _compared(scheme: Scheme, one: str, other: str) -> Comparison:
    return compare_texts((one, other), ("a", "b"), (None, None), scheme)


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


@pytest.mark.long(every=3)
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


@pytest.mark.long(every=3)
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


def test_members_from_the_index_are_decided_by_text_as_similar_does(engine, search):
    body: dict[str, Any] = {"query": {"ids": {"values": ["p0"]}}, "size": 1}
    for said in ({}, {"verify": "text"}, {"verify": "signature"}):
        dedup = {"members": {"size": 50, "from": "index"}, **said}
        for source in (True, ["host"], False):
            page = search.search("pages", {**body, "_source": source, "ext": {"dedup": dedup}})
            (hit,) = page["hits"]["hits"]
            own = said if said == {"verify": "signature"} else {}
            wanted = find_similar(engine, "pages", "p0", size=100, **own)
            assert {one["_id"] for one in duplicates(hit)} == _ids(wanted)
