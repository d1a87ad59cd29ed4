"""Keeping an index right: setting it up, fingerprints for what is in it, and a check-up."""

from shinglefold.ingest.maintenance.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.ingest.maintenance.deletion import Deletion, delete, plan_deletion
from shinglefold.ingest.maintenance.doctor import Diagnosis, DoctorOptions, diagnose
from shinglefold.ingest.maintenance.retry import ForeignFile, retry
from shinglefold.ingest.maintenance.scan import Slice
from shinglefold.ingest.maintenance.setup import Plan, SetupRequest, carry_out, make_plan
from shinglefold.ingest.maintenance.statistics import IndexStatistics, statistics
from shinglefold.ingest.maintenance.updates import BackfillCounts

__all__ = [
    "BackfillCounts",
    "BackfillOptions",
    "BackfillSummary",
    "Deletion",
    "Diagnosis",
    "DoctorOptions",
    "ForeignFile",
    "IndexStatistics",
    "Plan",
    "SetupRequest",
    "Slice",
    "backfill",
    "carry_out",
    "delete",
    "diagnose",
    "make_plan",
    "plan_deletion",
    "retry",
    "statistics",
]
