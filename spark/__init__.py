"""Beyond one machine: fingerprints, pairs and groups of a collection by Apache Spark."""

from typing import TYPE_CHECKING

from shinglefold.lazy import lazily

if TYPE_CHECKING:
    from shinglefold.spark.candidates import Bounds, candidates, crowding, nominations
    from shinglefold.spark.components import connected
    from shinglefold.spark.grouping import Grouped, GroupOptions, groups
    from shinglefold.spark.prints import prints
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
        "Bounds": "shinglefold.spark.candidates",
        "GroupOptions": "shinglefold.spark.grouping",
        "Grouped": "shinglefold.spark.grouping",
        "Work": "shinglefold.spark.work",
        "candidates": "shinglefold.spark.candidates",
        "connected": "shinglefold.spark.components",
        "crowding": "shinglefold.spark.candidates",
        "groups": "shinglefold.spark.grouping",
        "nominations": "shinglefold.spark.candidates",
        "originals": "shinglefold.spark.twins",
        "prints": "shinglefold.spark.prints",
        "sign": "shinglefold.spark.signing",
        "stored": "shinglefold.spark.reading",
        "verified": "shinglefold.spark.verifying",
    },
)
