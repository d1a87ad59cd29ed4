"""What killed processes leave beside the indices goes when the next one is made or deleted, and only that."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable

_MAKER = """
import sys, time
from pathlib import Path
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.schema.catalog import Catalog

def waiting(self, folder):
    print("at it", flush=True)
    time.sleep(600)

Catalog.save = waiting
EmbeddedEngine(sys.argv[1], str.split).create_index(sys.argv[2], {}, {})
"""


@pytest.fixture
def maker(tmp_path: Path):
    """A process that stands in the middle of making an index, as ``--recreate`` makes one beside another."""
    process = subprocess.Popen(
        [sys.executable, "-c", _MAKER, str(tmp_path), "pages-20260101000000000000"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at it\n"
    yield process
    process.kill()
    process.stdout.close()
    process.wait()


def _names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


_HALF = ".pages-20260101000000000000.new"


def test_half_an_index_of_a_process_that_was_killed_goes_with_the_next_index(tmp_path: Path, engine, maker):
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    engine.create_index("news", {}, {})
    assert _names(tmp_path) == {"news"}


def test_what_a_process_is_still_making_stays_however_long_that_takes(tmp_path: Path, engine, maker):
    os.kill(maker.pid, signal.SIGSTOP)
    engine.create_index("news", {}, {})
    engine.delete_index("news")
    assert _names(tmp_path) == {_HALF}
    with pytest.raises(EngineUnavailable, match="another process is making this index"):
        engine.create_index("pages-20260101000000000000", {}, {})
    assert _names(tmp_path / _HALF) == {"tantivy"}


def test_half_a_deleted_index_goes_too_and_folders_of_somebody_else_stay(tmp_path: Path, engine):
    engine.create_index("pages", {}, {})
    engine.create_index("news", {}, {})
    engine.close()
    (tmp_path / "pages").rename(tmp_path / ".pages.deleted")
    (tmp_path / ".pages.deleted" / ".wanted").touch()
    (tmp_path / ".photos.new").mkdir()
    (tmp_path / ".photos.new" / "a.jpg").write_text("picture")
    with EmbeddedEngine(tmp_path, str.split) as after:
        after.delete_index("news")
    assert _names(tmp_path) == {".photos.new"}


def test_an_index_that_can_not_be_made_leaves_nothing(tmp_path: Path, engine, monkeypatch):
    def full(self, folder):
        raise OSError(5, "input/output error")

    monkeypatch.setattr("shinglefold.engines.embedded.schema.catalog.Catalog.save", full)
    with pytest.raises(EngineUnavailable, match="input/output error"):
        engine.create_index("pages", {}, {})
    assert _names(tmp_path) == set()


def test_an_index_that_was_deleted_does_not_come_back_by_a_replacement_that_was_cut_short(
    tmp_path: Path, engine
):
    for name in ("pages", "beside"):
        engine.create_index(name, {}, {})
    (tmp_path / ".pages.replaced-by").write_text("beside")
    engine.delete_index("pages")
    assert not engine.index_exists("pages")
    assert engine.index_exists("beside")
