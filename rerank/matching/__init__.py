"""Passages found anywhere: the documents of an index that contain a part of a text, best first.

::

    find_matches(engine, "site", text).matches             # who has at least 5 % of it, and where
    find_matches(engine, "site", [one, other])             # many at once, their requests sent together
    MatchSearch(engine).find("site", text, MatchOptions(min_share=0.2))

The index stores a sample of each document's elements (``index --passages``), which nominates documents; their
texts decide.
"""

from shinglefold.rerank.matching.query_text import MatchOptions, QueryText, TextMatch
from shinglefold.rerank.matching.search import (
    AsyncMatchSearch,
    MatchPage,
    MatchSearch,
    find_matches,
    find_matches_async,
)

__all__ = [
    "AsyncMatchSearch",
    "MatchOptions",
    "MatchPage",
    "MatchSearch",
    "QueryText",
    "TextMatch",
    "find_matches",
    "find_matches_async",
]
