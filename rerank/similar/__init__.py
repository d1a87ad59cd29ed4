"""Copies found anywhere: the documents of an index that match a given one, wherever they rank.

::

    search = SimilarSearch(engine)                         # reads scheme, field and seal id from the index
    search.find("site", "page-17").matches                 # of a stored document
    search.find("site", fingerprint).matches               # of a text that is not stored
    search.look_up("site", fingerprints)                   # many at once, one request, no pages

``look_up`` is what decisions about new documents are made by: ``Found.matches`` are in order of resemblance,
each with ``id``, ``index``, ``resemblance``, ``group``, ``seq_no``, ``primary_term``; give
``SimilarOptions(window=100)`` to bound the candidates, and look at ``complete`` and ``lacks``.
``Decision.among`` compares the members of a batch with each other.
"""

from shinglefold.rerank.similar.asked import Asked, Match
from shinglefold.rerank.similar.decision import Decision
from shinglefold.rerank.similar.lookup import Found, look_up
from shinglefold.rerank.similar.options import SimilarOptions
from shinglefold.rerank.similar.reading import SimilarPage
from shinglefold.rerank.similar.search import (
    AsyncSimilarSearch,
    SimilarSearch,
    find_similar,
    find_similar_async,
)

__all__ = [
    "Asked",
    "AsyncSimilarSearch",
    "Decision",
    "Found",
    "Match",
    "SimilarOptions",
    "SimilarPage",
    "SimilarSearch",
    "find_similar",
    "find_similar_async",
    "look_up",
]
