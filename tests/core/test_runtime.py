"""Steps without input and output, locks, files that last, signals and optional imports."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import FrozenInstanceError
from importlib import import_module
from pathlib import Path
from time import monotonic, sleep
from types import ModuleType

import pytest

from shinglefold.contracts.engine import Capabilities
from shinglefold.documents import SourceFilter, values_at
from shinglefold.engines.http.engine import FairSemaphore
from shinglefold.runtime.durable_files import is_same_file, lock
from shinglefold.runtime.sans_io import run, run_async
from shinglefold.runtime.signals import Interrupted, raise_interrupted, signal_word


def _steps(log: list[str]) -> Generator[int, str, str]:
    try:
        first = yield 1
        second = yield 2
        log.append(first + second)
        try:
            yield 0
        except ZeroDivisionError:
            log.append("caught")
            return (yield 4)
    finally:
        log.append("cleaned up")
    return "nothing went wrong"


def _answer(request: int) -> str:
    return f"{8 // request}"


async def _awaited(request: int) -> str:
    await asyncio.sleep(0)
    return _answer(request)


@pytest.mark.parametrize("awaits", [False, True])
def test_answers_come_back_and_errors_where_the_request_was_made(awaits):
    log: list[str] = []
    told = asyncio.run(run_async(_steps(log), _awaited)) if awaits else run(_steps(log), _answer)
    assert told == "2"
    assert log == ["84", "caught", "cleaned up"]


@pytest.mark.parametrize("awaits", [False, True])
def test_an_error_that_steps_do_not_catch_is_raised_after_they_cleaned_up(awaits):
    log: list[str] = []

    def fails(_: int) -> str:
        raise KeyboardInterrupt

    async def fails_later(request: int) -> str:
        return fails(request)

    def driven() -> None:
        if awaits:
            asyncio.run(run_async(_steps(log), fails_later))
        else:
            run(_steps(log), fails)

    with pytest.raises(KeyboardInterrupt):
        driven()
    assert log == ["cleaned up"]


def test_steps_that_ask_for_nothing_are_done_at_once():
    def nothing() -> Generator[int, str, int]:
        yield from ()
        return 7

    assert run(nothing(), _answer) == asyncio.run(run_async(nothing(), _awaited)) == 7


def until(condition: Callable[[], object]) -> None:
    end = monotonic() + 20
    while not condition():
        assert monotonic() < end
        sleep(0.001)


def queued(semaphore: FairSemaphore, count: int, served: list[int]) -> list[threading.Thread]:
    """Start threads that wait for the semaphore one behind the other."""

    def wait(number: int) -> None:
        assert semaphore.acquire(20)
        served.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(count)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        until(lambda number=number: len(semaphore._waiting) == number)
    return threads


def test_threads_are_served_in_the_order_in_which_they_came():
    semaphore, served = FairSemaphore(2), []
    assert semaphore.acquire(0)
    assert semaphore.acquire(0)
    threads = queued(semaphore, 5, served)
    for done in range(1, 6):
        semaphore.release()
        # A newcomer does not pass those that wait.
        assert not semaphore.acquire(0)
        until(lambda done=done: len(served) == done)
    assert served == [0, 1, 2, 3, 4]
    for thread in threads:
        thread.join()
    semaphore.release()
    assert semaphore.acquire(0)
    assert not semaphore.acquire(0.01)


def test_a_thread_that_is_interrupted_passes_its_turn_on(monkeypatch):
    semaphore = FairSemaphore(1)
    assert semaphore.acquire(0)

    class Interrupted:
        """A lock whose waiting thread gets its turn and is interrupted at the same moment."""

        def __init__(self) -> None:
            self.calls = 0

        def acquire(self, **_: float) -> bool:
            self.calls += 1
            if self.calls == 2:
                semaphore.release()
                raise KeyboardInterrupt
            return True

        def release(self) -> None:
            """Do nothing."""

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            semaphore.acquire(1)
    assert semaphore.acquire(0)


@pytest.fixture
def opened():
    """Opens a file or a folder, each time anew, as another process would."""
    files: list[int] = []

    def make(path: Path) -> int:
        files.append(os.open(path, os.O_RDONLY))
        return files[-1]

    yield make
    for file in files:
        os.close(file)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_one_at_a_time_has_it_and_it_is_free_once_that_is_closed(tmp_path: Path, opened, kind):
    place = tmp_path / "place"
    place.mkdir() if kind == "folder" else place.touch()
    first = os.open(place, os.O_RDONLY)
    second = opened(place)
    assert (lock(first), lock(first), lock(second)) == (True, True, False)
    os.close(first)
    assert lock(second)


def test_a_child_that_was_forked_meanwhile_holds_it_too(tmp_path: Path, opened):
    place = tmp_path / "place"
    place.touch()
    held, (ends, end) = os.open(place, os.O_RDONLY), os.pipe()
    assert lock(held)
    child = os.fork()
    if not child:
        os.close(end)
        os.read(ends, 1)
        os._exit(0)
    os.close(held)
    assert lock(opened(place)) is False
    os.close(end)
    os.waitpid(child, 0)
    os.close(ends)
    assert lock(opened(place))


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="of Linux")
def test_what_can_not_be_locked_at_all_is_told_from_what_another_has(tmp_path: Path):
    # A path that is no open file is refused, as all files are by file systems without locks.
    path = os.open(tmp_path, os.O_PATH)
    assert lock(path) is None
    os.close(path)


def test_what_was_replaced_or_removed_stands_there_no_more(tmp_path: Path, opened):
    place, other = tmp_path / "place", tmp_path / "other"
    place.touch()
    other.touch()
    file = opened(place)
    assert is_same_file(file, place)
    other.replace(place)
    assert not is_same_file(file, place)
    place.unlink()
    assert not is_same_file(file, place)


@pytest.mark.parametrize(
    ("number", "word"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "interrupted")],
)
def test_a_signal_ends_a_run_with_its_word(number, word):
    assert signal_word(number) == word
    with pytest.raises(KeyboardInterrupt, match=word) as told:
        raise_interrupted(number, None)
    assert isinstance(told.value, Interrupted)
    assert told.value.signal == number


def test_without_a_signal_it_is_ctrl_c():
    assert Interrupted().signal == signal.SIGINT


_ROOT = Path(__file__).resolve().parents[2]
_LAZY = sorted(
    "shinglefold" if folder == "core" else f"shinglefold.{folder.replace('/', '.')}"
    for path in [*_ROOT.glob("*/__init__.py"), *_ROOT.glob("*/*/__init__.py")]
    if "lazy_attributes(" in path.read_text("utf-8")
    for folder in [path.parent.relative_to(_ROOT).as_posix()]
)


def test_packages_with_lazy_names_are_found():
    assert {"shinglefold", "shinglefold.ingest", "shinglefold.rerank"} <= set(_LAZY)


@pytest.mark.parametrize("package", _LAZY)
def test_every_public_name_is_there_and_no_other(package):
    module = import_module(package)
    for name in module.__all__ * 2:
        # A module of that name would be found first, once anybody has imported it.
        assert not isinstance(getattr(module, name), ModuleType), name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        _ = module.nonsense


def test_errors_are_caught_by_the_package_alone():
    program = "import shinglefold; print(shinglefold.errors.Refused.__name__)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "Refused\n"


def test_nobody_changes_what_an_engine_can():
    with pytest.raises(FrozenInstanceError):
        Capabilities().bulks_at_once = 4  # type: ignore[misc]


_SOURCE = {
    "title": "t",
    "host": {"name": "n", "port": 0},
    "tags": ["a", {"word": "b", "rank": 1}, None],
    "note": None,
}


@pytest.mark.parametrize(
    ("includes", "excludes", "kept"),
    [
        ((), (), _SOURCE),
        (("title",), (), {"title": "t"}),
        (("host",), (), {"host": {"name": "n", "port": 0}}),
        (("host.name",), (), {"host": {"name": "n"}}),
        (("host.p*",), (), {"host": {"port": 0}}),
        (("*e",), (), {"title": "t", "host": {"name": "n"}, "note": None}),
        (("tags.word",), (), {"tags": [{"word": "b"}]}),
        (("tags",), ("tags.word",), {"tags": ["a", {"rank": 1}, None]}),
        ((), ("tags.*",), {**_SOURCE, "tags": ["a", None]}),
        ((), ("host", "tags"), {"title": "t", "note": None}),
        ((), ("host.*",), {"title": "t", "host": {}, "tags": _SOURCE["tags"], "note": None}),
        (("host.*",), ("host.name",), {"host": {"port": 0}}),
        (("none", "ti*le", "t*i*t*e"), (), {"title": "t"}),
        (("titl", "itle", "t*tle*e", "tit*le*", "hos"), (), {"title": "t"}),
        (("ti*itle", "tl*ti"), (), {}),
    ],
)
def test_patterns_say_what_is_given_back(includes, excludes, kept):
    wanted = SourceFilter(includes=includes, excludes=excludes)
    assert wanted.apply(_SOURCE) == kept
    assert wanted.whole == (not includes and not excludes)


def test_what_is_shown_is_what_would_be_given_back():
    wanted = SourceFilter(includes=("host", "t*"), excludes=("tags", "*.port"))
    shown = {path for path in ("title", "host", "host.name", "host.port", "tags.word", "note")
             if wanted.shows(path)}  # fmt: skip
    assert shown == {"title", "host", "host.name"}
    assert not SourceFilter(wanted=False).shows("title")
    assert not SourceFilter(wanted=False).whole
    assert SourceFilter().shows("anything")


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ({"a": {"b": "x"}}, ["x"]),
        ({"a.b": "x"}, ["x"]),
        ({"a": [{"b": "x"}, {"b": ["y", [0]]}, {"c": 1}, 7]}, ["x", "y", 0]),
        ({"a": {"b": ["x", "y"]}}, ["x", "y"]),
        ({"a": {"b": None}, "a.b": [None, "x"]}, ["x"]),
        ({"a": "x"}, []),
        ({}, []),
        ({"a": {"b": False}}, [False]),
        ({"a": {"b": {"c": 1}}}, [{"c": 1}]),
    ],
)
def test_values_are_found_through_lists_and_names_with_dots(source, values):
    assert values_at(source, "a.b") == values


def test_a_path_of_three_names_is_found_however_they_are_joined():
    each = ({"a": {"b": {"c": 1}}}, {"a.b": {"c": 1}}, {"a": {"b.c": 1}}, {"a.b.c": 1}, [{"a": [{"b.c": 1}]}])
    assert [values_at({"list": one}, "list.a.b.c") for one in each] == [[1]] * 5
