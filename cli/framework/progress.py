"""How far a run is, on standard error: a bar on a terminal, elsewhere a line a minute."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from shinglefold.cli.framework.output import make_console, remark

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
