"""How decisions of a gate slow down as documents are stored, from 10³ to 10⁶; drawn for docs/gate.md.

``SHINGLEFOLD_TEST_URL`` names the server, else the embedded engine is measured. ``SHINGLEFOLD_BENCH_SIZES``
says beside how many documents (1000,10000,100000,1000000 unless told).
"""

import os

from bench.groups.gate import measured
from bench.groups.places import engines
from bench.pictures import growth, keep
from bench.table import Row

_SIZES = "1000,10000,100000,1000000"
_ONE, _MANY = "decisions one at a time", "decisions in batches"


def measure() -> list[Row]:
    """Return decisions a second and their times beside each number of documents, and draw the rates."""
    sizes = [int(size) for size in os.environ.get("SHINGLEFOLD_BENCH_SIZES", _SIZES).split(",")]
    with engines() as places:
        # The server where there is one.
        name, engine = places[-1]
        found = {size: list(measured(name, engine, size)) for size in sizes}
    rates = {
        wanted: [(size, row.value) for size, rows in found.items() for row in rows if row.name == wanted]
        for wanted in (_ONE, _MANY)
    }
    picture = growth(
        f"Decisions of a gate, {name}",
        ("documents stored", "decisions a second"),
        [("8 callers, one document each", rates[_ONE]), ("batches of 300", rates[_MANY])],
    )
    keep("gate-growth-embedded" if name == "embedded" else "gate-growth", picture)
    return [row for rows in found.values() for row in rows]
