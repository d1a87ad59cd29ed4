"""How fast: the kernel beside its peers, from file to file, and the start of commands."""

from importlib import import_module

from bench.table import Row

#: Each has a ``measure()``, and can be run alone as ``speed.NAME``.
PARTS = ("kernels", "sign", "starting")


def measure() -> list[Row]:
    """Return the rows of all parts."""
    return [row for part in PARTS for row in import_module(f"bench.speed.{part}").measure()]
