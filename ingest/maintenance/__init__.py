"""Keeping an index right: setting it up, fingerprints for what is in it, and a check-up."""

from shinglefold.ingest.maintenance.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.ingest.maintenance.counts import BackfillCounts
from shinglefold.ingest.maintenance.doctor import Diagnosis, DoctorOptions, diagnose
from shinglefold.ingest.maintenance.retry import retry
from shinglefold.ingest.maintenance.setup import Plan, SetupRequest, carry_out, make_plan
from shinglefold.ingest.maintenance.slices import Slice

__all__ = [
    "BackfillCounts",
    "BackfillOptions",
    "BackfillSummary",
    "Diagnosis",
    "DoctorOptions",
    "Plan",
    "SetupRequest",
    "Slice",
    "backfill",
    "carry_out",
    "diagnose",
    "make_plan",
    "retry",
]
