"""``python -m bench [NAME …] [--dry]``: run the benchmarks, show them, and keep the evidence."""

import argparse
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module

from bench.groups import PARTS
from bench.speed import PARTS as SPEED_PARTS
from bench.table import Row, keep, shown

#: Name on the command line → module with ``measure()``.
BENCHMARKS: Mapping[str, str] = {
    "speed": "bench.speed",
    **{f"speed.{part}": f"bench.speed.{part}" for part in SPEED_PARTS},
    "grouping": "bench.speed.grouping",
    "quality": "bench.quality",
    "quality.edits": "bench.quality.edits",
    "gateway": "bench.gateway",
    "retrieval": "bench.retrieval",
    "servers": "bench.servers",
    "servers.callers": "bench.server_callers",
    "servers.plugin": "bench.server_plugin",
    "groups": "bench.groups",
    **{f"groups.{part}": f"bench.groups.{part}" for part in PARTS},
    "journeys": "bench.journeys",
}


def main() -> int:
    """Run the benchmarks named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}; none: all"
    )
    parser.add_argument("--dry", action="store_true", help="show the figures, keep no evidence")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    day = datetime.now(UTC).date()
    whole = [name for name in BENCHMARKS if "." not in name]
    for name in chosen.names or whole:
        measure: Callable[[], list[Row]] = import_module(BENCHMARKS[name]).measure
        rows = measure()
        sys.stdout.write(shown(name, rows) + "\n")
        if not rows:
            # What an earlier run has found stays.
            sys.stdout.write("Nothing was measured, so nothing is kept: its module says what it needs.\n\n")
        elif not chosen.dry:
            sys.stdout.write(f"kept in {keep(name, rows, day)}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
