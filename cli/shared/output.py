"""Write results to standard output; remarks and progress to standard error."""

import csv
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Literal

from shinglefold.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from rich.console import Console

    from shinglefold.ingest.writing.accounting import Progress

#: The width of tables without a terminal.
WIDTH = 100
#: The first bytes of the pages that commands write.
_PAGE = b"<!doctype html"
#: Limits on COLUMNS: a terminal's width, and the digits of the number.
_WIDEST, _DIGITS = 10_000, 20
_TRAILING = re.compile(r"[ \t]+\n")
#: The width of a console whose rows must not be wrapped; no row is wider.
_UNBOUNDED = 1_000_000
# Control characters in the texts of documents must not reach the terminal.
_CONTROLS: dict[int, int | None] = {
    **dict.fromkeys((*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **dict.fromkeys((9, 10, 13), 32),
}


class OutputLost(Exception):
    """Standard output can't be written to, for another reason than a closed pipe."""


def prepare_streams() -> None:
    """Make the standard streams safe to write to: characters that the encoding lacks become escapes."""
    # Python sets a stream to None if the shell closed it (``>&-``).
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    # Opened for reading, so that writing fails: lost results are an error, lost remarks are not.
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def write_json(value: Any, indent: int | None = 2) -> None:  # noqa: ANN401 - JSON
    """Write one JSON document; with ``indent=None`` on one line."""
    # In UTF-8 the stream escapes lone surrogates only, in the same way as JSON.
    readable = "utf" in (sys.stdout.encoding or "").lower()
    write_line(json.dumps(value, ensure_ascii=not readable, indent=indent))


def write_line(line: str) -> None:
    """Write a line to standard output.

    Raises:
        OutputLost: it can't be written.
    """
    with _output_errors():
        sys.stdout.write(line + "\n")


def check_page(path: str | None, option: str, sources: Iterable[str] = ()) -> None:
    """Check that a page may be written to a file.

    Raises:
        ConfigError: it may not.
    """
    if path is not None and Path(path).is_dir():
        raise ConfigError(f"{option} {path} is a folder: name a file in it")
    if path is None or not Path(path).is_file():
        return
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(16).lower()
        if (head and not head.startswith(_PAGE)) or any(
            os.path.exists(source) and os.path.samefile(path, source) for source in sources
        ):
            raise ConfigError(f"{option} {path} holds something else, which would be lost: name another file")


def write_page(path: str, page: str) -> None:
    """Write a page to a file; if that fails, an earlier one stays.

    Raises:
        OutputError: it can't be written.
    """
    from shinglefold.runtime.durable_files import atomic_write

    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            # A device or a pipe can't be replaced by a finished file.
            place.write_text(page, "utf-8", errors="replace")
            return
        with atomic_write(place, errors="replace") as file:
            file.write(page)
    except OSError as error:
        raise OutputError.of(path, error, "give another path") from error


def write_csv(row: Sequence[str]) -> None:
    """Write a row of CSV to standard output.

    Raises:
        OutputLost: it can't be written.
    """
    with _output_errors():
        csv.writer(sys.stdout, lineterminator="\n").writerow(row)


def flush_output() -> None:
    """Flush standard output.

    Raises:
        OutputLost: it can't be written.
    """
    with _output_errors():
        sys.stdout.flush()


@contextmanager
def _output_errors() -> Iterator[None]:
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
    """Write a line to standard error; failures are ignored, as nothing could report them."""
    with suppress(OSError):
        sys.stderr.write(line + "\n")


def write_lines(lines: Iterable[object]) -> None:
    """Write lines to standard output without control characters."""
    for line in lines:
        write_line(printable(line))


def warn(lines: Iterable[object], kind: str = "warning") -> None:
    """Write warnings to standard error."""
    for line in lines:
        remark(f"{kind}: {printable(line)}")


def printable(text: object) -> str:
    """Return text without control characters, on one line."""
    return str(text).translate(_CONTROLS)


def format_times(count: int) -> str:
    """Return a count as "once", "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


class _Unpadded:
    """A standard stream that is not a terminal: trailing blanks are removed."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        # rich pads lines to the width of the console.
        with _output_errors():
            return self._stream.write(_TRAILING.sub("\n", text))

    def flush(self) -> None:
        with _output_errors():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._stream, name)


def make_console(stderr: bool = False) -> "Console":
    """Return a console that does not interpret text as markup.

    A terminal gets colours and wrapped lines. Others get unwrapped lines, unless ``COLUMNS`` sets a width.
    """
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process.
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    terminal = stream.isatty()
    return Quiet(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not terminal and not _columns(),
        file=None if terminal else _Unpadded(stream),  # type: ignore[arg-type]
        width=_columns() or (None if terminal else WIDTH),
    )


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; a terminal gets wrapped cells, other streams one line a row."""
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
    """Return the width that the variable COLUMNS sets, else 0."""
    given = os.environ.get("COLUMNS", "")
    return min(int(given), _WIDEST) if given.isdecimal() and len(given) < _DIGITS else 0


_STEP = 1000.0
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def format_size(count: int | None) -> str:
    """Return a number of bytes with a unit, such as "1.5 MB"."""
    if count is None:
        return "?"
    if count < _STEP:
        return f"{count} bytes"
    number, unit = float(count), 0
    # Rounded, so that 999.96 kB becomes 1.0 MB instead of 1000.0 kB.
    while round(number, 1) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:.1f} {_UNITS[unit]}"


def format_share(share: float | None) -> str:
    """Return a share in percent, "100 %" only for all and "0 %" only for none."""
    if share is None:
        return "-"
    if 0 < share < 1:
        return f"{min(99.9, max(0.1, share * 100)):.1f} %"
    return f"{share:.0%}".replace("%", " %")


#: Called with the share done, 0 if unknown, and a remark.
Report = Callable[[float, str], None]
_MINUTE = 60.0


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Show a progress bar while the block runs; if standard error is not a terminal, a line a minute."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield _lines(title)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Refreshed by hand, because rich's refreshing thread must not exist when workers are forked.
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
    last = monotonic()

    def report(fraction: float, what: str) -> None:
        nonlocal last
        if monotonic() - last >= _MINUTE:
            last = monotonic()
            remark(f"{title}: {what}" + (f", {fraction:.0%} done" if fraction else ""))

    return report


def progress_reporter(report: Report, counted: Literal["read", "indexed"]) -> Callable[["Progress"], None]:
    """Return a callback of a run that shows how many documents were read or indexed, and how many failed."""

    def show(progress: "Progress") -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        report(progress.fraction, f"{getattr(progress, counted):,} {counted}{failed}")

    return show


class ProgressPace:
    """The speed of a run and the time it will take, as a phrase."""

    def __init__(self) -> None:
        self._start = monotonic()
        self._first: float | None = None

    def describe(self, done: int, fraction: float) -> str:
        """Return both.

        Args:
            done: what this run has done.
            fraction: the share done, also by earlier runs.
        """
        seconds = max(monotonic() - self._start, 1e-9)
        self._first = fraction if self._first is None else self._first
        share = fraction - self._first
        left = seconds * (1 - fraction) / share if share > 0 and seconds > 1 else None
        rest = "" if left is None else f", {format_duration(left)} left"
        return f"{done / seconds:,.0f}/s{rest}"


def format_duration(seconds: float) -> str:
    """Return a duration as h:mm:ss or m:ss."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
