"""Every verdict names what decided: on two texts, on two documents of an index, and on folded hits."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from support.doubtful_texts import doubtful_texts
from support.hits import split

from shinglefold.canon import Canonicalizer
from shinglefold.cli.shared.pairs import FOLDED_BY, reason
from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, mappings
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint
from shinglefold.offline.compare_texts import compare_texts
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.explanation import explain_pair
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
    found = compare_texts(texts, ("a", "b"), (None, None), scheme, Canonicalizer.of(scheme), facts)
    assert (found.folds, found.decided_by) == (folds, decided)
    told = found.to_json(scheme)
    assert told["decided_by"] == decided
    assert reason(decided, told, scheme.decision)


def test_the_name_follows_from_the_figures_on_every_pair():
    """A threshold is named only where its figure is on the side of the verdict."""
    canonicalizer = Canonicalizer.of(SCHEME)
    seen = set()
    for texts in combinations([*doubtful_texts(), EN, "мост", BASE[:300]], 2):
        found = compare_texts(texts, ("a", "b"), (None, None), SCHEME, canonicalizer)
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
        made = mappings(SCHEME)
        made["properties"] |= {"body": {"type": "text"}, "rank": {"type": "integer"}}
        made["properties"] |= {"host": {"type": "keyword"}}
        engine.create_index("pages", made, {})
        stored = [one.document or {} for one in Pipeline.from_json(default_definition(), SCHEME).run(pages)]
        # A label that the words do not have, as where a document declares another language.
        other = {**stored[1], "id": "labelled"}
        other["_dedup"] = replace(Fingerprint.from_field(stored[1]["_dedup"]), lang="en").to_field()
        made_of = ({"_index": "pages", "_id": one["id"], "_source": one} for one in [*stored, other])
        assert not engine.bulk(made_of).failures
        engine.refresh("pages")
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
    return explain_pair(pair, SCHEME, Canonicalizer.of(SCHEME), "_dedup", ("body",)).facts
