"""Groups in the index: what they are worth, and the gate.

``SHINGLEFOLD_TEST_URL`` names a server, else the embedded engine is measured alone;
``SHINGLEFOLD_BENCH_STORED`` says beside how many documents (100,000 unless told). Each part can be run alone,
as ``python -m bench groups.gate``.
"""

from importlib import import_module

from bench.table import Row

#: In the order in which they are run.
PARTS = ("quality", "gate")


def measure() -> list[Row]:
    """Return the figures of all parts."""
    return [row for part in PARTS for row in import_module(f"bench.groups.{part}").measure()]
