"""Groups in the index: what they are worth, look-ups beside many documents, pages, the gate.

``SHINGLEFOLD_TEST_URL`` names a server, else the embedded engine is measured alone;
``SHINGLEFOLD_BENCH_STORED`` says beside how many documents (100,000 unless told). Each part can be run alone,
as ``python -m bench groups.similar``; ``SHINGLEFOLD_BENCH_FOLDER`` keeps the embedded index for the next one.
"""

from importlib import import_module

from bench.groups.stored import kept
from bench.table import Row

#: In the order in which they are run.
PARTS = ("quality", "similar", "native", "gate")


def measure() -> list[Row]:
    """Return the figures of all parts."""
    with kept():
        return [row for part in PARTS for row in import_module(f"bench.groups.{part}").measure()]
