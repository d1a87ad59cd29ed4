"""A pytest plugin that keeps how long each passed test took (``-p support.mutation.timed``)."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

#: The variable with the file that the seconds go to.
FILE = "MUTATION_SECONDS"
_KEPT = pytest.StashKey[dict[str, float]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_KEPT] = defaultdict(float)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """Add up the seconds of a test, with what was set up for it."""
    report = yield
    item.config.stash[_KEPT][item.nodeid] += report.duration if report.passed else float("inf")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    kept = session.config.stash[_KEPT].items()
    passed = {test: seconds for test, seconds in kept if seconds < float("inf")}
    Path(os.environ[FILE]).write_text(json.dumps(passed, indent=1), "utf-8")
