"""The groups of a whole index made anew: all pairs at once, and only what changed written."""

from shinglefold.groups.regroup.options import RegroupCounts, RegroupOptions, RegroupSummary
from shinglefold.groups.regroup.run import regroup

__all__ = ["RegroupCounts", "RegroupOptions", "RegroupSummary", "regroup"]
