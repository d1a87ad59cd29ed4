"""A progress bar on standard error, where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shinglefold.cli.output import make_console

#: Told the share done, 0 where it is unknown, and a remark.
Report = Callable[[float, str], None]


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Show a bar while the block runs; nothing when standard error is no terminal."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda _fraction, _remark: None
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
