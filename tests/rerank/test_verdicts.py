"""Every verdict names what decided, and counters add up."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from support.copied_texts import doubtful_texts
from support.hits import fill, signed, split

from shinglefold.cli.shared.hits import counters_line
from shinglefold.cli.shared.pairs import FOLDED_BY, reason
from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint
from shinglefold.offline.compare_texts import compare_texts
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates
from shinglefold.rerank.explanation import explain_pair
from shinglefold.rerank.page.response import METHOD_BY_TEXT
from shinglefold.rerank.request.fold_options import Scope

SCHEME: Scheme = make_scheme(codes=["ru", "en", "any"])
BASE = doubtful_texts()[0]
EN = " ".join(f"word{at}" for at in range(160))
#: By name: two texts, the languages they declare, how the scheme decides, and what decided whether they fold.
CASES: dict[str, tuple[tuple[str, str], JSON, bool, str]] = {
    "equal": ((BASE, BASE.upper()), {}, True, "same_text"),
    "one word": (("мост", "мост"), {}, False, "too_short"),
    "two short ones": (("мост закрыт", "театр открыт сегодня"), {}, False, "too_short"),
    "strangers": ((BASE, EN), {}, False, "supershingles"),
    "lengths": ((BASE, BASE + " " + BASE[:900]), {"min_length_ratio": 0.99}, False, "length"),
    "edits": ((BASE, doubtful_texts()[1]), {}, True, "similarity"),
    "too many edits": ((BASE, doubtful_texts()[12]), {"min_similarity": 0.88}, False, "similarity"),
    "no text can be so similar": ((BASE, doubtful_texts()[12]), {"min_similarity": 0.99}, False, "estimate"),
    "moved": ((BASE, BASE[700:] + " " + BASE[:700]), {}, True, "tokens"),
    "estimate": ((BASE, doubtful_texts()[1]), {"verify": "signature"}, True, "estimate"),
    "low estimate": (
        (BASE, doubtful_texts()[12]),
        {"verify": "signature", "min_resemblance": 0.95},
        False,
        "estimate",
    ),
    "keywords": ((BASE, doubtful_texts()[1]), {"verify": "keywords"}, True, "supershingles"),
    "numbers": ((BASE + " цена 100", BASE + " цена 200"), {"never_differ": ["numbers"]}, False, "facts"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_decided_on_two_texts_is_named(name: str):
    texts, decision, folds, decided = CASES[name]
    given = dict(decision)
    facts = NeverDiffer.parse(given.pop("never_differ", [])).facts(texts, [{}, {}])
    scheme = SCHEME.with_options(**given)
    found = compare_texts(texts, ("a", "b"), (None, None), scheme, facts)
    assert (found.folds, found.decided_by) == (folds, decided)
    told = found.to_json(scheme)
    assert told["decided_by"] == decided
    assert reason(decided, told, scheme.decision)


@pytest.mark.long
def test_the_name_follows_from_the_figures_on_every_pair():
    """A threshold is named only where its figure is on the side of the verdict."""
    seen = set()
    for texts in combinations([*doubtful_texts(), EN, "мост", BASE[:300]], 2):
        found = compare_texts(texts, ("a", "b"), (None, None), SCHEME)
        decision, decided = SCHEME.decision, found.decided_by
        seen.add(decided)
        share = found.similarity or 0.0
        checks = {
            "same_text": found.same_text,
            "too_short": found.estimate is None and not found.folds,
            "length": found.length_ratio < decision.min_length_ratio and not found.folds,
            "supershingles": not found.folds,
            "similarity": (share >= decision.min_similarity) == found.folds,
            "tokens": found.folds and share < decision.min_similarity,
            "estimate": not found.folds,
        }
        assert checks[decided], (texts, found)
    assert seen >= {"similarity", "tokens", "supershingles", "too_short"}


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldedSearch]:
    bodies = [*doubtful_texts(), BASE, EN, "мост", BASE[:200]]
    pages = [
        {"id": str(at), "rank": at, "body": body, "host": f"h{at % 2}"} for at, body in enumerate(bodies)
    ]
    with EmbeddedEngine(tmp_path_factory.mktemp("verdicts"), split) as engine:
        stored = signed(SCHEME, pages)
        # A label that the words do not have, as where a document declares another language.
        other = replace(Fingerprint.from_field(stored["1"]["_dedup"]), lang="en").to_field()
        stored["labelled"] = {**stored["1"], "id": "labelled", "_dedup": other}
        fill(engine, "pages", stored, mappings(SCHEME), body="text", rank="integer", host="keyword")
        yield FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())


def _explained(search: FoldedSearch, options: FoldOptions) -> list[JSON]:
    body = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 40}
    answer = search.search("pages", body, options)
    return [member for group in answer["dedup"]["explain"] for member in group["members"]]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, {"same_text", "estimate"}),
        ({"verify": "text"}, {"same_text", "estimate", "similarity", "tokens"}),
        ({"linkage": "connected", "min_resemblance": 0.7}, {"same_text", "estimate", "chain"}),
        ({"min_resemblance": 0.0, "min_shared": 1}, {"same_text", "supershingles"}),
        ({"scope": (Scope("host"),)}, {"same_text", "estimate"}),
    ],
)
def test_folded_hits_name_what_folded_them(search: FoldedSearch, options: Any, names: set[str]):
    told = _explained(search, FoldOptions(explain=True, members=40, **options))
    found = {one["decided_by"] for one in told}
    assert found <= names
    assert found <= FOLDED_BY.keys()
    assert len(found) >= 2
    for one in told:
        text = one.get("text", {}).get("similarity")
        if one["decided_by"] in ("similarity", "tokens"):
            assert (text >= 0.8) == (one["decided_by"] == "similarity")


@pytest.mark.parametrize(
    ("pair", "signature", "text"),
    [
        (("0", "19"), (True, "same_text"), (True, "same_text")),
        (("0", "20"), (False, "estimate"), (False, "estimate")),
        (("0", "21"), (False, "too_short"), (False, "too_short")),
        (("0", "22"), (False, "length"), (False, "length")),
        (("0", "1"), (True, "estimate"), None),
        (("0", "12"), None, (True, "similarity")),
    ],
)
def test_stored_documents_name_it_by_signature_and_by_text(search: FoldedSearch, pair, signature, text):
    told = _stored(search, pair)
    if signature is not None:
        assert (told["folds"], told["decided_by"]) == signature
    if text is not None:
        assert (told["text"]["folds"], told["text"]["decided_by"]) == text
    for name in (told["decided_by"], told["text"]["decided_by"]):
        assert reason(name, told, SCHEME.decision)


def test_a_label_that_the_words_do_not_have_keeps_no_two_documents_apart(search: FoldedSearch):
    told = _stored(search, ("0", "labelled"))
    assert (told["a"]["lang"], told["b"]["lang"]) == ("ru", "en")
    assert (told["folds"], told["decided_by"]) == (True, "estimate")
    assert (told["text"]["folds"], told["text"]["decided_by"]) == (True, "estimate")


def _stored(search: FoldedSearch, ids: tuple[str, str]) -> JSON:
    body = {"query": {"ids": {"values": list(ids)}}, "ext": {"dedup": {"fold": False}}}
    hits = {hit["_id"]: hit for hit in search.search("pages", body)["hits"]["hits"]}
    pair = hits[ids[0]], hits[ids[1]]
    return explain_pair(pair, SCHEME, "_dedup", ("body",)).facts


RU_SCHEME: Scheme = make_scheme(codes=["ru", "any"])
#: Copies in doubt, equal texts, and one word alone, which has no signature.
TEXTS = [*doubtful_texts(), *doubtful_texts()[:4], "мост", "мост", ""]


@pytest.fixture(scope="module")
def counted_search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldedSearch]:
    pages = [{"id": str(at), "rank": at, "body": body} for at, body in enumerate(TEXTS)]
    with EmbeddedEngine(tmp_path_factory.mktemp("counters"), split) as engine:
        stored = signed(RU_SCHEME, pages)
        for at, one in enumerate(stored.values()):
            one.setdefault("_dedup", {"scheme": RU_SCHEME.id})["group"] = 2**40 + at % 7
        made = recipe_mappings(replace(default_recipe(RU_SCHEME), groups=True))
        fill(engine, "pages", stored, made, body="text", rank="integer")
        yield FoldedSearch(engine, RU_SCHEME, tiebreaker=engine.tiebreaker())


def _body(**more: Any) -> JSON:
    return {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "track_total_hits": True, **more}


def check(answer: JSON) -> None:
    """Check that the counters add up, in JSON and in the line that the command line prints."""
    told, shown = answer["dedup"], answer["hits"]["hits"]
    members = [hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] for hit in shown]
    under = sum(members) - len(members)
    if told["window"] is None:
        read = answer["hits"]["total"]["value"]
        assert (told["groups"], told["folded"]) == (len(shown), under)
    else:
        read = told["window"]
        assert told["groups"] + told["folded"] + told["repeated"] == read
        assert told["groups"] >= len(shown)
        assert told["folded"] >= under
    assert told["groups_total"]["value"] >= len(shown)
    # What is on the page is told as it is on the page.
    line = counters_line(answer)
    first = line.split(";")[0]
    results, _, rest = first.partition(" from ")
    hits, _, parts = rest.partition(":")
    if not answer["hits"]["total"]["value"]:
        return
    numbers = [int(number) for number in re.findall(r"(\d+) (?:folded|read|deleted|not on)", parts)]
    assert int(results.split()[0]) + sum(numbers) == int(hits.split()[0]) == read, line
    assert ("none folded" in line) == (not under), line
    assert all(duplicates(hit) == [] for hit, count in zip(shown, members, strict=True) if count == 1)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("verify", ["signature", "text"])
@pytest.mark.parametrize("linkage", ["leader", "connected"])
@pytest.mark.parametrize("window", [1, 4, 200])
def test_pages_of_any_size_add_up(counted_search: FoldedSearch, verify: str, linkage: str, window: int):
    options = FoldOptions(verify=verify, linkage=linkage, window=window, max_window=200)
    for start, size in product((0, 1, 5, 40), (0, 1, 3, 60)):
        body = _body(**{"from": start, "size": size})
        answer = counted_search.search("pages", body, options)
        if size:
            check(answer)
            (again,) = counted_search.msearch([("pages", body)], options)
            assert again["dedup"] == answer["dedup"]


@pytest.mark.parametrize("verify", ["signature", "text"])
@pytest.mark.parametrize("window", [1, 4, 200])
@pytest.mark.parametrize("size", [1, 3, 60])
def test_the_pages_of_a_cursor_add_up_and_the_last_one_knows_how_many_were_shown(
    counted_search: FoldedSearch, verify: str, window: int, size: int
):
    pages = list(counted_search.pages("pages", _body(size=size), FoldOptions(verify=verify, window=window)))
    for page in pages:
        check(page)
    shown = sum(len(page["hits"]["hits"]) for page in pages)
    assert pages[-1]["dedup"]["groups_total"] == {"value": shown, "relation": "eq"}
    # No total before the end is called exact that the later pages belie.
    told = [page["dedup"]["groups_total"] for page in pages]
    assert all(one["value"] == shown for one in told if one["relation"] == "eq")
    assert all(one["value"] <= shown for one in told if one["relation"] == "gte")


@pytest.mark.parametrize(("start", "size"), [(0, 2), (0, 60), (3, 2), (5, 60)])
def test_pages_that_the_engine_collapses_add_up(counted_search: FoldedSearch, start: int, size: int):
    body = _body(**{"from": start, "size": size})
    answer = counted_search.search("pages", body, FoldOptions(mode="native"))
    assert answer["dedup"]["mode"] == "native"
    check(answer)


def test_members_from_the_index_are_named_apart(counted_search: FoldedSearch):
    body = _body(query={"range": {"rank": {"lte": 2}}}, size=60)
    for verify in ("signature", "text"):
        answer = counted_search.search(
            "pages", body, FoldOptions(members_from="index", members=50, verify=verify)
        )
        added = answer["dedup"]["from_index"]["members"]
        assert added > 0
        assert f"; {added} more cop" in counters_line(answer)
        first, members = counters_line(answer).split(";")[0], answer["hits"]["hits"]
        assert first.startswith(f"{len(members)} result")
        assert answer["dedup"]["groups"] + answer["dedup"]["folded"] == 3


def test_a_total_by_text_is_exact_only_where_all_groups_are_on_the_page(counted_search: FoldedSearch):
    by_text = FoldOptions(verify="text")
    whole = counted_search.search("pages", _body(size=60), by_text)
    assert whole["dedup"]["by_text"] != {"joined": 0, "parted": 0}
    total = {"value": len(whole["hits"]["hits"]), "relation": "eq"}
    assert whole["dedup"]["groups_total"] == total
    part = counted_search.search("pages", _body(size=1), by_text)["dedup"]["groups_total"]
    assert (part["relation"], part["method"]) == ("estimate", METHOD_BY_TEXT)
