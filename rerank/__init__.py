"""Hits out, folded: near-duplicates among the hits of a search become one, with the others attached.

``collapse`` is the pure part, for hits from anywhere; ``FoldedSearch`` reads windows, fills pages and
answers in the engine's own shape.
"""

from typing import TYPE_CHECKING

from shinglefold.lazy import lazily

if TYPE_CHECKING:
    from shinglefold.passages.find import Passage, find_passages
    from shinglefold.rerank.explanation import explain
    from shinglefold.rerank.folding import Collapsed, Group, collapse
    from shinglefold.rerank.options import Explain, FoldOptions, Preference, Scope
    from shinglefold.rerank.policies import Candidate, Policy
    from shinglefold.rerank.response import duplicates
    from shinglefold.rerank.search import AsyncFoldedSearch, FoldedSearch
    from shinglefold.rerank.steps import AsyncEngine
    from shinglefold.rerank.stored_passages import matched_passages

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
    "explain": "shinglefold.rerank.explanation",
    "Collapsed": "shinglefold.rerank.folding",
    "Group": "shinglefold.rerank.folding",
    "collapse": "shinglefold.rerank.folding",
    "Explain": "shinglefold.rerank.options",
    "FoldOptions": "shinglefold.rerank.options",
    "Preference": "shinglefold.rerank.options",
    "Scope": "shinglefold.rerank.options",
    "Candidate": "shinglefold.rerank.policies",
    "Policy": "shinglefold.rerank.policies",
    "duplicates": "shinglefold.rerank.response",
    "AsyncFoldedSearch": "shinglefold.rerank.search",
    "FoldedSearch": "shinglefold.rerank.search",
    "AsyncEngine": "shinglefold.rerank.steps",
    "matched_passages": "shinglefold.rerank.stored_passages",
}
__getattr__ = lazily(__name__, _HOMES)
