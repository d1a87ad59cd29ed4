"""Whatever happens to a file of an index, it is told as what it is, or does no harm."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.errors import EngineUnavailable

_QUERIES = (
    {"match": {"body": "page"}},
    {"match_phrase": {"body": "page of"}},
    {"range": {"number": {"gte": 5}}},
    {"exists": {"field": "word"}},
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, words) -> Path:
    """A folder with an index of two segments, deletions in one of them."""
    path = tmp_path_factory.mktemp("whole")
    with EmbeddedEngine(path, words, CommitLimits(actions=30)) as engine:
        engine.create_index("pages", {"properties": {"word": {"type": "keyword"}}}, {})
        engine.bulk(
            {
                "_index": "pages",
                "_id": str(n),
                "_source": {"number": n, "word": f"w{n % 7}", "body": f"page {n} of many", "o": {"p": n}},
            }
            for n in range(50)
        )
        engine.refresh("pages")
        engine.bulk({"_index": "pages", "_id": str(n), "_op_type": "delete"} for n in (3, 8))
    return path


def _answers(path: Path, words: Callable) -> list:
    """Return what is found, in every order, with all that is stored."""
    with EmbeddedEngine(path, words) as engine:
        answers = [engine.mappings("pages"), engine.get("pages", "7"), engine.get("pages", "8")]
        for query in _QUERIES:
            for sort in (["_score"], ["number"], [{"word": "desc"}, "number"]):
                body = {"query": query, "sort": sort, "size": 60, "docvalue_fields": ["o.p", "word"]}
                answers.append(engine.search("pages", body)["hits"])
        return answers


def test_mappings_are_read_without_the_files_of_documents(whole: Path, tmp_path: Path, words):
    shutil.copytree(whole, tmp_path / "copy")
    with EmbeddedEngine(whole, words) as engine:
        expected = engine.mappings("pages")
    (tmp_path / "copy" / "pages" / "tantivy" / "meta.json").unlink()
    with EmbeddedEngine(tmp_path / "copy", words) as engine:
        assert engine.mappings("pages") == expected
        assert engine.all_mappings("*") == {"pages": expected}
        with pytest.raises(EngineUnavailable, match="damaged"):
            engine.search("pages", {})


def _files(path: Path) -> list[Path]:
    return sorted(file for file in (path / "pages").rglob("*") if file.is_file())


def _told_or_harmless(path: Path, words: Callable, expected: list, what: str) -> bool:
    """Tell whether damage was told; else the answers have to be those expected."""
    try:
        answers = _answers(path, words)
    except EngineUnavailable as error:
        told = str(error)
    else:
        assert answers == expected, what
        return False
    assert "damaged" in told, what
    assert "index again" in told, what
    return True


def _damaged(whole: Path, to: Path, file: Path, content: bytes | None) -> Path:
    """Return a copy of the folder in which one file has another content, or is missing."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(whole, to)
    other = to / file.relative_to(whole)
    other.unlink() if content is None else other.write_bytes(content)
    return to


def test_a_missing_or_shortened_file_is_told(whole: Path, tmp_path: Path, words):
    expected = _answers(whole, words)
    assert len(_files(whole)) > 14
    for file in _files(whole):
        content = file.read_bytes()
        shorter = [content[: len(content) // 2], content[:-1], b""] if content else []
        for given in (None, *shorter):
            path = _damaged(whole, tmp_path / "damaged", file, given)
            what = f"{file.name}: {'missing' if given is None else f'{len(given)} of {len(content)} bytes'}"
            told = _told_or_harmless(path, words, expected, what)
            # Locks and the list of files to clean up are made anew; a list of segments may end with a line.
            assert told or file.name.startswith(".") or given == content[:-1] == content.rstrip(), what


@pytest.mark.long
def test_a_flipped_byte_is_told(whole: Path, tmp_path: Path, words):
    chance = random.Random(17)
    expected = _answers(whole, words)
    for file in _files(whole):
        content = file.read_bytes()
        places = sorted({0, len(content) - 1, *chance.choices(range(len(content)), k=6)}) if content else []
        for place in places:
            flipped = bytearray(content)
            flipped[place] ^= 1 << chance.randrange(8)
            path = _damaged(whole, tmp_path / "damaged", file, bytes(flipped))
            told = _told_or_harmless(path, words, expected, f"{file.name}: byte {place} flipped")
            # At the end of tantivy's files stands what version wrote them.
            assert told or file.suffix == ".json" or place > len(content) - 160


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, gone: gone.update(max_doc=gone["max_doc"] + 1),
        lambda meta, gone: gone["deletes"].update(num_deleted_docs=1),
        lambda meta, gone: gone.pop("deletes"),
        lambda meta, gone: meta["schema"].pop(),
    ],
)
def test_what_contradicts_the_files_in_the_list_of_segments_is_told(whole: Path, tmp_path, words, change):
    file = whole / "pages" / "tantivy" / "meta.json"
    meta = json.loads(file.read_bytes())
    change(meta, next(segment for segment in meta["segments"] if segment["deletes"]))
    path = _damaged(whole, tmp_path / "damaged", file, json.dumps(meta).encode())
    with pytest.raises(EngineUnavailable, match="damaged"):
        _answers(path, words)


