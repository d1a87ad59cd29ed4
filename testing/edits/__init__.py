"""Graded edits of texts with exact truth, to see what folds on your own site, too.

``edited`` makes a copy of a text that differs from it in one way, to a degree, by a seed: what a detector of
near-duplicates says of the two can then be held against what was done.
"""

from shinglefold.testing.edits.edits import KINDS, Edited, EditKind, edited, kinds_of

__all__ = ["KINDS", "EditKind", "Edited", "edited", "kinds_of"]
