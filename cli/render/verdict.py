"""Verdicts on pairs of documents in words: whether they fold, and what decided."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shinglefold.model.scheme import Decision

#: What decided that a hit folds, in words.
FOLDED_BY = {
    "same_text": "the same canonical text",
    "estimate": "decided by the estimate",
    "supershingles": "decided by supershingles",
    "similarity": "decided by the edit similarity of the texts",
    "tokens": "decided by the tokens of the texts, in any order",
    "chain": "connected by other members",
}


def verdict_line(folds: bool, why: str) -> str:
    """Return a verdict with its reason."""
    return f"{'they fold' if folds else 'they do not fold'} ({why})"


def reason(decided_by: str, pair: Mapping[str, Any], decision: "Decision") -> str:
    """Return what decided on a pair, with the value and the threshold.

    Args:
        decided_by: one of ``DecidedBy``.
        pair: the JSON of ``compare``.
        decision: the thresholds in force.
    """
    estimate = pair["estimate"] or {}
    shared = pair["shared"] if "shared" in pair else range(estimate.get("shared", 0))
    similarity = pair["text"]["similarity"] if "text" in pair else pair["similarity"]
    if decided_by == "too_short" and pair["same_text"]:
        return "the texts are the same, but one word alone is too little to tell duplicates by"
    if decided_by == "too_short":
        return "the texts differ, and a text has too few shingles for a signature"
    if decided_by == "supershingles":
        return f"supershingles decide: {len(shared)} shared, needed {decision.min_shared}"
    return {
        "same_text": "the canonical texts are the same",
        "scope": "the values of a scope differ",
        "length": f"the lengths decide: ratio {pair['length_ratio']:.3f}, needed {decision.min_length_ratio}",
        "estimate": f"the estimate decides: {estimate.get('resemblance', 0):.3f}, "
        f"needed {decision.min_resemblance}",
        "similarity": f"the edit similarity decides: {similarity or 0:.3f}, needed {decision.min_similarity}",
        "tokens": f"{(1 + decision.min_similarity) / 2:.2g} or more of the tokens are in both texts, in any "
        "order",
        "facts": "what must never differ differs",
        "chain": "a chain of documents that match connects them",
    }[decided_by]
