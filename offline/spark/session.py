"""What is known of Spark in one place, so that nothing else imports it."""

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from shinglefold.errors import ConfigError, MissingExtra

#: A DataFrame, and a session, of Spark.
Frame = Any
Session = Any
#: An Arrow record batch, of which ``mapInArrow`` gives and takes an iterator.
Batch = Any

_FOR = "working on Spark"
#: Where Spark runs in this process's machine only.
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def sql() -> Any:  # noqa: ANN401 - a module
    """Return ``pyspark.sql``.

    Raises:
        MissingExtra: it, or what it needs to hand out Arrow batches, is not installed.
    """
    try:
        for name in ("pandas", "pyarrow"):
            import_module(name)
        return import_module("pyspark.sql")
    except ImportError as error:
        raise MissingExtra("spark", _FOR) from error


def session(options: Mapping[str, str], master: str = "") -> Session:
    """Return the session of this process, begun where there is none.

    Args:
        options: of Spark.
        master: such as ``local[2]``; empty: as ``spark-submit`` says, else this machine with all cores.

    Raises:
        MissingExtra: pyspark is not installed.
        ConfigError: Spark does not start.
    """
    builder = sql().SparkSession.builder.appName("shinglefold")
    conf = import_module("pyspark").SparkConf()
    where = master or conf.get("spark.master", "") or "local[*]"
    if where.startswith("local"):
        # Else Spark takes the first python3 on the PATH, which need not have what this one has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        options = {**_LOCAL, **options}
    for name, value in {"spark.master": where, **options}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        # Of several kinds, as it is Java that fails.
        raise ConfigError(
            f"Spark does not start ({_first_line(error)}): it needs Java 17 or newer, named by JAVA_HOME"
        ) from error


def read(session: Session, *sources: str) -> Frame:
    """Return the rows of Parquet files with the columns of all of them, not of one that Spark picks.

    Where it picks one, what only others have is left out, and nothing says so: a title is not signed.
    """
    return session.read.option("mergeSchema", "true").parquet(*sources)


def columns_of(frame: Frame, wanted: Iterable[str]) -> None:
    """Check that a frame has columns.

    Raises:
        ConfigError: it lacks one.
    """
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise ConfigError(f"no column {missing[0]!r}; there are: {', '.join(frame.columns)}")


def partition() -> int:
    """Return the number of the partition that this process works on."""
    context = import_module("pyspark").TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def totals(frame: Frame, **sums: str) -> dict[str, int]:
    """Return sums over a frame that is kept, by name; 0 over nothing.

    Spark's own counting on the way (``observe``) waits for ever for what it finds to be empty.

    Args:
        sums: expressions of SQL that aggregate its rows.
    """
    (row,) = frame.selectExpr(*(f"{what} AS {name}" for name, what in sums.items())).collect()
    return {name: int(row[name] or 0) for name in sums}


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]
