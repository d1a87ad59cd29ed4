"""What all tests share: the labelled corpora, where they are at hand, and one warm canonicalizer."""

import gc
import gzip
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.servers.choose import LONG, asked_for, examples, in_full, in_short, is_older
from support.servers.lines import (
    pytest_configure,
    pytest_sessionfinish,
    pytest_testnodedown,
    pytest_unconfigure,
    tell,
)

from shinglefold.canon import Canonicalizer
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme

__all__ = ["pytest_configure", "pytest_sessionfinish", "pytest_testnodedown", "pytest_unconfigure"]

# A busy machine makes any example slow: time is measured by `bench`, hangs are ended by their own tests.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
if settings.get_current_profile_name() == "default":
    settings.load_profile("unhurried")

# Commands are to run as users run them, whose output waits in a buffer until it is full.
os.environ.pop("PYTHONUNBUFFERED", None)

_ROOT = Path(__file__).resolve().parent.parent
#: The folder whose tests need real servers.
_SERVERS = Path("tests", "servers")
#: The fixtures of servers that only some tests are about, and of Spark: what shares one runs in one process.
_APART = {"secured", "knn", "plugin_server", "spark"}
#: Groups that take longest, begun first: at the end no process is to wait for another.
_FIRST = (
    "opensearch-3",
    "cluster",
    "tests/servers/test_generations.py",
    "elasticsearch-9",
    "opensearch-2",
    "spark",
    "tests/cli/test_pairs_on_corpora.py",
    "tests/grouping/test_every_interleaving.py",
    "cluster-elasticsearch-9",
    "secured",
    "plugin_server",
    "tests/grouping/test_killed_writers.py",
    "tests/servers/maintenance/test_killed.py",
    "tests/servers/test_secured.py",
    "knn",
    "tests/golden/test_results.py",
    "tests/packaging/test_wheel.py",
    "tests/mutation/test_mutants.py",
)
_LONGEST_NAME = 200
_LEFT_OUT = (
    "Tests on real servers were left out: they take minutes and 400 MB. To run them: "
    "make test SERVERS=all (or SERVERS=opensearch-3,elasticsearch-9)"
)
_LONG = pytest.mark.skip(
    reason="takes long, or much memory: run with the servers (make test SERVERS=all), as CI does, or by "
    f"{LONG}=1"
)


def pytest_sessionstart() -> None:
    """Hear Ctrl-C, as the commands that tests start do then: a script starts its background deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folder of servers unread where no server was asked for: each process would read it."""
    left_out = _is_whole(config) and not asked_for() and collection_path == _ROOT / _SERVERS
    return True if left_out else None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its beginning, as each process sends the names of all its tests."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME:
        beginning = val[:40] if isinstance(val, str) else val[:40].decode("ascii", "backslashreplace")
        return f"{beginning}… {argname} of {len(val)}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile: it takes a third of the time, and thousands of tests last to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, pytest.CollectReport]:
    """Let each process of several begin elsewhere: what one has compiled in a fresh clone, others load."""
    report: pytest.CollectReport = yield
    if isinstance(collector, pytest.Dir) and (worker := _worker(collector.config)) and report.result:
        begin = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = report.result[begin:] + report.result[:begin]
    return report


# Before all others, as pytest-xdist reads the groups in the same hook; and behind all, as pytest sorts there.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Leave real servers and what takes long out unless asked for; keep in one process what shares."""
    if _worker(config):
        # All are to have one order, wherever each began.
        items.sort(key=lambda item: item.path)
    _choose(config, items)
    yield
    groups = Counter(map(_together_with, items))
    items.sort(key=lambda item: _turn(_together_with(item), groups))


def _choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = []
    # Asked once: thousands of tests are chosen.
    full, asked = in_full(), asked_for()
    cases: Counter[str] = Counter()
    for item in items:
        if not full and _is_long(item, cases):
            item.add_marker(_LONG)
        if _needs_server(item):
            item.add_marker("servers")
            if not asked or _left_to_other_clusters(item) or _left_to_the_newest(item):
                left_out.append(item)
        item.add_marker(pytest.mark.xdist_group(_together_with(item)))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]


