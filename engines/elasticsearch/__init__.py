"""The adapter for Elasticsearch, through its own client.

Needs the extra ``elasticsearch``; without it the import raises ``MissingExtra``.
"""

from shinglefold.errors import MissingExtra

try:
    import elasticsearch as _client  # noqa: F401
    import msgspec as _reader  # noqa: F401 - only to see whether they are there
except ModuleNotFoundError as _error:
    raise MissingExtra("elasticsearch", "the adapter for Elasticsearch") from _error

from shinglefold.engines.elasticsearch.engine import AsyncElasticsearchEngine, ElasticsearchEngine

__all__ = ["AsyncElasticsearchEngine", "ElasticsearchEngine"]
