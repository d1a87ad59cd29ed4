"""Maintain an index: set it up, backfill fingerprints, diagnose it, retry dead letters, delete documents."""

from shinglefold.maintenance.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.maintenance.doctor import Diagnosis, DoctorOptions, diagnose

__all__ = [
    "BackfillOptions",
    "BackfillSummary",
    "Diagnosis",
    "DoctorOptions",
    "backfill",
    "diagnose",
]
