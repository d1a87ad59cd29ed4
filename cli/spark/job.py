"""What the commands on Spark share: their session, their folders, and what they tell on the way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from shinglefold.cli.framework.output import printable, remark
from shinglefold.cli.options.definitions import options
from shinglefold.errors import ConfigError
from shinglefold.offline.spark.session import Frame, Session, place_of, session, sql, translated

#: Where the figures of Spark are not asked for: one line a stage is told instead.
_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "4000"}

job_options: Callable[[Any], Any] = options(
    click.option(
        "-o", "--output", required=True, metavar="ADDRESS", help="Folder of Parquet that is written."
    ),
    click.option("--overwrite", is_flag=True, help="Replace the output: what is there is removed first."),
    click.option(
        "--master",
        metavar="ADDRESS",
        default="",
        help="Where Spark runs, such as local[8]; by default as spark-submit says, else here on all cores.",
    ),
)


@contextmanager
def job(master: str) -> Iterator[Session]:
    """Yield a session that ends with the job, unless it was there; Spark's errors come in our words."""
    before = sql().SparkSession.getActiveSession()
    found = session(_QUIET, master) if before is None else before
    try:
        # What Spark warns of is for those who run the cluster.
        found.sparkContext.setLogLevel("ERROR")
        with translated():
            yield found
    finally:
        if before is None:
            found.stop()


def free(found: Session, output: str, overwrite: bool, inputs: tuple[str, ...], work: str = "") -> None:
    """Refuse an output that is there, or that would take with it what is read or worked in.

    Raises:
        ConfigError: it is, or would.
    """
    system, place = place_of(found, output)
    for source in inputs:
        if any(_together(place.toString(), read) for read in _meant(found, source)):
            raise ConfigError(f"{output} is read from, too: name another output with -o")
        if work and _within(place_of(found, work)[1].toString(), _meant(found, source)):
            raise ConfigError(
                f"{source} is read: name another folder with --work, as stages are no documents"
            )
    if work and _together(place.toString(), place_of(found, work)[1].toString()):
        raise ConfigError(f"{output} is worked in, too: name another output, or another folder with --work")
    if not overwrite and system.exists(place):
        raise ConfigError(f"{output} is there already: name another one, or replace it with --overwrite")


def _meant(found: Session, source: str) -> list[str]:
    """Return the addresses that one with wildcards means, and itself where it has none."""
    system, place = place_of(found, source)
    return [one.getPath().toString() for one in system.globStatus(place) or ()] or [place.toString()]


def _within(place: str, folders: list[str]) -> bool:
    """Tell whether an address is in one of some folders, or one of these."""
    return any((place.rstrip("/") + "/").startswith(folder.rstrip("/") + "/") for folder in folders)


def _together(one: str, other: str) -> bool:
    """Tell whether one of two addresses is the other, or within it."""
    a, b = (address.rstrip("/") + "/" for address in (one, other))
    return a.startswith(b) or b.startswith(a)


def write(frame: Frame, output: str, overwrite: bool) -> None:
    """Write a frame as Parquet."""
    frame.write.mode("overwrite" if overwrite else "errorifexists").parquet(output)


def progress(line: str) -> None:
    """Tell what is being done."""
    remark(printable(line))
