"""shinglefold: the fuzzy-duplicate stage for OpenSearch and Elasticsearch.

::

    import shinglefold

    shinglefold.setup("pages", "news", text=["title", "body"])   # a folder, an address, or your client
    site = shinglefold.open("pages", "news")
    site.index(documents)
    page = site.search({"query": {"match": {"title": "bridge"}}})  # one hit a group of near-duplicates

``await shinglefold.open_async(…)`` has the same methods. ``pairs``, ``groups`` and ``compare`` need no index.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes
from shinglefold.version import __version__

if TYPE_CHECKING:
    from shinglefold import errors as errors
    from shinglefold.api.async_folded_index import AsyncFoldedIndex, open_async
    from shinglefold.api.chunks import FoldedChunks, fold_chunks, fold_chunks_async, warm
    from shinglefold.api.folded_index import FoldedIndex
    from shinglefold.api.index_setup import remove, setup
    from shinglefold.api.opening import open  # noqa: A004
    from shinglefold.api.texts import TextPair, compare, groups, pairs
    from shinglefold.errors import ShinglefoldError
    from shinglefold.gateway.bulks.actions import signed
    from shinglefold.gateway.clients import fold, unfold
    from shinglefold.model.scheme import CanonOptions, Scheme
    from shinglefold.model.values import Fingerprint, Sample, Token, TokenBatch

__all__ = [
    "AsyncFoldedIndex",
    "CanonOptions",
    "Fingerprint",
    "FoldedChunks",
    "FoldedIndex",
    "Sample",
    "Scheme",
    "ShinglefoldError",
    "TextPair",
    "Token",
    "TokenBatch",
    "__version__",
    "compare",
    "fold",
    "fold_chunks",
    "fold_chunks_async",
    "groups",
    "open",
    "open_async",
    "pairs",
    "remove",
    "setup",
    "signed",
    "unfold",
    "warm",
]

# `shinglefold --help` must not wait for numpy.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".api.async_folded_index": "AsyncFoldedIndex open_async",
        ".api.chunks": "FoldedChunks fold_chunks fold_chunks_async warm",
        ".api.folded_index": "FoldedIndex",
        ".api.index_setup": "remove setup",
        ".api.opening": "open",
        ".api.texts": "TextPair compare groups pairs",
        ".errors": "ShinglefoldError",
        ".gateway.bulks.actions": "signed",
        ".gateway.clients": "fold unfold",
        ".model.scheme": "CanonOptions Scheme",
        ".model.values": "Fingerprint Sample Token TokenBatch",
    },
)
