"""Pairs of a page whose estimates are in doubt are decided by their texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.doubtful_texts import doubtful_texts
from support.hits import split

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.model.recipe import with_never_differ
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.fold.text_verification import TextStage, TextStages
from shinglefold.rerank.fold.uncertain_pairs import Signatures, apply_text_verdicts, pairs_of
from shinglefold.rerank.hits import FingerprintReader
from shinglefold.rerank.request.fold_options import Scope
from shinglefold.sketch.b_bit_minhash import agreement_rows


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return make_scheme(codes=["ru", "any"])


@pytest.fixture(scope="module")
def pages() -> list[dict[str, Any]]:
    return [{"id": str(at), "rank": at, "body": body} for at, body in enumerate(doubtful_texts())]


@pytest.fixture(scope="module")
def search(
    tmp_path_factory: pytest.TempPathFactory, scheme: Scheme, pages: list[dict[str, Any]]
) -> Iterator[FoldedSearch]:
    with EmbeddedEngine(tmp_path_factory.mktemp("texts"), split) as engine:
        made = mappings(scheme)
        made["properties"] |= {"body": {"type": "text"}, "rank": {"type": "integer"}}
        engine.create_index("pages", made, {})
        outcomes = Pipeline.from_json(default_definition(), scheme).run(pages)
        stored = [outcome.document or {} for outcome in outcomes]
        assert not engine.bulk(
            {"_index": "pages", "_id": one["id"], "_source": one} for one in stored
        ).failures
        engine.refresh("pages")
        yield FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker())


def _decided(stage: TextStage, pairs: list[tuple[int, int]], sources: dict[int, Any]) -> dict[Any, Any]:
    texts = {place: stage.text(source) for place, source in sources.items()}
    return stage.decide_texts(pairs, texts, set(pairs))


def _shown(answer: dict[str, Any]) -> dict[str, list[str]]:
    return {
        hit["_id"]: [member["_id"] for member in hit["inner_hits"]["duplicates"]["hits"]["hits"]]
        for hit in answer["hits"]["hits"]
    }


def _body(**dedup: Any) -> dict[str, Any]:
    return {
        "query": {"match_all": {}},
        "sort": [{"rank": "asc"}],
        "size": 20,
        "ext": {"dedup": {"members": 30, **dedup}},
    }


def test_the_page_is_what_the_texts_say(search: FoldedSearch, scheme: Scheme, pages: list[dict[str, Any]]):
    stage = TextStages(Canonicalizer.of(scheme)).stage(scheme, ("body",))
    sources = dict(enumerate(pages))
    by_signature = _shown(search.search("pages", _body()))
    answer = search.search("pages", _body(verify="text"))
    by_text = _shown(answer)
    alike = _decided(stage, [(0, at) for at in range(1, len(pages))], sources)
    wanted = {"0", *(str(at) for (_, at), verdict in alike.items() if verdict)}
    assert by_signature != by_text
    assert set(by_text["0"]) == wanted
    assert answer["dedup"]["by_text"]["joined"] + answer["dedup"]["by_text"]["parted"] > 0
    assert sorted(name for group in by_text.values() for name in group) == sorted(
        page["id"] for page in pages
    )


def test_texts_that_a_request_does_not_show_are_read_beside_it(search: FoldedSearch):
    shown = _shown(search.search("pages", _body(verify="text")))
    hidden = search.search("pages", {**_body(verify="text"), "_source": ["rank"]})
    assert _shown(hidden) == shown
    assert all(set(hit["_source"]) == {"rank"} for hit in hidden["hits"]["hits"])


def test_pages_go_on_from_each_other(search: FoldedSearch, pages: list[dict[str, Any]]):
    seen = [
        name
        for page in search.pages("pages", {**_body(verify="text"), "size": 2})
        for group in _shown(page).values()
        for name in group
    ]
    assert len(seen) == len(set(seen))
    assert set(seen) <= {page["id"] for page in pages}


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
    scheme: Scheme, pages: list[dict[str, Any]], options: FoldOptions
):
    made = [one.document or {} for one in Pipeline.from_json(default_definition(), scheme).run(pages)]
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


def test_words_that_were_read_lately_say_the_same_again(scheme: Scheme, pages: list[dict[str, Any]]):
    stage = TextStages().stage(scheme, ("body",))
    pairs = [(0, at) for at in range(1, len(pages))]
    sources = dict(enumerate(pages))
    first = _decided(stage, pairs, sources)
    assert _decided(stage, pairs, sources) == first
    # Many other texts in between, so that they are read anew.
    many = {at: {"body": f"{pages[at % len(pages)]['body']} {at}"} for at in range(2100)}
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
        made = mappings(scheme)
        made["properties"] |= {"body": {"type": "text"}, "date": {"type": "date"}}
        engine.create_index("cards", made, {})
        strict = with_never_differ(default_definition(), "_dedup", ["numbers"])
        outcomes = Pipeline.from_json(strict, scheme).run(cards)
        engine.bulk(
            {"_index": "cards", "_id": card["id"], "_source": outcome.document}
            for card, outcome in zip(cards, outcomes, strict=True)
        )
        engine.refresh("cards")
        options = FoldOptions.parse({"verify": "text", "representative": "newest:date"})
        for shown in (True, ["date"]):
            body_of_search = {"query": {"match_all": {}}, "_source": shown}
            page = FoldedSearch(engine, scheme).search("cards", body_of_search, options)
            assert _shown(page) == {"b1": ["b1", "a1"], "a2": ["a2"]}
