"""Hits out, folded: near-duplicates among the hits of a search become one, with the others attached.

``collapse`` is the pure part, for hits from anywhere; ``FoldedSearch`` reads windows, fills pages and
answers in the engine's own shape.
"""

from shinglefold.passages.find import Passage, find_passages
from shinglefold.rerank.explain import explain
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
