"""What was committed survives kill -9, whenever it comes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine

_WRITER = """
import sys
from shinglefold.engines.embedded import EmbeddedEngine, Portion
from shinglefold.model import Token

def words(text):
    return [Token(word, 0, len(word), "any") for word in text.split()]

def actions():
    for number in range(10**9):
        if number % 25 == 0:
            print(number, flush=True)
        source = {"number": number, "body": f"page {number} " * 20, f"field{number // 40 % 15}": "new"}
        yield {"_index": "pages", "_id": str(number), "_source": source}

engine = EmbeddedEngine(sys.argv[1], words, Portion(actions=100))
if not engine.index_exists("pages"):
    engine.create_index("pages", {"properties": {"number": {"type": "long"}}}, {})
engine.bulk(actions())
"""
_PORTION = 100


def _write_and_kill(folder: Path, after: int) -> int:
    """Let a process write, kill it once it got past a document; return how many it had begun with."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    begun = 0
    for line in writer.stdout:
        begun = int(line)
        if begun >= after:
            break
    os.kill(writer.pid, signal.SIGKILL)
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    return begun


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


def test_a_creation_cut_short_is_no_index(tmp_path: Path, engine: EmbeddedEngine):
    (tmp_path / ".pages.new" / "tantivy").mkdir(parents=True)
    (tmp_path / ".pages.new" / "catalog.json").write_text("{")
    assert not engine.index_exists("pages")
    engine.create_index("pages", {}, {})
    assert engine.search("pages", {})["hits"]["total"]["value"] == 0
