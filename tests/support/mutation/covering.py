"""Which tests run a line: one run of a package's tests with coverage, kept until it is removed."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from coverage import CoverageData
from support.mutation.mutants import Mutant
from support.mutation.timed import FILE

_ROOT = Path(__file__).resolve().parents[3]
#: The tests of a package, of what runs without servers and within this process: those of others would take
#: most of an hour, and notice little more.
TESTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "core": ("core",),
        "canon": ("canon", "plugins"),
        "sketch": ("sketch",),
        "rerank": ("rerank",),
        "ingest": ("ingest",),
        "maintenance": ("maintenance",),
        "offline": ("offline",),
        "grouping": ("grouping",),
        "engines/embedded": ("engines",),
        "engines/http": ("engines/http",),
        "cli": ("cli",),
        "api": ("api",),
        "gateway": ("gateway",),
        "passages": ("passages",),
        "relatives": ("relatives",),
    }
)


@dataclass(frozen=True, slots=True)
class Covering:
    """What each test runs, and how many seconds it takes."""

    data: CoverageData
    seconds: Mapping[str, float]

    @classmethod
    def of(cls, folder: Path, package: str) -> "Covering":
        """Read what a run kept in a folder, or run the tests of a package first; that takes minutes."""
        coverage, seconds = folder / "coverage", folder / "seconds.json"
        if not seconds.exists():
            folder.mkdir(parents=True, exist_ok=True)
            settings = {"COVERAGE_FILE": str(coverage), FILE: str(seconds)}
            tests = [f"tests/{name}" for name in TESTS[package]]
            command = [*_PYTEST, "--cov", "--cov-context=test", "--cov-report=", "-m", _QUICK, *tests]
            subprocess.run(command, cwd=_ROOT, env={**os.environ, **settings}, check=False)
        data = CoverageData(str(coverage))
        data.read()
        return cls(data, json.loads(seconds.read_text("utf-8")))

    def tests(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests that run a changed place, then those that run its file, the quickest first.

        What an import or a shared fixture has run may show in the first test that asked for it only, so the
        tests of the file follow those of the place. A place that only imports run is one of all tests.

        Args:
            mutant: What is changed.
            budget: How many seconds they may take, unchanged.
        """
        lines = self.data.contexts_by_lineno(str((_ROOT / mutant.path).resolve()))
        place = range(mutant.first[0], mutant.last[0] + 1)
        near = {name for line in place for name in _tests(lines.get(line, ()))}
        far = {name for contexts in lines.values() for name in _tests(contexts)} - near
        chosen, left = [], budget
        for names in (near, far) if near else (far, self.seconds.keys() - far):
            for name in sorted(names & self.seconds.keys(), key=lambda one: (self.seconds[one], one)):
                left -= self.seconds[name]
                if left < 0 and chosen:
                    break
                chosen.append(name)
        return chosen

    def took(self, tests: list[str]) -> float:
        """Return how many seconds tests take, unchanged."""
        return sum(self.seconds[name] for name in tests)


#: What reads whole corpora would take longer than all others together.
_QUICK = "not corpus and not slow"
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "support.mutation.timed")


def _tests(contexts: "list[str] | tuple[()]") -> set[str]:
    return {context.rpartition("|")[0] for context in contexts} - {""}
