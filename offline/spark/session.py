"""Start a Spark session, read its sources and translate its errors; no other module imports pyspark."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from shinglefold.errors import ConfigError, EngineError, InputError, MissingExtra, ShinglefoldError, suggest

#: Spark's ``DataFrame`` and ``SparkSession``.
Frame = Any
Session = Any
#: An Arrow record batch. ``mapInArrow`` passes an iterator of them to a function that returns one.
Batch = Any

_FOR = "working on Spark"
#: Suffixes of JSON lines, of compressed files, and of files that are neither JSON lines nor Parquet.
_JSON, _PACKED = (".jsonl", ".ndjson", ".json"), (".gz", ".bz2", ".zst", ".xz", ".zip")
_OTHER = (".csv", ".tsv", ".txt", ".html", ".htm", ".xml", ".avro", ".orc", ".md", ".tar", ".7z")
#: How many file names of a source are checked; each takes a millisecond.
_LOOKED_AT = 1_000
#: Options for a Spark that runs on this machine only: other machines can't connect.
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def sql() -> Any:  # noqa: ANN401 - a module
    """Return ``pyspark.sql``.

    Raises:
        MissingExtra: pyspark is not installed, or pandas or pyarrow, which it needs for Arrow batches.
    """
    try:
        for name in ("pandas", "pyarrow"):
            import_module(name)
        return import_module("pyspark.sql")
    except ImportError as error:
        raise MissingExtra("spark", _FOR) from error


def session(options: Mapping[str, str], master: str = "") -> Session:
    """Return the Spark session of this process; start it if there is none.

    Args:
        options: configuration properties of Spark.
        master: such as ``local[2]``. By default that of ``spark-submit``, else all cores of this machine.

    Raises:
        MissingExtra: pyspark is not installed.
        ConfigError: Spark does not start.
    """
    builder = sql().SparkSession.builder.appName("shinglefold")
    conf = import_module("pyspark").SparkConf()
    where = master or conf.get("spark.master", "") or "local[*]"
    if where.startswith("local"):
        # Otherwise Spark runs the first python3 on the PATH, which may lack our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        options = {**_LOCAL, **options}
    for name, value in {"spark.master": where, **options}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        # Java fails in several ways, each with a different Python exception.
        raise ConfigError(
            f"Spark does not start ({_first_line(error)}): it needs Java 17 or newer, named by JAVA_HOME"
        ) from error


def read(session: Session, *sources: str) -> Frame:
    """Return the rows of Parquet files, or of JSON lines, with the columns that any file has.

    Raises:
        ConfigError: a file has another suffix, or some files are Parquet and others JSON lines.
    """
    kinds: dict[str, str] = {}
    for source in sources:
        for name in islice(_files(session, source), _LOOKED_AT):
            kinds.setdefault(_format(name), name)
    if len(kinds) > 1:
        raise ConfigError(
            f"{kinds['parquet']} is Parquet and {kinds['json']} is JSON lines: give each kind to a job of "
            "its own"
        )
    if "json" in kinds:
        # By default Spark reads a line that is not JSON as an empty row.
        return session.read.option("mode", "FAILFAST").json(list(sources))
    # By default Spark reads the columns of one file, and drops those that only other files have.
    return session.read.option("mergeSchema", "true").parquet(*sources)


def place_of(session: Session, address: str) -> tuple[Any, Any]:
    """Return the Hadoop file system of an address, and the qualified path in it."""
    files = session._jvm.org.apache.hadoop.fs  # noqa: SLF001 - Spark has no other door to it
    path = files.Path(address)
    system = path.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001
    return system, system.makeQualified(path)


def _files(session: Session, source: str) -> Iterator[str]:
    """Yield the addresses of the files of a source, without those that Spark treats as hidden."""
    system, place = place_of(session, source)
    for found in system.globStatus(place) or ():
        folder = found.getPath().toString()
        files = system.listFiles(found.getPath(), True)
        while files.hasNext():
            name = files.next().getPath().toString()
            parts = name.removeprefix(folder).strip("/").split("/")
            if not any(part.startswith((".", "_")) and "=" not in part for part in parts):
                yield name


def _format(name: str) -> str:
    """Return the format of a file by its suffix: ``json`` or, without a known one, ``parquet``.

    Raises:
        ConfigError: the suffix is that of another format.
    """
    bare = name.lower()
    packed = next((one for one in _PACKED if bare.endswith(one)), "")
    if bare.removesuffix(packed).endswith(_JSON):
        return "json"
    if packed or bare.endswith(_OTHER):
        raise ConfigError(
            f"{name} is neither Parquet nor JSON lines by its name: make JSON lines of it with "
            f"{suggest('sign', name, output='signed.jsonl')}"
        )
    return "parquet"


def columns_of(frame: Frame, wanted: Iterable[str]) -> None:
    """Check that a frame has these columns.

    Raises:
        ConfigError: a column is missing.
    """
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise ConfigError(f"no column {missing[0]!r}; there are: {', '.join(frame.columns)}")


def partition() -> int:
    """Return the number of the partition that this process works on."""
    context = import_module("pyspark").TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def totals(frame: Frame, **sums: str) -> dict[str, int]:
    """Return sums over the rows of a stored frame, by name; 0 for an empty frame.

    Spark's ``observe`` would count without a second pass, but never returns if the frame is empty.

    Args:
        sums: SQL expressions that aggregate the rows.
    """
    (row,) = frame.selectExpr(*(f"{what} AS {name}" for name, what in sums.items())).collect()
    return {name: int(row[name] or 0) for name in sums}


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]


_OURS = re.compile(r"shinglefold\.errors\.(\w+): (.+)")
#: Error conditions of Spark that mean a wrong path, or a file that can't be read.
_FILES = ("PATH_NOT_FOUND", "PATH_ALREADY_EXISTS", "UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE")


@contextmanager
def translated() -> Iterator[None]:
    """Translate errors of Spark into errors of shinglefold.

    Raises:
        ShinglefoldError: a worker raised it; recognized by the class name in Spark's message.
        InputError: a file can't be read or written.
        EngineError: any other error of Spark.
    """
    pyspark, gateway = import_module("pyspark.errors"), import_module("py4j.protocol")
    try:
        yield
    except pyspark.PySparkException as error:
        raise _translated(str(error), error.getCondition() or "") from error
    except gateway.Py4JError as error:
        raise _translated(str(error), "") from error


def _translated(text: str, condition: str) -> ShinglefoldError:
    found = _OURS.search(text)
    if found is not None:
        # Our other errors take more than a message, so they can't be made again from the text.
        return ConfigError(found[2]) if found[1] == "ConfigError" else InputError(found[2])
    line = _told(text)
    if "CANNOT_MERGE" in condition + line:
        return InputError(f"columns of one name must be of one type in all files, so cast them: {line}")
    if "MALFORMED_RECORD" in condition + text:
        return InputError(f"a line is not a JSON object, so mend it or leave it out: {line}")
    if condition.startswith(_FILES):
        return InputError(f"{line}: check the path")
    return EngineError(f"Spark stopped: {line}; its log says more")


def _told(text: str) -> str:
    """Return the line of a Java stack trace with the innermost cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    chosen = (
        causes[-1] if causes else next((line for line in lines if not line.startswith("An error occ")), text)
    )
    return chosen[:400].rstrip(" .;:")
