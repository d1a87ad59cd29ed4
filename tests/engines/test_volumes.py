"""Record files: found by address, whole after any end of a writer, read on by those who have them open."""

import os
import random
from pathlib import Path

import pytest

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.store import index as indices
from shinglefold.engines.embedded.store import record_files as volumes
from shinglefold.engines.embedded.store import snapshots
from shinglefold.engines.embedded.store.record_files import RecordAppender, RecordFiles, scan_file
from shinglefold.errors import EngineUnavailable

_SMALL = 2_000


@pytest.fixture
def small(monkeypatch):
    """Record files that are soon full."""
    monkeypatch.setattr(volumes, "VOLUME", _SMALL)


def _records(count: int, seed: int = 0) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(chance.choice((0, 1, 50, 900))) for _ in range(count)]


def test_records_come_back_by_their_addresses_from_any_volume(tmp_path: Path, small):
    records, addresses = _records(60), []
    for begin in range(0, 60, 7):
        appender = RecordAppender(tmp_path / "heads")
        addresses += [appender.add(record) for record in records[begin : begin + 7]]
        appender.flush()
        appender.close()
    opened = RecordFiles.of(tmp_path / "heads")
    assert [opened.read(address) for address in addresses] == records
    assert len(volumes.record_files(tmp_path / "heads")) > 3
    assert len(set(addresses)) == 60


def test_much_is_written_before_it_is_flushed_so_that_little_is_held(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(volumes, "_HELD", 120)
    appender, records = RecordAppender(tmp_path), [bytes([number]) * 50 for number in range(20)]
    addresses = [appender.add(record) for record in records]
    file = tmp_path / "00000001.records"
    assert 18 <= scan_file(file).records < 20
    appender.flush()
    assert scan_file(file).records == 20
    assert [RecordFiles.of(tmp_path).read(address) for address in addresses] == records


def test_what_is_open_stays_as_it_is_when_volumes_grow_or_go(tmp_path: Path):
    appender = RecordAppender(tmp_path)
    first = appender.add(b"first")
    appender.flush()
    opened = RecordFiles.of(tmp_path)
    second = appender.add(b"second")
    appender.flush()
    grown = RecordFiles.of(tmp_path, opened)
    assert (grown.read(first), grown.read(second)) == (b"first", b"second")
    with pytest.raises(ValueError, match="no record"):
        opened.read(second)
    for _, file in volumes.record_files(tmp_path):
        file.unlink()
    assert opened.read(first) == b"first"
    with pytest.raises(ValueError, match="no record"):
        RecordFiles.of(tmp_path).read(first)


@pytest.mark.parametrize("lost", [1, 3, 15, 30, 200])
def test_behind_half_a_batch_another_volume_is_begun(tmp_path: Path, lost):
    appender = RecordAppender(tmp_path)
    whole = appender.add(b"whole")
    appender.flush()
    end = scan_file(tmp_path / "00000001.records").size
    appender.add(b"x" * 300)
    appender.flush()
    appender.close()
    file = tmp_path / "00000001.records"
    file.write_bytes(file.read_bytes()[:-lost])
    again = RecordAppender(tmp_path)
    after = again.add(b"after")
    again.flush()
    opened = RecordFiles.of(tmp_path)
    assert (opened.read(whole), opened.read(after)) == (b"whole", b"after")
    assert [name for name, _ in volumes.record_files(tmp_path)] == [1, 2]
    assert scan_file(file).end == end


@pytest.mark.parametrize("written", [0, 10, 10_000])
def test_an_interrupt_while_a_batch_is_written_shifts_no_address(tmp_path: Path, written: int):
    appender = RecordAppender(tmp_path)
    first = appender.add(b"first")
    appender.flush()
    second = appender.add(b"second" * 50)
    file = appender._file
    appender._file = _Interrupted(file, written)
    with pytest.raises(KeyboardInterrupt):
        appender.flush()
    appender._file = file
    third = appender.add(b"third")
    appender.flush()
    appender.close()
    opened = RecordFiles.of(tmp_path)
    assert [opened.read(one) for one in (first, second, third)] == [b"first", b"second" * 50, b"third"]
    found = scan_file(tmp_path / "00000001.records")
    assert found.end == found.size


class _Interrupted:
    """A file whose writer is interrupted once some bytes of a batch are written."""

    def __init__(self, file, written: int) -> None:
        self._file, self._written = file, written

    def write(self, data) -> int:
        self._file.write(data[: self._written])
        raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["open", "sync_folder"])
