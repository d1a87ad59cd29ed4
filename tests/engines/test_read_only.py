"""An index in a folder that can't be written is searched all the same."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.store import snapshots
from shinglefold.errors import EngineUnavailable, IndexReadOnly

_READER = """
import json, os, sys
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineError

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
with EmbeddedEngine(sys.argv[1], str.split) as engine:
    told = [engine.search("pages", {"size": 0})["hits"]["total"]["value"]]
    told.append(engine.get("pages", "3")["_source"])
    pit = engine.open_pit("pages")
    body = {"pit": {"id": pit}, "sort": ["number"], "size": 9}
    told.append(len(engine.search(None, body)["hits"]["hits"]))
    engine.check("pages")
    told.append(engine.indices()[0].documents)
    for write in (
        lambda: engine.bulk([{"_index": "pages", "_source": {}}]),
        lambda: engine.delete_index("pages"),
        lambda: engine.create_index("other", {}, {}),
    ):
        try:
            write()
        except EngineError as error:
            told.append(type(error).__name__)
print(json.dumps(told))
"""


def _page(number: int) -> dict:
    return {"_index": "pages", "_id": str(number), "_source": {"number": number}}


@pytest.fixture
def read_only(tmp_path: Path, words):
    """An index nobody may write to: for root, who may do anything, it is given to another user."""
    path = tmp_path / "data"
    with EmbeddedEngine(path, words) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk(map(_page, range(5)))
    everything = [path, *path.rglob("*")]
    for one in everything:
        if os.getuid() == 0:
            os.chown(one, 65534, 65534)
        one.chmod(0o555 if one.is_dir() else 0o444)
    if os.getuid() == 0:
        # pytest's own folders are for their owner alone.
        shared = Path(tempfile.gettempdir())
        for above in (tmp_path, *tmp_path.parents):
            if shared in above.parents:
                above.chmod(0o755)
    yield path
    for one in everything:
        one.chmod(0o755 if one.is_dir() else 0o644)


def test_a_folder_that_can_not_be_written_is_searched_and_stays_as_it_is(read_only: Path):
    before = sorted(path.name for path in read_only.rglob("*"))
    read = subprocess.run(
        [sys.executable, "-c", _READER, read_only],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    expected = '[5, {"number": 3}, 5, 5, "IndexReadOnly", "EngineUnavailable", "EngineUnavailable"]'
    assert (read.stdout.strip(), read.stderr) == (expected, "")
    assert sorted(path.name for path in read_only.rglob("*")) == before


def test_what_others_commit_is_seen_in_a_folder_that_can_not_be_written(tmp_path: Path, words, monkeypatch):
    with EmbeddedEngine(tmp_path, words) as writer:
        writer.create_index("pages", {}, {})
        writer.bulk([_page(0)])
        with EmbeddedEngine(tmp_path, words) as reader:
            monkeypatch.setattr(snapshots, "_writable", lambda files: False)
            for count in (3, 6, 9):
                writer.bulk(map(_page, range(count)))
                writer.bulk([{"_index": "pages", "_id": "0", "_op_type": "delete"}])
                writer.refresh("pages")
                assert reader.search("pages", {})["hits"]["total"]["value"] == count - 1
            with pytest.raises(IndexReadOnly, match="read-only"):
                reader.bulk([_page(1)])


def test_without_a_folder_for_temporary_files_the_remedy_is_told(tmp_path: Path, words, monkeypatch):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
    monkeypatch.setattr(snapshots, "_writable", lambda files: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with EmbeddedEngine(tmp_path, words) as engine, pytest.raises(EngineUnavailable, match="set TMPDIR"):
        engine.search("pages", {})
