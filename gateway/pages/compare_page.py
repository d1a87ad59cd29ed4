"""The page that compares two documents of the index, or two texts: the verdict, the figures, the passages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.api.folded_index import FoldedIndex
from shinglefold.errors import ConfigError
from shinglefold.gateway.pages.documents import document_json
from shinglefold.gateway.pages.shared import PageParameters, Shared
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.model.values import PlacedTokens
from shinglefold.offline.compare_texts import Comparison, compare_texts
from shinglefold.passages.alignment import Passage, covered_shares, find_passages
from shinglefold.passages.html_report import ranges
from shinglefold.passages.shingle_positions import elements_of
from shinglefold.rerank.index_fields import language_by_recipe

PARAMETERS = ("a", "index_a", "b", "index_b", "text_a", "text_b")
#: The most characters of a text that are shown; all of it is compared.
_SHOWN = 20_000
#: Words in a row that the other text must have, too, for the share of a text in the other.
_WIDTH = 5


@dataclass(frozen=True, slots=True)
class MarkedRange:
    """A range of a text: the number of its passage, 0 for none, and whether the other text lacks it.

    ``begins``: it is the first range of its passage.
    """

    text: str
    passage: int
    differs: bool
    begins: bool


def compare_json(shared: Shared, given: PageParameters) -> dict[str, Any]:
    """Return what two documents, or two texts, have in common; ``answer`` is None if none are given."""
    ids = {name: given.word(name) for name in ("a", "b")}
    indices = {name: given.word(f"index_{name}") for name in ("a", "b")}
    texts = {name: given.text(f"text_{name}") for name in ("a", "b")}
    for kind, both in (("a document", ids), ("a text", texts)):
        if bool(both["a"].strip()) != bool(both["b"].strip()):
            raise ConfigError(f"{kind} is missing: give both, A and B")
    answer = None
    if ids["a"]:
        answer = _of_documents(shared.index, [(indices[name], ids[name]) for name in ("a", "b")])
    elif texts["a"].strip():
        answer = _of_texts(shared.index, (texts["a"], texts["b"]))
    return {"ids": ids, "indices": indices, "texts": texts, "answer": answer}


def _of_documents(index: FoldedIndex, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    found = index.explained_pair(*(name if name[0] else name[1] for name in names))
    facts = found.facts
    estimate = facts["estimate"] or {}
    sides = [
        {**document_json(hit, index.recipe, index.name), "stale": bool(facts[side].get("stale"))}
        for side, hit in zip("ab", found.hits, strict=True)
    ]
    text = facts["text"]
    verdict = text if text["decided"] else facts
    return {
        "folds": verdict["folds"],
        "decided_by": verdict["decided_by"],
        "stale": any(side["stale"] for side in sides),
        **_figures(
            index,
            resemblance=estimate.get("resemblance"),
            standard_error=estimate.get("standard_error"),
            exact=None,
            shared=len(facts["shared"]),
            similarity=text["similarity"],
            length_ratio=facts["length_ratio"],
        ),
        **_mark_sides(found.texts, found.tokens, sides, found.passages),
    }


def _of_texts(index: FoldedIndex, texts: tuple[str, str]) -> dict[str, Any]:
    scheme, canonicalizer = index.scheme, index.canonicalizer
    facts = NeverDiffer.parse(index.recipe.never_differ).facts(texts, [{}, {}])
    # A text declares no language; some indices read all texts in one.
    language = language_by_recipe(index.recipe, {})
    found: Comparison = compare_texts(texts, ("A", "B"), (language, language), scheme, facts)
    estimate = found.estimate
    sides = [{"id": name, "lang": side.language} for name, side in (("A", found.a), ("B", found.b))]
    tokens = canonicalizer.placed(texts[0], language), canonicalizer.placed(texts[1], language)
    passages = find_passages(*tokens)
    return {
        "folds": found.folds,
        "decided_by": found.decided_by,
        "stale": False,
        **_figures(
            index,
            resemblance=estimate and round(estimate.resemblance, 4),
            standard_error=estimate and round(estimate.standard_error, 4),
            exact=round(found.resemblance, 4),
            shared=estimate.shared if estimate else 0,
            similarity=None if found.similarity is None else round(found.similarity, 4),
            length_ratio=round(found.length_ratio, 4),
        ),
        **_mark_sides(texts, tokens, sides, passages),
    }


def _figures(index: FoldedIndex, **figures: Any) -> dict[str, Any]:  # noqa: ANN401 - numbers or None
    """Return the similarities of a pair, each with the threshold of the index."""
    decision, sketch = index.scheme.decision, index.scheme.sketch
    return {
        **figures,
        "supershingles": sketch.groups,
        "needed": decision.min_resemblance,
        "needed_similarity": decision.min_similarity,
        "needed_length_ratio": decision.min_length_ratio,
    }


def _mark_sides(
    texts: tuple[str, str],
    tokens: tuple[PlacedTokens, PlacedTokens],
    sides: Sequence[Mapping[str, Any]],
    passages: Sequence[Passage],
) -> dict[str, Any]:
    """Return both sides with their texts in ranges, and the share of each that the other one has."""
    elements = [elements_of(one, _WIDTH) for one in tokens]
    shares = covered_shares(*elements)
    spans = [one.a for one in passages], [one.b for one in passages]
    marks = [one.marks_a for one in passages], [one.marks_b for one in passages]
    return {
        "passages": len(passages),
        "width": _WIDTH,
        "sides": [
            {
                **sides[at],
                "words": elements[at].tokens,
                "share": round(shares[at], 4),
                "ranges": list(_ranges(texts[at], spans[at], marks[at])),
                "cut": max(0, len(texts[at]) - _SHOWN),
            }
            for at in (0, 1)
        ],
    }


def _ranges(text: str, spans: Sequence[Any], marks: Sequence[Any]) -> Iterator[MarkedRange]:
    """Yield the ranges of the shown part of a text."""
    begun = set()
    for one in ranges(len(text), spans, marks):
        if one.start >= _SHOWN:
            return
        number = one.passage + 1
        shown = text[one.start : min(one.end, _SHOWN)]
        yield MarkedRange(shown, number, one.differs, number > 0 and number not in begun)
        begun.add(number)
