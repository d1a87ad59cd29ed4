"""Every way of comparing two documents gives the same verdict."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shinglefold
from shinglefold.api.folded_index import FoldedIndex
from shinglefold.cli.main import main
from shinglefold.examples import articles
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch

WORDS = sorted({word for one in articles() if one["id"][:2] == "ru" for word in one["body"].split()})
TYPES = {"pair": {"type": "keyword"}, "colour": {"type": "keyword"}}
Pair = tuple[dict[str, Any], dict[str, Any]]


def _pairs() -> list[Pair]:
    """Pairs of documents: words in another order, replaced, cut off, facts."""
    draw = random.Random(27)
    found: list[Pair] = []
    for number in range(40):
        one = draw.choices(WORDS, k=80)
        pieces = [one[at : at + 2 + number % 3] for at in range(0, 80, 2 + number % 3)]
        draw.shuffle(pieces)
        other = (
            [word for piece in pieces for word in piece],
            [draw.choice(WORDS) if draw.random() < 0.1 + number / 400 else word for word in one],
            one[: 75 - number // 6],
            [*one[:20], *draw.choices(WORDS, k=16 + number // 10), *one[36 + number // 10 :]],
            [*one, "42"],
        )[number % 5]
        texts = (" ".join(one), " ".join(other))
        colours = ("red", "red" if number % 4 else "blue")
        a, b = (
            {"id": f"{number}{side}", "pair": str(number), "body": text, "colour": colour}
            for side, text, colour in zip("ab", texts, colours, strict=True)
        )
        found.append((a, b))
    return found


PAIRS = _pairs()
#: By name the arguments of ``setup``, and of ``open``.
SITES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pages": ({}, {}),
    "facts": ({"never_differ": ["numbers", "colour"]}, {}),
    "messages": ({"profile": "messages"}, {}),
    "similarity of .95": ({}, {"similarity": 0.95}),
}


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldedIndex]:
    made, opened = SITES[request.param]
    folder = tmp_path_factory.mktemp("site")
    options = {"text": ["body"], "languages": ["ru"], "groups": True, "properties": TYPES, **made}
    for name in ("site", "gated"):
        shinglefold.setup(folder, name, **options)
    with shinglefold.open(folder, "site", **opened) as index:
        assert index.index([one for pair in PAIRS for one in pair]).failed == 0
        yield index


def _shown_together(index: FoldedIndex, **dedup: Any) -> set[str]:
    bodies = [{"query": {"term": {"pair": one["pair"]}}, "ext": {"dedup": dedup}} for one, _ in PAIRS]
    pages = index.msearch(bodies)
    return {
        one["pair"]
        for (one, _), page in zip(PAIRS, pages, strict=True)
        if isinstance(page, dict) and len(page["hits"]["hits"]) == 1
    }


def _grouped(index: FoldedIndex) -> set[str]:
    return {key.id[:-1] for group in index.groups().groups for key in group}


def _regrouped(index: FoldedIndex) -> set[str]:
    regroup(index.engine, index.name, RegroupOptions(min_similarity=index.options.similarity))
    hits = index.engine.search(index.name, {"size": 2 * len(PAIRS)})["hits"]["hits"]
    number = {hit["_id"]: hit["_source"]["_dedup"]["group"] for hit in hits}
    return {one["pair"] for one, other in PAIRS if number[one["id"]] == number[other["id"]]}


def _refused(index: FoldedIndex) -> set[str]:
    policy = Policy(min_similarity=index.options.similarity)
    with Gate(index.engine, "gated", policy, pipeline=index.pipeline) as gate:
        assert {one.status for one in gate.add_all([one for one, _ in PAIRS])} == {"accepted"}
        verdicts = gate.add_all([other for _, other in PAIRS])
    return {other["pair"] for (_, other), one in zip(PAIRS, verdicts, strict=True) if one.status == "refused"}


def _similar_by_options(index: FoldedIndex) -> set[str]:
    options = SimilarOptions(min_similarity=index.options.similarity)
    search = SimilarSearch(index.engine, index.recipe.scheme)
    pages = {one["pair"]: search.find(index.name, one["id"], options) for one, _ in PAIRS}
    return {other["pair"] for _, other in PAIRS if other["id"] in _ids(pages[other["pair"]])}


def _similar(index: FoldedIndex) -> set[str]:
    return {one["pair"] for one, other in PAIRS if other["id"] in _ids(index.similar(one["id"]))}


def _similar_documents(index: FoldedIndex) -> set[str]:
    return {one["pair"] for one, other in PAIRS if one["id"] in _ids(index.similar(other))}


def _ids(page: Any) -> list[str]:
    return [one.id for one in page.matches]


#: Ways in which texts decide.
BY_TEXT: dict[str, Callable[[FoldedIndex], set[str]]] = {
    "pages of chains": lambda index: _shown_together(index, linkage="connected", verify="text"),
    "similar to an id": _similar,
    "similar to a document": _similar_documents,
    "similar by options": _similar_by_options,
    "groups": _grouped,
    "regrouping": _regrouped,
    "the gate": _refused,
    "explanations by text": lambda index: {
        one["pair"] for one, other in PAIRS if index.explain(one["id"], other["id"])["text"]["folds"]
    },
}


@pytest.fixture(scope="module")
def candidates(site: FoldedIndex) -> set[str]:
    """The pairs that share a supershingle: only these are found in a whole index."""
    return {one["pair"] for one, other in PAIRS if site.explain(one["id"], other["id"])["shared"]}


@pytest.fixture(scope="module")
def wanted(site: FoldedIndex) -> set[str]:
    """The pairs that a page of results folds by their texts."""
    return _shown_together(site, verify="text", linkage="leader")


@pytest.mark.long(every=16)
@pytest.mark.parametrize("way", BY_TEXT)
def test_where_texts_decide_all_ways_agree(
    site: FoldedIndex, candidates: set[str], wanted: set[str], way: str
) -> None:
    assert BY_TEXT[way](site) & candidates == wanted & candidates


@pytest.mark.long(every=4)
def test_an_explanation_has_the_verdict_of_a_page(site: FoldedIndex) -> None:
    explained = {one["pair"]: site.explain(one["id"], other["id"])["folds"] for one, other in PAIRS}
    assert {pair for pair, folds in explained.items() if folds} == _shown_together(site)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("least", [0.7, 0.95])
def test_commands_take_the_one_threshold_of_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], least: float
) -> None:
    documents = [one for pair in PAIRS for one in pair]
    documents.append({**documents[0], "id": "short", "body": " ".join(documents[0]["body"].split()[:46])})
    file = tmp_path / "pages.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in documents), "utf-8")
    given = ["--field", "body", "--config", str(tmp_path / "none.toml")]
    (tmp_path / "none.toml").write_text('languages = ["ru"]', "utf-8")
    assert main(["groups", str(file), "--pairs", "--json", "--min-similarity", str(least), *given]) == 0
    said = {(one["a"], one["b"]) for one in map(json.loads, capsys.readouterr().out.splitlines())}
    found = shinglefold.pairs([one["body"] for one in documents], similarity=least, languages=["ru"])
    assert said == {(documents[pair.a]["id"], documents[pair.b]["id"]) for pair in found}
    assert any("short" in pair for pair in said) == (least < 0.73)


def test_a_threshold_of_the_command_line_overrides_that_of_the_profile(tmp_path: Path) -> None:
    texts = [str(tmp_path / name) for name in "ab"]
    for name in texts:
        Path(name).write_text(PAIRS[0][0]["body"], "utf-8")
    assert main(["compare", *texts, "--profile", "products", "--min-similarity", "0.9"]) == 0
