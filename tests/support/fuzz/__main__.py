"""``python -m support.fuzz [--texts N] [--inputs N] [--seed N] [--only KIND]``: the long run (``make fuzz``).

``--only gateway`` throws requests at a gateway, of ``SHINGLEFOLD_TEST_URL`` or of a server of its own.
It ends with 1 where an input broke a promise or hung, and has told what makes it again.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.fuzz.gateway import hostile_requests
from support.fuzz.run import Told, canonicalize, throw
from support.fuzz.targets import Targets
from support.servers.choose import NAMES, URL, start
from support.servers.server import Given


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", metavar="KIND", help="gateway, or one of: jsonl, csv, html, pages, bodies, …"
    )
    given = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        ways = _gateway(Path(folder), given) if given.only == "gateway" else _run(Path(folder), given)
        for told in ways:
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()
            broken += len(told.broken)
    sys.stdout.write(f"seed {given.seed}, {broken} broken\n")
    return 1 if broken else 0


def _run(folder: Path, given: argparse.Namespace) -> Iterator[Told]:
    targets = Targets.make(folder)
    tools = targets.pipeline.tools
    if given.inputs:
        kinds = targets.all()
        yield from throw({given.only: kinds[given.only]} if given.only else kinds, given.inputs, given.seed)
    if given.texts and not given.only:
        yield canonicalize(tools.fingerprinter, tools.canonicalizer, given.texts, given.seed)


def _gateway(folder: Path, given: argparse.Namespace) -> Iterator[Told]:
    server = (
        start(os.environ.get(NAMES) or "opensearch-3") if URL not in os.environ else Given(os.environ[URL])
    )
    try:
        with hostile_requests(server.url, folder / "log") as target:
            yield from throw({"gateway": target.throw}, given.inputs, given.seed)
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
