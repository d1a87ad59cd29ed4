"""Maintain an index: set it up, backfill fingerprints, diagnose it, retry dead letters, delete documents."""

from shinglefold.maintenance.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.maintenance.deletion import (
    Deletion,
    Removal,
    RemovalCounts,
    carry_out_removal,
    delete,
    plan_deletion,
    plan_removal,
)
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
    "Removal",
    "RemovalCounts",
    "SetupRequest",
    "Slice",
    "backfill",
    "carry_out",
    "carry_out_removal",
    "delete",
    "diagnose",
    "make_plan",
    "plan_deletion",
    "plan_removal",
    "retry",
    "statistics",
]
