"""What is told at the end of a run: the servers that were tested on, and how many random trials were made.

Hooks of pytest are among these. They stand with all tests and not with those of servers: of several
processes the one that prints reads no other folder's.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from support.servers.choose import NAMES, URL, in_ci

LINES = pytest.StashKey[list[str]]()
_MISSING = pytest.StashKey[str]()
#: Random trials in CI, over all servers.
LEAST = 400
_TRIALS = re.compile(r"trials: (\d+) on ")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the lines to the process that prints, and fail the run there if there were too few trials."""
    lines = session.config.stash[LINES]
    # A worker process of pytest-xdist hands its lines to the process that prints.
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["servers"] = lines
    elif missing := lacking_trials(lines, whole=_is_whole(session.config)):
        session.config.stash[_MISSING] = missing
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say last of all, behind the summary of tests, why a run fails in which no test did."""
    if missing := config.stash.get(_MISSING, ""):
        print(f"FAILED: {missing}")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the lines of another process."""
    node.config.stash[LINES] += node.workeroutput.get("servers", []) if hasattr(node, "workeroutput") else []


def tell(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash[LINES]:
        terminalreporter.section("real servers")
        for line in lines:
            terminalreporter.line(f"server {line}")
        if trials := counted(lines):
            terminalreporter.line(f"{trials:,} random trials in all")


def line(count: int, where: str, first: int) -> str:
    """Return what is told of trials that were made."""
    return f"trials: {count} on {where}, seeds {first} to {first + count - 1}"


def counted(lines: Iterable[str]) -> int:
    """Return how many trials some lines tell of."""
    return sum(int(found[1]) for one in lines if (found := _TRIALS.match(one)))


def lacking_trials(lines: Sequence[str], *, whole: bool) -> str:
    """Return what is told where a whole run of CI made too few trials, else nothing."""
    found = counted(lines)
    if not whole or found >= LEAST:
        return ""
    return f"too few random trials: {found:,}, at least {LEAST:,} are wanted over all servers"


def _is_whole(config: pytest.Config) -> bool:
    """Tell whether these are all tests on all servers: those of CI."""
    chosen = config.option.keyword or config.option.markexpr or os.environ.get(NAMES) or os.environ.get(URL)
    return in_ci() and not chosen and config.args_source is pytest.Config.ArgsSource.TESTPATHS
