"""Hits out, folded: near-duplicates among the hits of a search become one, with the others attached.

``collapse`` is the pure part, for hits from anywhere; ``FoldedSearch`` reads windows, fills pages and
answers in the engine's own shape.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.rerank.fold.clustering import collapse
    from shinglefold.rerank.page.response import duplicates
    from shinglefold.rerank.representatives import RepresentativePolicy
    from shinglefold.rerank.request.fold_options import FoldOptions, Preference, Scope
    from shinglefold.rerank.search import AsyncFoldedSearch, FoldedSearch

__all__ = [
    "AsyncFoldedSearch",
    "FoldOptions",
    "FoldedSearch",
    "Preference",
    "RepresentativePolicy",
    "Scope",
    "collapse",
    "duplicates",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".fold.clustering": "collapse",
        ".page.response": "duplicates",
        ".representatives": "RepresentativePolicy",
        ".request.fold_options": "FoldOptions Preference Scope",
        ".search": "AsyncFoldedSearch FoldedSearch",
    },
)
