"""Keeping an index right: setting it up, fingerprints for what is in it, and a check-up."""

from shinglefold.ingest.upkeep.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.ingest.upkeep.doctor import Diagnosis, DoctorOptions, diagnose
from shinglefold.ingest.upkeep.part import Part
from shinglefold.ingest.upkeep.retry import retry
from shinglefold.ingest.upkeep.setup import Plan, Wish, carry_out, make_plan
from shinglefold.ingest.upkeep.tally import Tally

__all__ = [
    "BackfillOptions",
    "BackfillSummary",
    "Diagnosis",
    "DoctorOptions",
    "Part",
    "Plan",
    "Tally",
    "Wish",
    "backfill",
    "carry_out",
    "diagnose",
    "make_plan",
    "retry",
]
