"""One small Spark for all of this folder; skipped with a reason where it is not installed."""

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from shinglefold.cli.main import main
from shinglefold.cli.spark import spark as program
from shinglefold.model.scheme import Scheme
from shinglefold.offline.spark import StageStore
from shinglefold.offline.spark.session import Session, session
from shinglefold.settings import load_settings

#: No compiling for the long run, as there is none.
_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
#: What commands are given by these names is in the test's own folder: Java stays where it was started.
_NAMES = frozenset(
    ("pages", "pages.parquet", "odd.parquet", "signed", "bare", "out", "groups-out", "work", "nowhere")
)


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
def work(spark: Session, tmp_path: Path) -> StageStore:
    return StageStore(spark, str(tmp_path / "work"))


@pytest.fixture(scope="session")
def scheme() -> Scheme:
    return load_settings(None).scheme()


@pytest.fixture
def run(
    spark: Session, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run a command, and return its exit code and what it printed and said on standard error."""

    def ran(*arguments: str) -> tuple[int, str, str]:
        given = [str(tmp_path / one) if one in _NAMES else one for one in arguments]
        code = main(given, program=program)
        out, err = capsys.readouterr()
        return code, out, err

    return ran
