"""``python -m support.fuzz [--texts N] [--inputs N] [--seed N]``: the long run (``make fuzz``).

It ends with 1 where an input broke a promise or hung, and has told what makes it again.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.fuzz.run import Told, canonicalize, throw
from support.fuzz.targets import Targets


def main() -> int:
    """Throw everything, and tell how it went."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        for told in _run(Targets.make(Path(folder)), given):
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()
            broken += len(told.broken)
    sys.stdout.write(f"seed {given.seed}, {broken} broken\n")
    return 1 if broken else 0


def _run(targets: Targets, given: argparse.Namespace) -> Iterator[Told]:
    tools = targets.pipeline.tools
    if given.inputs:
        yield from throw(targets.all(), given.inputs, given.seed)
    if given.texts:
        yield canonicalize(tools.fingerprinter, tools.canonicalizer, given.texts, given.seed)


if __name__ == "__main__":
    sys.exit(main())
