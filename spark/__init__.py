"""Beyond one machine: fingerprints, pairs and groups of a collection by Apache Spark."""

from typing import TYPE_CHECKING

from shinglefold.lazy import lazily

if TYPE_CHECKING:
    from shinglefold.spark.columns import prints
    from shinglefold.spark.components import connected
    from shinglefold.spark.grouping import Grouped, GroupOptions, groups
    from shinglefold.spark.nominating import Bounds, candidates, crowding, nominations
    from shinglefold.spark.reading import stored
    from shinglefold.spark.signing import sign
    from shinglefold.spark.twins import originals
    from shinglefold.spark.verifying import verified
    from shinglefold.spark.work import Work

__all__ = [
    "Bounds",
    "GroupOptions",
    "Grouped",
    "Work",
    "candidates",
    "connected",
    "crowding",
    "groups",
    "nominations",
    "originals",
    "prints",
    "sign",
    "stored",
    "verified",
]

__getattr__ = lazily(
    __name__,
    {
        "Bounds": "shinglefold.spark.nominating",
        "GroupOptions": "shinglefold.spark.grouping",
        "Grouped": "shinglefold.spark.grouping",
        "Work": "shinglefold.spark.work",
        "candidates": "shinglefold.spark.nominating",
        "connected": "shinglefold.spark.components",
        "crowding": "shinglefold.spark.nominating",
        "groups": "shinglefold.spark.grouping",
        "nominations": "shinglefold.spark.nominating",
        "originals": "shinglefold.spark.twins",
        "prints": "shinglefold.spark.columns",
        "sign": "shinglefold.spark.signing",
        "stored": "shinglefold.spark.reading",
        "verified": "shinglefold.spark.verifying",
    },
)
