"""Copies found anywhere: the documents of an index that match a given one, wherever they rank.

::

    search = SimilarSearch(engine)                         # reads scheme, field and seal id from the index
    search.find("site", "page-17").matches                 # of a stored document
    search.find("site", fingerprint).matches               # of a text that is not stored
    search.look_up("site", fingerprints)                   # many at once, one request, no pages

``look_up`` serves decisions about new documents. ``LookupResult.matches`` come in order of resemblance, each
with ``id``, ``index``, ``resemblance``, ``group``, ``seq_no`` and ``primary_term``. Bound the candidates with
``SimilarOptions(window=100)``, and check ``complete`` and ``lacks``.
"""

from shinglefold.rerank.similar.candidates import LookupResult, look_up
from shinglefold.rerank.similar.decision import CandidateDecision
from shinglefold.rerank.similar.query_document import Match, QueryDocument, SimilarOptions
from shinglefold.rerank.similar.results import SimilarPage
from shinglefold.rerank.similar.search import AsyncSimilarSearch, SimilarSearch

__all__ = [
    "AsyncSimilarSearch",
    "CandidateDecision",
    "LookupResult",
    "Match",
    "QueryDocument",
    "SimilarOptions",
    "SimilarPage",
    "SimilarSearch",
    "look_up",
]
