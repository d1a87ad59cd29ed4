"""The Python API: open an index, search it folded, write to it, examine it; or compare texts without one.

``shinglefold.open``, ``open_async``, ``setup``, ``remove``, ``pairs``, ``groups``, ``compare`` and
``fold_chunks`` are here.
"""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.api.async_folded_index import AsyncFoldedIndex, open_async
    from shinglefold.api.chunks import FoldedChunks, fold_chunks, fold_chunks_async, warm
    from shinglefold.api.folded_index import FoldedIndex
    from shinglefold.api.index_setup import remove, setup
    from shinglefold.api.opening import open  # noqa: A004
    from shinglefold.api.texts import TextPair, compare, groups, pairs

__all__ = [
    "AsyncFoldedIndex",
    "FoldedChunks",
    "FoldedIndex",
    "TextPair",
    "compare",
    "fold_chunks",
    "fold_chunks_async",
    "groups",
    "open",
    "open_async",
    "pairs",
    "remove",
    "setup",
    "warm",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".async_folded_index": "AsyncFoldedIndex open_async",
        ".chunks": "FoldedChunks fold_chunks fold_chunks_async warm",
        ".folded_index": "FoldedIndex",
        ".index_setup": "remove setup",
        ".opening": "open",
        ".texts": "TextPair compare groups pairs",
    },
)
