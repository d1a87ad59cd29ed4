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

_HOMES = {
    "AsyncFoldedIndex": "shinglefold.api.async_folded_index",
    "CanonOptions": "shinglefold.model.scheme",
    "Fingerprint": "shinglefold.model.values",
    "FoldedChunks": "shinglefold.api.chunks",
    "FoldedIndex": "shinglefold.api.folded_index",
    "Sample": "shinglefold.model.values",
    "Scheme": "shinglefold.model.scheme",
    "ShinglefoldError": "shinglefold.errors",
    "TextPair": "shinglefold.api.texts",
    "Token": "shinglefold.model.values",
    "TokenBatch": "shinglefold.model.values",
    "compare": "shinglefold.api.texts",
    "fold": "shinglefold.gateway.clients",
    "fold_chunks": "shinglefold.api.chunks",
    "fold_chunks_async": "shinglefold.api.chunks",
    "groups": "shinglefold.api.texts",
    "open": "shinglefold.api.opening",
    "open_async": "shinglefold.api.async_folded_index",
    "pairs": "shinglefold.api.texts",
    "remove": "shinglefold.api.index_setup",
    "setup": "shinglefold.api.index_setup",
    "signed": "shinglefold.gateway.bulks.actions",
    "unfold": "shinglefold.gateway.clients",
    "warm": "shinglefold.api.chunks",
}
# `shinglefold --help` must not wait for numpy.
__getattr__ = lazy_attributes(__name__, _HOMES)
