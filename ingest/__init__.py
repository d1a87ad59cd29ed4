"""Index documents: readers, pipelines of processors, fingerprints, bulk requests."""

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

# Lazy, as a search needs neither readers nor worker processes.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".fingerprinter": "FingerprintArrays Fingerprinter Meter",
        ".index_mapping": "check_index default_recipe ensure_index mappings recipe_mappings",
        ".pipeline.pipeline": "Outcome Pipeline default_definition",
        ".pipeline.steps": "Failure",
        ".processors.context": "Options Tools",
        ".readers.read": "read",
        ".readers.record": "ReadOptions Record",
        ".writing.accounting": "Progress Summary",
        ".writing.dead_letters": "DeadLetters replay",
        ".writing.indexer": "index_documents",
        ".writing.target_index": "rebuild",
        "shinglefold.runtime.backoff": "Backoff",
    },
)
