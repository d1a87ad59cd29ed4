"""Documents in: readers, processors and JSON pipelines, fingerprints, bulk indexing."""

from shinglefold.ingest.bulk import Backoff
from shinglefold.ingest.dead_letters import DeadLetters, replay
from shinglefold.ingest.fingerprint import Fingerprinter, Prints
from shinglefold.ingest.indexing import index_documents
from shinglefold.ingest.mapping import check_index, ensure_index, mappings
from shinglefold.ingest.meter import Meter
from shinglefold.ingest.options import Options
from shinglefold.ingest.pipeline import Outcome, Pipeline, default_definition
from shinglefold.ingest.read import read
from shinglefold.ingest.records import ReadOptions, Record
from shinglefold.ingest.step import Failure
from shinglefold.ingest.summary import Progress, Summary
from shinglefold.ingest.tools import Tools

__all__ = [
    "Backoff",
    "DeadLetters",
    "Failure",
    "Fingerprinter",
    "Meter",
    "Options",
    "Outcome",
    "Pipeline",
    "Prints",
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
    "replay",
]
