"""Groups in the index: look-ups beside many stored documents, and pages collapsed by the engine itself.

Each module has ``measure()``; ``SHINGLEFOLD_TEST_URL`` names a server, else the embedded engine is measured
alone. ``SHINGLEFOLD_BENCH_STORED`` says beside how many documents (100,000 unless told).
"""

from importlib import import_module

from bench.table import Row

#: In the order in which they are run.
_PARTS = ("similar", "native", "gate", "regroup")


def measure() -> list[Row]:
    """Return the figures of all parts."""
    return [row for part in _PARTS for row in import_module(f"bench.groups.{part}").measure()]
