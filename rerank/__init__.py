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

_HOMES = {
    "Passage": "shinglefold.passages.alignment",
    "find_passages": "shinglefold.passages.alignment",
    "explain": "shinglefold.rerank.explanation",
    "Collapsed": "shinglefold.rerank.fold.clustering",
    "Group": "shinglefold.rerank.fold.clustering",
    "collapse": "shinglefold.rerank.fold.clustering",
    "Explain": "shinglefold.rerank.request.fold_options",
    "FoldOptions": "shinglefold.rerank.request.fold_options",
    "Preference": "shinglefold.rerank.request.fold_options",
    "Scope": "shinglefold.rerank.request.fold_options",
    "Candidate": "shinglefold.rerank.representatives",
    "RepresentativePolicy": "shinglefold.rerank.representatives",
    "duplicates": "shinglefold.rerank.page.response",
    "AsyncFoldedSearch": "shinglefold.rerank.search",
    "FoldedSearch": "shinglefold.rerank.search",
    "AsyncEngine": "shinglefold.contracts.engine",
    "matched_passages": "shinglefold.rerank.explanation",
}
__getattr__ = lazy_attributes(__name__, _HOMES)
