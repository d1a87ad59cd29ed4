"""Index documents: readers, pipelines of processors, fingerprints, bulk requests."""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.ingest.fingerprinter import Fingerprinter
    from shinglefold.ingest.index_mapping import mappings
    from shinglefold.ingest.pipeline.pipeline import Pipeline, default_definition
    from shinglefold.ingest.readers.read import read
    from shinglefold.ingest.writing.indexer import index_documents

__all__ = [
    "Fingerprinter",
    "Pipeline",
    "default_definition",
    "index_documents",
    "mappings",
    "read",
]

# Lazy, because a search needs neither readers nor worker processes.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".fingerprinter": "Fingerprinter",
        ".index_mapping": "mappings",
        ".pipeline.pipeline": "Pipeline default_definition",
        ".readers.read": "read",
        ".writing.indexer": "index_documents",
    },
)
