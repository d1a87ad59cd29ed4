"""Documents in: readers, processors and JSON pipelines, fingerprints, bulk indexing."""

from shinglefold.ingest.fingerprint import FingerprintArrays, Fingerprinter
from shinglefold.ingest.mapping import check_index, ensure_index, mappings, recipe_mappings
from shinglefold.ingest.meter import Meter
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline, default_definition
from shinglefold.ingest.pipeline.step import Failure
from shinglefold.ingest.processors.options import Options
from shinglefold.ingest.processors.tools import Tools
from shinglefold.ingest.readers.read import read
from shinglefold.ingest.readers.records import ReadOptions, Record
from shinglefold.ingest.writing.bulk import Backoff
from shinglefold.ingest.writing.dead_letters import DeadLetters, replay
from shinglefold.ingest.writing.indexing import index_documents
from shinglefold.ingest.writing.rebuild import rebuild
from shinglefold.ingest.writing.summary import Progress, Summary

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
    "ensure_index",
    "index_documents",
    "mappings",
    "read",
    "rebuild",
    "recipe_mappings",
    "replay",
]
