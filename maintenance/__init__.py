"""Maintain an index: set it up, backfill fingerprints, diagnose it, retry dead letters, delete documents."""

from shinglefold.maintenance.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.maintenance.deletion import Deletion, delete, plan_deletion
from shinglefold.maintenance.doctor import Diagnosis, DoctorOptions, diagnose
from shinglefold.maintenance.guarded_updates import BackfillCounts
from shinglefold.maintenance.retry import ForeignFile, retry
from shinglefold.maintenance.scan import Slice
from shinglefold.maintenance.setup import Plan, SetupRequest, carry_out, make_plan
from shinglefold.maintenance.statistics import IndexStatistics, statistics

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
