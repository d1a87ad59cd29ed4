"""One small Spark for all of this folder; skipped with a reason where it is not installed."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from shinglefold.scheme import Scheme
from shinglefold.settings import load_settings
from shinglefold.spark import Work
from shinglefold.spark.frames import Session, session

#: No compiling for the long run, as there is none.
_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def installed() -> None:
    """Spark stands here; CI must have it."""
    if find_spec("pyspark") is None:
        reason = "Spark is not installed: pip install -e '.[spark]' (450 MB)"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on two cores of this machine."""
    found = session({**_SMALL, "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}, "local[2]")
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


@pytest.fixture
def work(spark: Session, tmp_path: Path) -> Work:
    return Work(spark, str(tmp_path / "work"))


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    return load_settings(None).scheme()