def test_damage_that_comes_while_an_index_is_open_is_told_by_the_search_that_meets_it(
    whole: Path, tmp_path: Path, words
):
    path = tmp_path / "open"
    shutil.copytree(whole, path)
    with EmbeddedEngine(path, words) as engine:
        assert engine.mappings("pages")["properties"]
        for file in (path / "pages" / "tantivy").glob("*.store"):
            with file.open("r+b") as opened:
                opened.write(b"\xff" * (file.stat().st_size // 2))
        with pytest.raises(EngineUnavailable, match=r"damaged: .*\.store has changed"):
            engine.search("pages", {"size": 60})


def test_a_check_reads_everything_however_large(whole: Path, tmp_path: Path, words, monkeypatch):
    monkeypatch.setattr("shinglefold.engines.embedded.store.snapshots._CHECKED", 0)
    file = next((whole / "pages" / "tantivy").glob("*.pos"))
    content = bytearray(file.read_bytes())
    content[1] ^= 1
    path = _damaged(whole, tmp_path / "damaged", file, bytes(content))
    with EmbeddedEngine(path, words) as engine:
        assert engine.index_exists("pages")
        with pytest.raises(EngineUnavailable, match=rf"damaged: {file.name} has changed"):
            engine.check("pages")
    with EmbeddedEngine(whole, words) as engine:
        engine.check("pages")


def test_heads_damaged_while_an_index_is_open_are_told_by_whatever_meets_them(
    whole: Path, tmp_path: Path, words
):
    path = tmp_path / "open"
    shutil.copytree(whole, path)
    with EmbeddedEngine(path, words) as engine:
        assert engine.get("pages", "7")["_source"]["o"] == {"p": 7}
        (file,) = (path / "pages" / "heads").iterdir()
        with file.open("r+b") as opened:
            opened.write(b"\xff" * file.stat().st_size)
        told = r"damaged: heads/00000001\.records has changed"
        for meets in (
            lambda: engine.get("pages", "7"),
            lambda: engine.get_all("pages", ["7"]),
            lambda: engine.search("pages", {"size": 60}),
            lambda: engine.bulk([{"_op_type": "update", "_index": "pages", "_id": "7", "doc": {"x": 1}}]),
        ):
            with pytest.raises(EngineUnavailable, match=told):
                meets()


def test_a_volume_of_another_time_or_place_is_told(tmp_path: Path, words, monkeypatch):
    monkeypatch.setattr("shinglefold.engines.embedded.store.record_files.VOLUME", 2_000)
    pages = [{"_index": "pages", "_id": f"{n:03d}", "_source": {"o": {"p": n}}} for n in range(10, 200)]
    for name in ("one", "other"):
        with EmbeddedEngine(tmp_path / name, words) as engine:
            engine.create_index("pages", {}, {})
            for begin in range(0, 190, 19):
                engine.bulk(pages[begin : begin + 19])
                engine.refresh("pages")
        pages.reverse()
    heads = [tmp_path / name / "pages" / "heads" for name in ("one", "other")]
    first, second = sorted(heads[0].iterdir())[:2]
    for begin, others in ((first, second), (second, first), (heads[1] / first.name, first)):
        content = others.read_bytes()
        others.write_bytes(begin.read_bytes())
        told = rf"damaged: heads/{others.name} has changed"
        with EmbeddedEngine(tmp_path / "one", words) as engine, pytest.raises(EngineUnavailable, match=told):
            engine.search("pages", {})
        others.write_bytes(content)
    with EmbeddedEngine(tmp_path / "one", words) as engine:
        engine.check("pages")
