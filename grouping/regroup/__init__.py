"""Regroup a whole index: compare all pairs at once, and write only the changes."""

from shinglefold.grouping.regroup.options import IndexGroups, RegroupCounts, RegroupOptions, RegroupSummary
from shinglefold.grouping.regroup.run import find_groups, regroup

__all__ = ["IndexGroups", "RegroupCounts", "RegroupOptions", "RegroupSummary", "find_groups", "regroup"]
