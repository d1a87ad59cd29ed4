"""Spark's errors in our words: what a worker raised reads like what the library raises."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from shinglefold.errors import ConfigError, EngineError, InputError, ShinglefoldError

_OURS = re.compile(r"shinglefold\.errors\.(\w+): (.+)")
#: Conditions of Spark that are about files somebody named.
_FILES = ("PATH_NOT_FOUND", "PATH_ALREADY_EXISTS", "UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE")
_LOST = re.compile(r"Job aborted|Job \d+ cancelled|SparkContext was shut down")


@contextmanager
def translated() -> Iterator[None]:
    """Raise an error of the library in place of one of Spark.

    Raises:
        ShinglefoldError: what a worker raised, as near as that can be told; ``InputError`` for a file that
            can't be read or written; ``EngineError`` for all else that Spark says.
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
        # Others are made of more than a message.
        return ConfigError(found[2]) if found[1] == "ConfigError" else InputError(found[2])
    line = _told(text)
    if "CANNOT_MERGE" in condition + line:
        return InputError(f"columns of one name must be of one type in all files, so cast them: {line}")
    if condition.startswith(_FILES):
        return InputError(f"{line}: check the path")
    return EngineError(f"Spark stopped: {line}; its log says more")


def _told(text: str) -> str:
    """Return the line that says what went wrong, not where in Spark."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    chosen = (
        causes[-1] if causes else next((line for line in lines if not line.startswith("An error occ")), text)
    )
    return chosen[:400].rstrip(" .;:")