def _is_long(item: pytest.Item, cases: Counter[str]) -> bool:
    """Tell whether a test is left to runs in full: it is marked so, and none of the cases that always run."""
    marks = list(item.iter_markers("long"))
    # One case may be marked beside all of its test.
    if not marks or any("every" not in mark.kwargs for mark in marks):
        return bool(marks)
    name = item.nodeid.partition("[")[0]
    cases[name] += 1
    return (cases[name] - 1) % marks[0].kwargs["every"] != 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell which servers were tested on; what was left out in one line, as skips would bury all else."""
    tell(terminalreporter, config)
    if not asked_for() and (_is_whole(config) or terminalreporter.stats.get("deselected")):
        terminalreporter.write_line(_LEFT_OUT)


def _worker(config: pytest.Config) -> dict[str, Any] | None:
    """Return what pytest-xdist tells this process of itself, None where there is one process."""
    return getattr(config, "workerinput", None)


def _is_whole(config: pytest.Config) -> bool:
    # Processes of pytest-xdist are given as arguments what the first one has by default.
    return config.args == config.getini("testpaths")


def _needs_server(item: pytest.Item) -> bool:
    return _inside_servers(item.path) or item.get_closest_marker("servers") is not None


def _left_to_other_clusters(item: pytest.Item) -> bool:
    cluster = _parameters(item).get("cluster")
    return cluster is not None and in_short(cluster) and item.get_closest_marker("every_cluster") is None


def _left_to_the_newest(item: pytest.Item) -> bool:
    return is_older(_parameters(item).get("server", "")) and item.get_closest_marker("newest") is not None


def _together_with(item: pytest.Item) -> str:
    for name in _APART & set(getattr(item, "fixturenames", ())):
        return name
    parameters = _parameters(item)
    return str(parameters.get("cluster") or parameters.get("server") or _name_of(item.path))


@cache
def _name_of(path: Path) -> str:
    return str(path.relative_to(_ROOT))


@cache
def _inside_servers(path: Path) -> bool:
    return path.relative_to(_ROOT).is_relative_to(_SERVERS)


def _parameters(item: pytest.Item) -> Mapping[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _turn(group: str, groups: Counter[str]) -> tuple[int, int, str]:
    """Return when a group is begun: those that are known to take long, then by the number of their tests."""
    return (_FIRST.index(group) if group in _FIRST else len(_FIRST)), -groups[group], group


def _data_folder() -> Path:
    return Path(os.environ.get("SHINGLEFOLD_DATA", _ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def corpus_path() -> Callable[[str], Path]:
    """The file of a labelled corpus by name; skips where it is not there."""

    def find(name: str) -> Path:
        path = _data_folder() / f"{name}.jsonl.gz"
        if not path.exists():
            pytest.skip(f"no labelled corpus {name} here; set SHINGLEFOLD_DATA to the folder that has it")
        return path

    return find


@pytest.fixture(scope="session")
def corpus(corpus_path: Callable[[str], Path]) -> Callable[[str], Iterator[dict[str, str]]]:
    """The pages of a labelled corpus by name."""

    def pages(name: str) -> Iterator[dict[str, str]]:
        with gzip.open(corpus_path(name), "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    return pages


@pytest.fixture(scope="session")
def labelled_pairs(corpus_path: Callable[[str], Path]) -> Callable[[str], dict[tuple[str, str], float]]:
    """The labelled pairs of a corpus: two ids in order → similarity."""

    def pairs(name: str) -> dict[tuple[str, str], float]:
        path = corpus_path(name)
        with gzip.open(path.with_name(f"{name}.pairs.tsv.gz"), "rt", encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        return {(min(a, b), max(a, b)): float(similarity) for a, b, similarity, _ in rows}

    return pairs


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    """The default scheme over all installed languages."""
    return make_scheme()


@pytest.fixture(scope="session")
def canonicalizer(scheme: Scheme) -> Canonicalizer:
    """A canonicalizer of the default scheme; its lexicon warms as the tests go."""
    return Canonicalizer.of(scheme)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("only who may mount a file system can fill one")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
