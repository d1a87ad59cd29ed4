"""Start a Spark session, read its sources, store stages, translate errors; only here is pyspark imported."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from typing import Any
from uuid import uuid4

from shinglefold.errors import ConfigError, EngineError, InputError, MissingExtra, ShinglefoldError, suggest

#: Spark's ``DataFrame`` and ``SparkSession``.
Frame = Any
Session = Any
#: An Arrow record batch. ``mapInArrow`` passes an iterator of them to a function that returns one.
Batch = Any

_FOR = "working on Spark"
#: Suffixes of JSON lines, of compressed files that Spark reads, of those that it reads as they are, and of
#: files that are neither JSON lines nor Parquet.
_JSON, _PACKED = (".jsonl", ".ndjson", ".json"), (".gz", ".bz2", ".zst")
_UNREAD = (".xz", ".zip", ".7z", ".rar", ".tar", ".tgz")
_OTHER = (".csv", ".tsv", ".txt", ".html", ".htm", ".xml", ".avro", ".orc", ".md")
#: How many file names of a source are checked; each takes a millisecond.
_LOOKED_AT = 1_000
#: Options for a Spark that runs on this machine only: other machines can't connect.
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def sql() -> Any:  # noqa: ANN401 - a module
    """Return ``pyspark.sql``; raise ``MissingExtra`` if it, pandas or pyarrow is not installed."""
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
    """Return a file's format by its suffix: ``json``, or without one ``parquet``; refuse other ones."""
    packed = next((one for one in _PACKED if name.lower().endswith(one)), "")
    bare = name.lower().removesuffix(packed)
    if bare.endswith(_JSON):
        return "json"
    if bare.endswith(_UNREAD):
        raise ConfigError(f"Spark does not read the compression of {name}: decompress it, or use gzip")
    if packed or bare.endswith(_OTHER):
        raise ConfigError(
            f"{name} is neither Parquet nor JSON lines by its name: make JSON lines of it with "
            f"{suggest('sign', name, output='signed.jsonl')}"
        )
    return "parquet"


def columns_of(frame: Frame, wanted: Iterable[str]) -> None:
    """Raise ``ConfigError`` if a frame lacks one of these columns."""
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
def translate_errors() -> Iterator[None]:
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
        raise _translate_error(str(error), error.getCondition() or "") from error
    except gateway.Py4JError as error:
        raise _translate_error(str(error), "") from error


def _translate_error(text: str, condition: str) -> ShinglefoldError:
    found = _OURS.search(text)
    if found is not None:
        # Our other errors take more than a message, so they can't be made again from the text.
        return ConfigError(found[2]) if found[1] == "ConfigError" else InputError(found[2])
    line = _innermost_cause(text)
    if "CANNOT_MERGE" in condition + line:
        return InputError(f"columns of one name must be of one type in all files, so cast them: {line}")
    if "MALFORMED_RECORD" in condition + text:
        return InputError(f"a line is not a JSON object, so mend it or leave it out: {line}")
    if condition.startswith(_FILES):
        return InputError(f"{line}: check the path")
    return EngineError(f"Spark stopped: {line}; its log says more")


def _innermost_cause(text: str) -> str:
    """Return the line of a Java stack trace with the innermost cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    chosen = (
        causes[-1] if causes else next((line for line in lines if not line.startswith("An error occ")), text)
    )
    return chosen[:400].rstrip(" .;:")


#: The file that marks a folder as one of a ``StageStore``; it holds the name of the job.
_MARK = "_shinglefold"


@dataclass(slots=True)
class StageStore:
    """Stores the stages of a job in a folder that all machines of a cluster can read.

    Spark may compute a frame twice, with the rows in another order. A stored stage has one order.

    Args:
        folder: an address for Spark, such as ``hdfs:///tmp/groups`` or ``s3a://bucket/groups``. A missing
            folder is created. Stages of an earlier job are replaced; a folder with other files raises
            ``ConfigError``.
    """

    session: Session
    folder: str
    _kept: list[str] = field(default_factory=list)
    _name: str = field(default_factory=lambda: uuid4().hex)

    def keep(self, frame: Frame, name: str) -> Frame:
        """Compute a frame, write it as Parquet, and return a frame that reads the file."""
        if not self._kept:
            self._begin()
        self._check_own()
        place = f"{self.folder.rstrip('/')}/{name}"
        if place not in self._kept:
            # Recorded before it is written, so that ``remove`` also finds what a failed write left.
            self._kept.append(place)
        frame.write.mode("overwrite").parquet(place)
        self._check_own()
        return self.session.read.parquet(place)

    def remove(self) -> None:
        """Remove the stored stages, and the folder if it holds nothing else.

        Remove nothing if another job has begun in the same folder.
        """
        if self._kept and self._taken_by() == self._name:
            for place in self._kept:
                system, path = place_of(self.session, place)
                system.delete(path, True)
            system, folder = place_of(self.session, self.folder)
            if [one.getPath().getName() for one in system.listStatus(folder)] == [_MARK]:
                system.delete(folder, True)
        self._kept.clear()

    def _begin(self) -> None:
        system, folder = place_of(self.session, self.folder)
        mark = folder.suffix(f"/{_MARK}")
        if system.exists(folder) and not system.exists(mark) and len(system.listStatus(folder)):
            raise ConfigError(f"{self.folder} holds other files: name an empty or a new folder with --work")
        written = system.create(mark, True)
        written.writeBytes(self._name)
        written.close()

    def _taken_by(self) -> str:
        """Return the name of the job that began last in this folder; empty if there is none."""
        system, folder = place_of(self.session, self.folder)
        mark = folder.suffix(f"/{_MARK}")
        if not system.exists(mark):
            return ""
        read = system.open(mark)
        try:
            return "".join(chr(byte) for byte in iter(read.read, -1))
        finally:
            read.close()

    def _check_own(self) -> None:
        """Raise ``ConfigError`` if another job began in the folder: its stages would be read as ours."""
        if self._taken_by() != self._name:
            raise ConfigError(
                f"another job works in {self.folder}, too: give each a folder of its own (--work)"
            )
