"""Beyond one machine: fingerprints, pairs and groups of a collection by Apache Spark."""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.offline.spark.candidate_pairs import Bounds
    from shinglefold.offline.spark.grouping import Grouped, GroupOptions, groups
    from shinglefold.offline.spark.read_index import stored
    from shinglefold.offline.spark.session import StageStore
    from shinglefold.offline.spark.signing import sign

__all__ = ["Bounds", "GroupOptions", "Grouped", "StageStore", "groups", "sign", "stored"]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".candidate_pairs": "Bounds",
        ".grouping": "GroupOptions Grouped groups",
        ".read_index": "stored",
        ".session": "StageStore",
        ".signing": "sign",
    },
)
