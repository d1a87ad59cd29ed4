"""Where output goes: JSON and lines to standard output, tables to a console, remarks to standard error."""

import csv
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

#: The width of tables where there is no terminal to ask.
WIDTH = 100
#: How pages and pictures begin that commands write.
_PAGES = (b"<!doctype html", b"<svg")
#: Nobody has a wider terminal, and no number of columns more digits.
_WIDEST, _DIGITS = 10_000, 20
_TRAILING = re.compile(r"[ \t]+\n")
#: Wider than any row.
_UNBOUNDED = 1_000_000
# Text of documents is shown: control characters in it must not reach the terminal.
_CONTROLS: dict[int, int | None] = {
    **dict.fromkeys((*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **dict.fromkeys((9, 10, 13), 32),
}


class OutputLost(Exception):
    """Standard output can't be written to, and somebody still reads it."""


def prepare_streams() -> None:
    """Let no text be unprintable: what the encoding lacks is written as an escape."""
    # A shell can close a stream (``>&-``); Python has None in its place.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    # One that takes nothing, as what was to be shown is lost; remarks have no other place to go to.
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def write_json(value: Any, indent: int | None = 2) -> None:  # noqa: ANN401 - JSON
    """Write one JSON document; with ``indent=None`` on one line."""
    # In UTF-8 only lone surrogates get an escape from the stream, and theirs is JSON's own.
    readable = "utf" in (sys.stdout.encoding or "").lower()
    write_line(json.dumps(value, ensure_ascii=not readable, indent=indent))


def write_line(line: str) -> None:
    """Write a line to standard output.

    Raises:
        OutputLost: it can't be written to.
    """
    with _written():
        sys.stdout.write(line + "\n")


def check_page(path: str | None, option: str, sources: Iterable[str] = ()) -> None:
    """See that a page or picture may be written to a file: there is none, or one that was made before.

    Raises:
        ConfigError: it holds something else, or is a source.
    """
    from pathlib import Path

    from shinglefold.errors import ConfigError

    if path is None or not Path(path).is_file():
        return
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(16).lower()
        if (head and not head.startswith(_PAGES)) or any(
            os.path.exists(source) and os.path.samefile(path, source) for source in sources
        ):
            raise ConfigError(f"{option} {path} holds something else, which would be lost: name another file")


def write_page(path: str, page: str) -> None:
    """Write a page or picture to a file, in one step: a full disk leaves the one of before.

    Raises:
        Unwritable: it can't be written.
    """
    from pathlib import Path

    from shinglefold.errors import OutputError
    from shinglefold.runtime.durable_files import atomic_write

    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            # Not beside a device or a pipe.
            place.write_text(page, "utf-8", errors="replace")
            return
        with atomic_write(place, errors="replace") as file:
            file.write(page)
    except OSError as error:
        raise OutputError.of(path, error, "give another path") from error


def write_csv(row: Sequence[str]) -> None:
    """Write a row of CSV to standard output.

    Raises:
        OutputLost: it can't be written to.
    """
    with _written():
        csv.writer(sys.stdout, lineterminator="\n").writerow(row)


def flush_output() -> None:
    """Write what waits in the buffer of standard output.

    Raises:
        OutputLost: it can't be written to.
    """
    with _written():
        sys.stdout.flush()


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror or error
        raise OutputLost(
            f"cannot write to standard output: {reason}; what was to be shown is lost"
        ) from error


def remark(line: str) -> None:
    """Write a line to standard error; where that can't be written to, there is no place to tell it."""
    with suppress(OSError):
        sys.stderr.write(line + "\n")


def printable(text: object) -> str:
    """Return text without control characters, on one line."""
    return str(text).translate(_CONTROLS)


def times(count: int) -> str:
    """Return how often something happened, in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


class _Plain:
    """Standard output or error where that is no terminal: lines end where their text ends."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        # rich fills lines up to the width of a terminal.
        with _written():
            return self._stream.write(_TRAILING.sub("\n", text))

    def flush(self) -> None:
        with _written():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._stream, name)


def make_console(stderr: bool = False) -> "Console":
    """Return a console: nothing in a text is taken for markup.

    Colours, and lines folded to its width, are for a terminal; elsewhere each line is as long as its text,
    unless ``COLUMNS`` says how wide it is to be.
    """
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process itself.
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    terminal = stream.isatty()
    return Quiet(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not terminal and not _columns(),
        file=None if terminal else _Plain(stream),  # type: ignore[arg-type]
        width=_columns() or (None if terminal else WIDTH),
    )


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; on a terminal its cells are folded to fit, else a row is a line, however long."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    console = make_console()
    if console.is_terminal:
        console.print(table)
        return
    console.width = _UNBOUNDED
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        write_line(line.rstrip())


def _columns() -> int:
    """Return the width the environment asks for, or 0."""
    given = os.environ.get("COLUMNS", "")
    return min(int(given), _WIDEST) if given.isdecimal() and len(given) < _DIGITS else 0


_STEP = 1000.0
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def size_of(count: int | None) -> str:
    """Return a number of bytes in the unit that leaves one to three digits before the point."""
    if count is None:
        return "?"
    if count < _STEP:
        return f"{count} bytes"
    number, unit = float(count), 0
    # What would be shown as 1000.0 belongs to the next unit.
    while round(number, 1) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:.1f} {_UNITS[unit]}"


def share_of(share: float | None) -> str:
    """Return a share in percent; only all of it is 100 %, and only nothing is 0 %."""
    if share is None:
        return "-"
    if 0 < share < 1:
        return f"{min(99.9, max(0.1, share * 100)):.1f} %"
    return f"{share:.0%}".replace("%", " %")


#: Told the share done, 0 where it is unknown, and a remark.
Report = Callable[[float, str], None]
_MINUTE = 60.0


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Show a bar while the block runs; a line a minute when standard error is no terminal."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield _lines(title)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Refreshed by hand: a thread of its own would be there when workers are forked.
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[remark]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task(title, total=None, remark="")

        def report(fraction: float, remark: str) -> None:
            bar.update(task, total=1.0 if fraction else None, completed=fraction, remark=remark)
            bar.refresh()

        yield report


def _lines(title: str) -> Report:
    told = monotonic()

    def report(fraction: float, what: str) -> None:
        nonlocal told
        if monotonic() - told >= _MINUTE:
            told = monotonic()
            remark(f"{title}: {what}" + (f", {fraction:.0%} done" if fraction else ""))

    return report


class ProgressPace:
    """How many a second, and how long it will take.

    Args:
        unit: what is counted, in words.
    """

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._start = monotonic()

    def told(self, done: int, fraction: float) -> str:
        """Return how far a run is, in words."""
        seconds = max(monotonic() - self._start, 1e-9)
        left = seconds * (1 - fraction) / fraction if fraction > 0 and seconds > 1 else None
        rest = "" if left is None else f", {span(left)} left"
        return f"{done:,} {self._unit}, {done / seconds:,.0f}/s{rest}"


def span(seconds: float) -> str:
    """Return a time as a clock shows it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
