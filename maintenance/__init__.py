"""Maintain an index: set it up, backfill fingerprints, diagnose it, retry dead letters, delete documents."""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.maintenance.backfiller import BackfillOptions, BackfillSummary, backfill
    from shinglefold.maintenance.doctor import Diagnosis, DoctorOptions, diagnose

__all__ = [
    "BackfillOptions",
    "BackfillSummary",
    "Diagnosis",
    "DoctorOptions",
    "backfill",
    "diagnose",
]

# Lazy, because statistics and deletions need no pipeline.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".backfiller": "BackfillOptions BackfillSummary backfill",
        ".doctor": "Diagnosis DoctorOptions diagnose",
    },
)
