"""What is told at the end of a run: the servers that were tested on, and how many random trials were made.

Hooks of pytest are among these. They stand with all tests and not with those of servers: of several
processes the one that prints reads no other folder's.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from support.servers.choose import NAMES, URL, in_ci
from support.trials import LEAST, counted

LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with nothing to tell."""
    config.stash[LINES] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the lines to the process that prints, and fail the run there if there were too few trials."""
    lines = session.config.stash[LINES]
    # A worker process of pytest-xdist hands its lines to the process that prints.
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["servers"] = lines
    elif missing := lacking_trials(lines, whole=_is_whole(session.config)):
        lines.append(missing)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the lines of another process."""
    node.config.stash[LINES] += node.workeroutput.get("servers", []) if hasattr(node, "workeroutput") else []


def tell(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the lines."""
    if lines := config.stash[LINES]:
        terminalreporter.section("real servers")
        for line in lines:
            terminalreporter.line(f"server {line}")
        if trials := counted(lines):
            terminalreporter.line(f"{trials:,} random trials in all")


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
