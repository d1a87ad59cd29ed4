"""Record files that a writer removes: what is open reads on, what is opened is whole, nothing grows."""

import os
from pathlib import Path

import pytest

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.store import index as indices
from shinglefold.engines.embedded.store import record_files as volumes
from shinglefold.engines.embedded.store import snapshots
from shinglefold.engines.embedded.store.record_files import RecordFiles
from shinglefold.errors import EngineUnavailable


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Record files that are soon full."""
    monkeypatch.setattr(volumes, "VOLUME", 2_000)


@pytest.fixture
def writer(tmp_path: Path, words):
    """An engine that has written sixty pages into several volumes."""
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=20)) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk(_page(number, 0) for number in range(60))
        engine.refresh("pages")
        yield engine


def _page(number: int, version: int) -> dict:
    source = {"n": number, "version": version, "inner": {"text": f"{number} " * 40}}
    return {"_index": "pages", "_id": str(number), "_source": source}


def _deletion(number: int) -> dict:
    return {"_index": "pages", "_id": str(number), "_op_type": "delete"}


def _versions(engine: EmbeddedEngine) -> dict[int, int]:
    """Return the versions of all pages by their numbers, which their heads say, too."""
    hits = engine.search("pages", {"size": 500})["hits"]["hits"]
    sources = [hit["_source"] for hit in hits]
    assert all(source["inner"]["text"] == f"{source['n']} " * 40 for source in sources)
    assert [hit["_id"] for hit in hits] == [str(source["n"]) for source in sources]
    return {source["n"]: source["version"] for source in sources}


def _heads(path: Path) -> set[str]:
    return set(os.listdir(path / "pages" / "heads"))


def _sweep(engine: EmbeddedEngine, path: Path) -> None:
    """Write most pages anew, so that the first volumes go."""
    before = _heads(path)
    engine.bulk(_page(number, 1) for number in range(55))
    engine.refresh("pages")
    assert before - _heads(path)


_SWEPT = {number: int(number < 55) for number in range(60)}


def test_a_reader_from_before_finds_nothing_wrong_when_it_is_asked_to_check(writer, tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as reader:
        assert _versions(reader) == dict.fromkeys(range(60), 0)
        _sweep(writer, tmp_path)
        reader.check("pages")
        assert _versions(reader) == _SWEPT


def test_volumes_that_go_while_a_reader_looks_again_are_still_read(writer, tmp_path, words, monkeypatch):
    with EmbeddedEngine(tmp_path, words) as reader:
        assert len(_versions(reader)) == 60
        writer.bulk([_page(0, 7)])
        writer.refresh("pages")
        opened, sweeps = RecordFiles.of, iter([False, True])

        def slowly(folder: Path, before: RecordFiles | None = None) -> RecordFiles:
            if next(sweeps, False):
                # The list of segments has just been read.
                _sweep(writer, tmp_path)
            return opened(folder, before)

        monkeypatch.setattr(RecordFiles, "of", slowly)
        assert _versions(reader) == {0: 7, **dict.fromkeys(range(1, 60), 0)}
        assert _versions(reader) == _SWEPT


def test_volumes_that_go_while_an_index_is_opened_do_no_harm(writer, tmp_path: Path, words, monkeypatch):
    looked = snapshots.head_problems
    swept = []

    def after(*given: object) -> list[str]:
        if not swept:
            swept.append(_sweep(writer, tmp_path))
        return looked(*given)

    monkeypatch.setattr(snapshots, "head_problems", after)
    with EmbeddedEngine(tmp_path, words) as reader:
        assert _versions(reader) == _SWEPT


def test_space_is_given_back_by_processes_that_only_write_and_close(tmp_path: Path, words):
    sizes = []
    for version in range(30):
        with EmbeddedEngine(tmp_path, words) as engine:
            if not version:
                engine.create_index("pages", {}, {})
            engine.bulk(_page(number, version) for number in range(30))
        sizes.append(sum(file.stat().st_size for file in (tmp_path / "pages" / "heads").iterdir()))
    # 30 documents of some 250 bytes each.
    assert max(sizes) < 4 * 30 * 250
    with EmbeddedEngine(tmp_path, words) as engine:
        assert _versions(engine) == dict.fromkeys(range(30), 29)


def test_space_that_can_not_be_given_back_costs_no_document(writer, tmp_path: Path, words, monkeypatch):
    emptied = indices.relocate

    def fails(*given: object) -> None:
        emptied(*given)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(indices, "relocate", fails)
        gone = [_deletion(number) for number in range(60) if number % 9]
        with pytest.raises(EngineUnavailable, match="Input/output error") as told:
            writer.bulk([*gone, *(_page(number, 1) for number in range(100, 160))])
    assert told.value.lost == 0
    expected = dict.fromkeys(range(0, 60, 9), 0)
    writer.refresh("pages")
    assert expected.items() <= _versions(writer).items()
    writer.bulk(_page(number, 1) for number in range(100, 160))
    writer.refresh("pages")
    assert _versions(writer) == {**expected, **dict.fromkeys(range(100, 160), 1)}
    writer.check("pages")
