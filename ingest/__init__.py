"""Documents in: readers, processors and JSON pipelines, fingerprints, bulk indexing."""

from typing import TYPE_CHECKING

from shinglefold.lazy import lazily

if TYPE_CHECKING:
    from shinglefold.backoff import Backoff
    from shinglefold.ingest.fingerprint import FingerprintArrays, Fingerprinter
    from shinglefold.ingest.mapping import (
        check_index,
        default_recipe,
        ensure_index,
        mappings,
        recipe_mappings,
    )
    from shinglefold.ingest.meter import Meter
    from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline, default_definition
    from shinglefold.ingest.pipeline.step import Failure
    from shinglefold.ingest.processors.options import Options
    from shinglefold.ingest.processors.tools import Tools
    from shinglefold.ingest.readers.read import read
    from shinglefold.ingest.readers.records import ReadOptions, Record
    from shinglefold.ingest.writing.dead_letters import DeadLetters, replay
    from shinglefold.ingest.writing.destination import rebuild
    from shinglefold.ingest.writing.indexing import index_documents
    from shinglefold.ingest.writing.ledger import Progress, Summary

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
    "FingerprintArrays": "shinglefold.ingest.fingerprint",
    "Fingerprinter": "shinglefold.ingest.fingerprint",
    "check_index": "shinglefold.ingest.mapping",
    "default_recipe": "shinglefold.ingest.mapping",
    "ensure_index": "shinglefold.ingest.mapping",
    "mappings": "shinglefold.ingest.mapping",
    "recipe_mappings": "shinglefold.ingest.mapping",
    "Meter": "shinglefold.ingest.meter",
    "Outcome": "shinglefold.ingest.pipeline.pipeline",
    "Pipeline": "shinglefold.ingest.pipeline.pipeline",
    "default_definition": "shinglefold.ingest.pipeline.pipeline",
    "Failure": "shinglefold.ingest.pipeline.step",
    "Options": "shinglefold.ingest.processors.options",
    "Tools": "shinglefold.ingest.processors.tools",
    "read": "shinglefold.ingest.readers.read",
    "ReadOptions": "shinglefold.ingest.readers.records",
    "Record": "shinglefold.ingest.readers.records",
    "Backoff": "shinglefold.backoff",
    "DeadLetters": "shinglefold.ingest.writing.dead_letters",
    "replay": "shinglefold.ingest.writing.dead_letters",
    "index_documents": "shinglefold.ingest.writing.indexing",
    "rebuild": "shinglefold.ingest.writing.destination",
    "Progress": "shinglefold.ingest.writing.ledger",
    "Summary": "shinglefold.ingest.writing.ledger",
}

# A search needs neither readers nor worker processes.
__getattr__ = lazily(__name__, _HOMES)
