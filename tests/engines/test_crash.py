"""What was committed survives kill -9, whenever it comes; what else it leaves goes with the next index."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable

_WRITER = """
import sys
from shinglefold.engines.embedded import EmbeddedEngine, CommitLimits
from shinglefold.model.values import Token

def words(text):
    return [Token(word, 0, len(word), "any") for word in text.split()]

def actions():
    for number in range(10**9):
        if number % 25 == 0:
            print(number, flush=True)
        source = {"number": number, "body": f"page {number} " * 20, f"field{number // 40 % 15}": "new"}
        yield {"_index": "pages", "_id": str(number), "_source": source}

engine = EmbeddedEngine(sys.argv[1], words, CommitLimits(actions=100))
if not engine.index_exists("pages"):
    engine.create_index("pages", {"properties": {"number": {"type": "long"}}}, {})
engine.bulk(actions())
"""
_PORTION = 100


def _write_and_kill(folder: Path, after: int, later: float = 0.0) -> int:
    """Let a process write, kill it once it got past a document; return how many it had begun with."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    begun = 0
    for line in writer.stdout:
        begun = int(line)
        if begun >= after:
            break
    time.sleep(later)
    os.kill(writer.pid, signal.SIGKILL)
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    return begun


@pytest.mark.long(every=3)
@pytest.mark.parametrize("after", [25, 275, 1050])
def test_a_killed_writer_leaves_whole_portions(tmp_path: Path, words, after):
    begun = _write_and_kill(tmp_path, after)
    with EmbeddedEngine(tmp_path, words) as engine:
        count = engine.search("pages", {"size": 0})["hits"]["total"]["value"]
        # It may have gone on between its last line and its end.
        assert count % _PORTION == 0
        assert count >= begun // _PORTION * _PORTION
        hits = engine.search("pages", {"size": count or 1, "sort": ["number"]})["hits"]["hits"]
        assert [hit["_source"]["number"] for hit in hits] == list(range(count))
        found = engine.search("pages", {"query": {"match": {"body": "page"}}, "size": 0})
        assert found["hits"]["total"]["value"] == count


@pytest.mark.long
def test_the_next_writer_goes_on_where_a_killed_one_ended(tmp_path: Path, words):
    for _ in range(3):
        _write_and_kill(tmp_path, 400)
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.bulk([{"_index": "pages", "_id": "last", "_source": {"number": -1, "unheard": "of"}}])
        engine.refresh("pages")
        count = engine.search("pages", {"size": 0})["hits"]["total"]["value"]
        assert count % _PORTION == 1
        assert engine.get("pages", "last") is not None
        mapped = engine.mappings("pages")["properties"]
        assert {"unheard", "field0", "field9"} <= mapped.keys()


_CUT_SHORT = """
import os, sys
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.model.values import Token

engine = EmbeddedEngine(sys.argv[1], lambda text: [Token(text, 0, len(text), "any")])
engine.create_index("pages", {}, {})
engine.bulk([{"_index": "pages", "_id": "1", "_source": {"unheard": "of"}}])
Catalog.save = lambda *_: os._exit(9)
engine.refresh("pages")
"""


def test_no_document_is_there_before_the_catalog_knows_its_fields(tmp_path: Path, words):
    killed = subprocess.run([sys.executable, "-c", _CUT_SHORT, tmp_path], check=False)
    assert killed.returncode == 9
    with EmbeddedEngine(tmp_path, words) as engine:
        assert engine.search("pages", {})["hits"]["total"]["value"] == 0
        engine.bulk([{"_index": "pages", "_id": "1", "_source": {"unheard": "of"}}])
        engine.refresh("pages")
        assert engine.search("pages", {"query": {"match": {"unheard": "of"}}})["hits"]["hits"]


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))])
def test_a_writer_killed_at_any_moment_leaves_files_that_are_whole(tmp_path: Path, words, seed):
    chance = random.Random(seed)
    for _ in range(3):
        # A portion is committed every few tens of milliseconds, and segments are merged meanwhile.
        _write_and_kill(tmp_path, 0, chance.uniform(0.0, 0.6))
        with EmbeddedEngine(tmp_path, words) as engine:
            engine.check("pages")
            hits = engine.search("pages", {"size": 100_000, "sort": ["number"]})["hits"]["hits"]
            assert [hit["_source"]["number"] for hit in hits] == list(range(len(hits)))
            assert len(hits) % _PORTION == 0


def test_a_replacement_cut_short_is_finished_by_who_looks_next(tmp_path: Path, engine: EmbeddedEngine):
    for name in ("pages", "beside"):
        engine.create_index(name, {}, {})
        engine.bulk([{"_index": name, "_id": name, "_source": {}}])
        engine.refresh(name)
    engine.close()
    (tmp_path / ".pages.replaced-by").write_text("beside")
    (tmp_path / "pages").rename(tmp_path / ".pages.deleted")
    with EmbeddedEngine(tmp_path, lambda text: []) as after:
        assert [info.name for info in after.indices("pages")] == ["pages"]
        assert after.get("pages", "beside") is not None
        assert not after.index_exists("beside")


def test_a_creation_cut_short_is_no_index(tmp_path: Path, engine: EmbeddedEngine):
    (tmp_path / ".pages.new" / "tantivy").mkdir(parents=True)
    (tmp_path / ".pages.new" / "catalog.json").write_text("{")
    assert not engine.index_exists("pages")
    engine.create_index("pages", {}, {})
    assert engine.search("pages", {})["hits"]["total"]["value"] == 0


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
