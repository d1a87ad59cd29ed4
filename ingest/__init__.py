"""Documents in: readers, processors and JSON pipelines, fingerprints, bulk indexing."""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.ingest.fingerprinter import FingerprintArrays, Fingerprinter, Meter
    from shinglefold.ingest.index_mapping import (
        check_index,
        default_recipe,
        ensure_index,
        mappings,
        recipe_mappings,
    )
    from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline, default_definition
    from shinglefold.ingest.pipeline.steps import Failure
    from shinglefold.ingest.processors.context import Options, Tools
    from shinglefold.ingest.readers.read import read
    from shinglefold.ingest.readers.record import ReadOptions, Record
    from shinglefold.ingest.writing.accounting import Progress, Summary
    from shinglefold.ingest.writing.dead_letters import DeadLetters, replay
    from shinglefold.ingest.writing.indexer import index_documents
    from shinglefold.ingest.writing.target_index import rebuild
    from shinglefold.runtime.backoff import Backoff

__all__ = [
    "Backoff",
    "DeadLetters",
    "Failure",
    "FingerprintArrays",
    "Fingerprinter",
    "Meter",
    "Options",
    "Outcome",
    "Pipeline",
    "Progress",
    "ReadOptions",
    "Record",
    "Summary",
    "Tools",
    "check_index",
    "default_definition",
    "default_recipe",
    "ensure_index",
    "index_documents",
    "mappings",
    "read",
    "rebuild",
    "recipe_mappings",
    "replay",
]

_HOMES = {
    "FingerprintArrays": "shinglefold.ingest.fingerprinter",
    "Fingerprinter": "shinglefold.ingest.fingerprinter",
    "check_index": "shinglefold.ingest.index_mapping",
    "default_recipe": "shinglefold.ingest.index_mapping",
    "ensure_index": "shinglefold.ingest.index_mapping",
    "mappings": "shinglefold.ingest.index_mapping",
    "recipe_mappings": "shinglefold.ingest.index_mapping",
    "Meter": "shinglefold.ingest.fingerprinter",
    "Outcome": "shinglefold.ingest.pipeline.pipeline",
    "Pipeline": "shinglefold.ingest.pipeline.pipeline",
    "default_definition": "shinglefold.ingest.pipeline.pipeline",
    "Failure": "shinglefold.ingest.pipeline.steps",
    "Options": "shinglefold.ingest.processors.context",
    "Tools": "shinglefold.ingest.processors.context",
    "read": "shinglefold.ingest.readers.read",
    "ReadOptions": "shinglefold.ingest.readers.record",
    "Record": "shinglefold.ingest.readers.record",
    "Backoff": "shinglefold.runtime.backoff",
    "DeadLetters": "shinglefold.ingest.writing.dead_letters",
    "replay": "shinglefold.ingest.writing.dead_letters",
    "index_documents": "shinglefold.ingest.writing.indexer",
    "rebuild": "shinglefold.ingest.writing.target_index",
    "Progress": "shinglefold.ingest.writing.accounting",
    "Summary": "shinglefold.ingest.writing.accounting",
}

# A search needs neither readers nor worker processes.
__getattr__ = lazy_attributes(__name__, _HOMES)
