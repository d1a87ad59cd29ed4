"""How fast: the kernel beside its peers, each stage, from file to file, and beside plain shingling."""

from importlib import import_module

from bench.table import Row

#: Each has a ``measure()``, and can be run alone as ``speed.NAME``.
PARTS = ("kernels", "stages", "sign", "plain_shingling", "starting")


def measure() -> list[Row]:
    """Return the rows of all parts."""
    return [row for part in PARTS for row in import_module(f"bench.speed.{part}").measure()]
