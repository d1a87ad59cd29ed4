"""Keeping an index right: backfill of fingerprints, set-up of mappings and templates, and a check-up."""

from shinglefold.ingest.upkeep.backfill import BackfillOptions, BackfillSummary, backfill
from shinglefold.ingest.upkeep.part import Part
from shinglefold.ingest.upkeep.tally import Tally

__all__ = ["BackfillOptions", "BackfillSummary", "Part", "Tally", "backfill"]
