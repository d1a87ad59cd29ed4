"""The groups of a whole index made anew: all pairs at once, and only what changed written."""

from shinglefold.grouping.regroup.options import IndexGroups, RegroupCounts, RegroupOptions, RegroupSummary
from shinglefold.grouping.regroup.run import find_groups, regroup

__all__ = ["IndexGroups", "RegroupCounts", "RegroupOptions", "RegroupSummary", "find_groups", "regroup"]
