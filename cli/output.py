"""Where output goes: JSON and lines to standard output, tables to a console, remarks to standard error."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

#: The width of tables where there is no terminal to ask.
WIDTH = 100
#: Wider than any row.
_UNBOUNDED = 1_000_000
# Text of documents is shown: control characters in it must not reach the terminal.
_CONTROLS: dict[int, int | None] = {
    **dict.fromkeys((*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **dict.fromkeys((9, 10, 13), 32),
}


def prepare_streams() -> None:
    """Let no text be unprintable: what the encoding lacks is written as an escape."""
    # A shell can close a stream (``>&-``); Python has None in its place.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
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
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


def remark(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(line + "\n")


def printable(text: object) -> str:
    """Return text without control characters, on one line."""
    return str(text).translate(_CONTROLS)


def make_console(stderr: bool = False) -> "Console":
    """Return a console: colours only on a terminal, nothing in a text taken for mark-up."""
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            # rich would end the process itself.
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    console = Quiet(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    return (
        console
        if stream.isatty()
        else Quiet(stderr=stderr, markup=False, highlight=False, emoji=False, width=_width())
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


def _width() -> int:
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else WIDTH
