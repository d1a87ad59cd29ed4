"""The adapter for OpenSearch, through its own client.

Needs the extra ``opensearch``; without it the import raises ``MissingExtra``.
"""

from shinglefold.errors import MissingExtra

try:
    import msgspec as _reader  # noqa: F401 - only to see whether they are there
    import opensearchpy as _client  # noqa: F401
except ModuleNotFoundError as _error:
    raise MissingExtra("opensearch", "the adapter for OpenSearch") from _error

from shinglefold.engines.opensearch.engine import AsyncOpenSearchEngine, OpenSearchEngine

__all__ = ["AsyncOpenSearchEngine", "OpenSearchEngine"]
