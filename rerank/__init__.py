"""Hits out, folded: near-duplicates among the hits of a search become one, with the others attached.

``collapse`` is the pure part, for hits from anywhere; ``FoldedSearch`` reads windows, fills pages and
answers in the engine's own shape.
"""

from typing import TYPE_CHECKING

from shinglefold.lazy import lazily

if TYPE_CHECKING:
    from shinglefold.awaited import AsyncEngine
    from shinglefold.passages.find import Passage, find_passages
    from shinglefold.rerank.explanation.stored_pair import explain
    from shinglefold.rerank.explanation.stored_passages import matched_passages
    from shinglefold.rerank.fold.folding import Collapsed, Group, collapse
    from shinglefold.rerank.page.response import duplicates
    from shinglefold.rerank.policies import Candidate, Policy
    from shinglefold.rerank.request.options import Explain, FoldOptions, Preference, Scope
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
    "Policy",
    "Preference",
    "Scope",
    "collapse",
    "duplicates",
    "explain",
    "find_passages",
    "matched_passages",
]

_HOMES = {
    "Passage": "shinglefold.passages.find",
    "find_passages": "shinglefold.passages.find",
    "explain": "shinglefold.rerank.explanation.stored_pair",
    "Collapsed": "shinglefold.rerank.fold.folding",
    "Group": "shinglefold.rerank.fold.folding",
    "collapse": "shinglefold.rerank.fold.folding",
    "Explain": "shinglefold.rerank.request.options",
    "FoldOptions": "shinglefold.rerank.request.options",
    "Preference": "shinglefold.rerank.request.options",
    "Scope": "shinglefold.rerank.request.options",
    "Candidate": "shinglefold.rerank.policies",
    "Policy": "shinglefold.rerank.policies",
    "duplicates": "shinglefold.rerank.page.response",
    "AsyncFoldedSearch": "shinglefold.rerank.search",
    "FoldedSearch": "shinglefold.rerank.search",
    "AsyncEngine": "shinglefold.awaited",
    "matched_passages": "shinglefold.rerank.explanation.stored_passages",
}
__getattr__ = lazily(__name__, _HOMES)
