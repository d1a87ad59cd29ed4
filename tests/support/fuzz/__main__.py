"""``python -m support.fuzz [--texts N] [--inputs N] [--seed N]``: the long run (``make fuzz``)."""

import argparse
import sys
import tempfile
from pathlib import Path

from support.fuzz.run import canonicalize, peak_memory, throw
from support.fuzz.targets import Targets


def main() -> int:
    """Throw everything, and tell how it went."""
    parser = argparse.ArgumentParser(prog="python -m support.fuzz", description=__doc__)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        targets = Targets.make(Path(folder))
        tools = targets.pipeline.tools
        for told in throw(targets.all(), given.inputs, given.seed):
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()
        sys.stdout.write(
            f"{canonicalize(tools.fingerprinter, tools.canonicalizer, given.texts, given.seed)}\n"
        )
    sys.stdout.write(f"peak memory {peak_memory():,.0f} MB, seed {given.seed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
