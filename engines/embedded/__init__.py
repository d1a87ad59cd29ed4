"""The embedded engine: tantivy on disk, in this process, answering as servers do.

Needs the extra ``embedded``; without it the import raises ``MissingExtra``.
"""

from shinglefold.errors import MissingExtra

try:
    import tantivy as _tantivy  # noqa: F401 - only to see whether it is there
except ModuleNotFoundError as _error:
    raise MissingExtra("embedded", "the embedded engine") from _error

from shinglefold.engines.embedded.engine import EmbeddedEngine
from shinglefold.engines.embedded.schema.tantivy_schema import CommitLimits

__all__ = ["CommitLimits", "EmbeddedEngine"]
