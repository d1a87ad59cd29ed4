"""Hits out, folded: near-duplicates among the hits of a search become one, with the others attached.

``collapse`` is the pure part, for hits from anywhere; ``FoldedSearch`` reads windows, fills pages and
answers in the engine's own shape.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.contracts.engine import AsyncEngine
    from shinglefold.passages.alignment import Passage, find_passages
    from shinglefold.rerank.explanation import explain, matched_passages
    from shinglefold.rerank.fold.clustering import Collapsed, Group, collapse
    from shinglefold.rerank.page.response import duplicates
    from shinglefold.rerank.representatives import Candidate, RepresentativePolicy
    from shinglefold.rerank.request.fold_options import Explain, FoldOptions, Preference, Scope
    from shinglefold.rerank.search import AsyncFoldedSearch, FoldedSearch

__all__ = [
    "AsyncEngine",
    "AsyncFoldedSearch",
    "Candidate",
    "Collapsed",
    "Explain",
    "FoldOptions",
    "FoldedSearch",
    "Group",
    "Passage",
    "Preference",
    "RepresentativePolicy",
    "Scope",
    "collapse",
    "duplicates",
    "explain",
    "find_passages",
    "matched_passages",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "shinglefold.contracts.engine": "AsyncEngine",
        "shinglefold.passages.alignment": "Passage find_passages",
        ".explanation": "explain matched_passages",
        ".fold.clustering": "Collapsed Group collapse",
        ".page.response": "duplicates",
        ".representatives": "Candidate RepresentativePolicy",
        ".request.fold_options": "Explain FoldOptions Preference Scope",
        ".search": "AsyncFoldedSearch FoldedSearch",
    },
)