def test_an_interrupt_while_a_volume_is_begun_costs_nothing(tmp_path: Path, small, monkeypatch, where: str):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    appender = RecordAppender(tmp_path)
    addresses = [appender.add(b"x" * 3_000)]
    with monkeypatch.context() as patched:
        patched.setattr(volumes, where, interrupted, raising=False)
        appender.flush()
        with pytest.raises(KeyboardInterrupt):
            appender.add(b"y")
    addresses += [appender.add(b"y"), appender.add(b"z")]
    appender.flush()
    opened = RecordFiles.of(tmp_path)
    assert [opened.read(address) for address in addresses] == [b"x" * 3_000, b"y", b"z"]
    assert [number for number, _ in volumes.record_files(tmp_path)] == [1, 2]


def test_every_changed_byte_of_a_volume_is_noticed(tmp_path: Path):
    appender = RecordAppender(tmp_path)
    for record in _records(20):
        appender.add(record)
        appender.flush()
    appender.close()
    file = tmp_path / "00000001.records"
    content = file.read_bytes()
    assert scan_file(file).end == scan_file(file).size == len(content)
    assert scan_file(file).records == scan_file(file, contents=False).records == 20
    chance = random.Random(3)
    for place in [*range(64), *chance.sample(range(len(content)), 200)]:
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        assert scan_file(file).end <= place, place


def _page(number: int, version: int) -> dict:
    source = {"n": number, "version": version, "inner": {"text": f"{number} " * 40}}
    return {"_index": "pages", "_id": str(number), "_source": source}


def _heads_size(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "pages" / "heads").iterdir())


@pytest.mark.long
def test_space_of_documents_that_are_written_over_is_given_back(tmp_path: Path, words, small):
    chance = random.Random(5)
    versions = {}
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=20)) as engine:
        engine.create_index("pages", {}, {})
        for version in range(60):
            for number in chance.sample(range(60), 20):
                versions[str(number)] = version
                engine.bulk([_page(number, version)])
            engine.refresh("pages")
            if version == 30:
                pit, before = engine.open_pit("pages"), dict(versions)
        # 60 documents of some 250 bytes each; written 1,200 times.
        assert _heads_size(tmp_path) < 8 * 60 * 250
        then = engine.search(None, {"pit": {"id": pit}, "size": 100})["hits"]["hits"]
        assert {hit["_id"]: hit["_source"]["version"] for hit in then} == before
        engine.check("pages")
    with EmbeddedEngine(tmp_path, words) as reader:
        hits = reader.search("pages", {"size": 100})["hits"]["hits"]
        assert {hit["_id"]: hit["_source"]["version"] for hit in hits} == versions
        assert all(hit["_source"]["inner"]["text"].startswith(hit["_id"]) for hit in hits)


def test_a_volume_without_documents_goes_and_one_with_a_few_is_emptied(tmp_path: Path, words, small):
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=20)) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk([_page(number, 0) for number in range(60)])
        engine.refresh("pages")
        first = _heads(tmp_path)
        engine.bulk(_deletion(n) for n in range(60) if n % 9)
        engine.bulk([_page(number, 1) for number in range(100, 160)])
        engine.refresh("pages")
        left = _heads(tmp_path)
        assert first - left
        kept = engine.search("pages", {"query": {"range": {"n": {"lt": 60}}}, "size": 60})["hits"]["hits"]
        assert sorted(int(hit["_id"]) for hit in kept) == list(range(0, 60, 9))
        assert all(hit["_source"] == _page(int(hit["_id"]), 0)["_source"] for hit in kept)


@pytest.fixture
def writer(tmp_path: Path, words, small):
    """An engine that has written sixty pages into several volumes."""
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=20)) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk(_page(number, 0) for number in range(60))
        engine.refresh("pages")
        yield engine


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


def test_space_is_given_back_by_processes_that_only_write_and_close(tmp_path: Path, words, small):
    sizes = []
    for version in range(30):
        with EmbeddedEngine(tmp_path, words) as engine:
            if not version:
                engine.create_index("pages", {}, {})
            engine.bulk(_page(number, version) for number in range(30))
        sizes.append(_heads_size(tmp_path))
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
