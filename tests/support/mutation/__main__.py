"""``python -m support.mutation --package sketch [--sample 80] [--seed 7]``: what tests do not notice.

Results are kept under .cache/mutation and not made again; ``--again`` tries those once more that survived.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.mutation.covering import TESTS, Covering
from support.mutation.mutants import Mutant, count_places, sample
from support.mutation.table import change, justified, keep, kept, tell
from support.mutation.trial import prepare, try_out

_ROOT = Path(__file__).resolve().parents[3]
_PACKAGES = tuple(TESTS)


def main() -> int:
    """Try mutants, and tell which survived."""
    given = _arguments()
    folder = _ROOT / ".cache" / "mutation"
    prepare()
    if given.first and try_out(None, given.first, given.budget).word != "survived":
        _say(f"{', '.join(given.first)}: some fail without any change, and would seem to notice all of them")
        return 1
    for package in given.package or _PACKAGES:
        name = package.replace("/", "-")
        covering, file = Covering.of(folder / name, package), folder / f"{name}-{given.seed}.jsonl"
        drawn = sample(package, given.sample, given.seed)
        for mutant in _left(drawn, file, given.again):
            tests = covering.tests(mutant, given.budget)
            outcome = try_out(mutant, [*given.first, *tests], covering.took(tests))
            one = keep(file, mutant, outcome)
            _say(f"{one['word']} in {one['seconds']:.0f} s: {mutant.path}:{mutant.first[0]} {one['after']}")
        found = kept(file)
        for line in tell(package, count_places(package), [found[change(one)] for one in drawn]):
            _say(line)
    _say(f"seed {given.seed}, commit {_commit()}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--package", action="append", choices=_PACKAGES, help="all of them, if none is named")
    parser.add_argument("--sample", type=int, default=80, help="how many mutants of a package (80)")
    parser.add_argument("--seed", type=int, default=7, help="which ones (7)")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests a mutant (30)")
    parser.add_argument("--first", action="append", default=[], help="a new test file, for every mutant")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    return parser.parse_args()


def _left(drawn: list[Mutant], file: Path, again: bool) -> Iterator[Mutant]:
    """Return what is not tried yet, or survived and is to be tried again."""
    found, reasons = kept(file), justified()
    for mutant in drawn:
        key = change(mutant)
        survived = key in found and found[key]["word"] in {"survived", "untested"}
        if key not in found or (again and survived and key not in reasons):
            yield mutant


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
