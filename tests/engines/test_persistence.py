"""The index is on disk: it is there after a restart, for one writer and any number of readers."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.schema.requests import read_action
from shinglefold.engines.embedded.schema.tantivy_schema import search_top
from shinglefold.engines.embedded.search.compiler import compile_query
from shinglefold.engines.embedded.search.queries import Context
from shinglefold.errors import EngineError, EngineUnavailable, IndexMissing
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Token
from shinglefold.registry import make_scheme


def _total(engine: EmbeddedEngine, index: str = "pages") -> int:
    return engine.search(index, {"size": 0})["hits"]["total"]["value"]


def _page(number: int) -> dict:
    return {"_index": "pages", "_id": str(number), "_source": {"number": number, "inner": {"word": "x"}}}


def test_closing_keeps_what_was_written(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {"_meta": {"own": [1]}}, {"number_of_shards": 1})
        engine.bulk(map(_page, range(5)))
    with EmbeddedEngine(tmp_path, words) as engine:
        assert _total(engine) == 5
        assert engine.mappings("pages")["_meta"] == {"own": [1]}
        assert engine.mappings("pages")["properties"]["number"] == {"type": "long"}
        assert engine.get("pages", "3")["_source"] == {"number": 3, "inner": {"word": "x"}}


def test_a_second_writer_is_told_who_is_in_the_way(tmp_path: Path, words):
    code = (
        "import sys; from shinglefold.engines.embedded import EmbeddedEngine\n"
        "from shinglefold.errors import EngineUnavailable\n"
        "engine = EmbeddedEngine(sys.argv[1], lambda text: [])\n"
        "print(engine.search('pages', {})['hits']['total']['value'])\n"
        "try: engine.bulk([{'_index': 'pages', '_source': {}}])\n"
        "except EngineUnavailable as error: print(error)\n"
        "try: engine.delete_index('pages')\n"
        "except EngineUnavailable as error: print(error)"
    )
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk(map(_page, range(5)))
        engine.refresh("pages")
        told = subprocess.run(
            [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
        )
        seen, writing, deleting = told.stdout.splitlines()
        assert seen == "5"
        assert "another process is writing to this index; wait until it has closed it" in writing
        assert "another process is writing" in deleting
        assert _total(engine) == 5


def test_the_lock_stays_until_the_last_lease_ends_and_then_goes(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine, EmbeddedEngine(tmp_path, words) as other:
        engine.create_index("pages", {}, {})
        first, second = engine.lease("pages"), engine.lease("pages")
        first.__enter__()
        with second:
            first.__exit__(None, None, None)
            _assert_locked(other)
        _write_and_release(other)


def test_a_run_that_ends_during_a_lease_leaves_no_lock_behind_it(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine, EmbeddedEngine(tmp_path, words) as other:
        engine.create_index("pages", {}, {})
        engine.bulk([_page(0)])
        with engine.lease("pages"):
            engine.refresh("pages")
            engine.release("pages")
            _assert_locked(other)
        _write_and_release(other)
        engine.bulk([_page(2)])
        with engine.lease("pages"):
            # What was not committed before the lease keeps the lock after it.
            engine.release("pages")
        _assert_locked(other)


def _assert_locked(other: EmbeddedEngine) -> None:
    with pytest.raises(EngineUnavailable, match="another process is writing"):
        other.bulk([_page(1)])


def _write_and_release(other: EmbeddedEngine) -> None:
    assert not other.bulk([_page(1)]).failures
    other.refresh("pages")
    other.release("pages")


def test_a_reader_sees_another_process_writes_without_being_told(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as writer, EmbeddedEngine(tmp_path, words) as reader:
        writer.create_index("pages", {}, {})
        assert _total(reader) == 0
        writer.bulk(map(_page, range(5)))
        writer.refresh("pages")
        assert _total(reader) == 5
        assert (
            reader.search("pages", {"query": {"match": {"inner.word": "x"}}})["hits"]["total"]["value"] == 5
        )


def test_a_rebuild_by_another_process_just_before_an_access_is_noticed(tmp_path: Path, words):
    """A rebuild moves the columns, so that the old columns on the new files would hold other fields."""
    more = {"properties": {f"k{number}": {"type": "keyword"} for number in range(40)}}
    with EmbeddedEngine(tmp_path, words) as other, EmbeddedEngine(tmp_path, words) as engine:
        other.create_index("pages", {}, {})
        other.bulk(map(_page, range(3)))
        other.refresh("pages")
        assert _total(engine) == 3
        # What a search and a bulk do first.
        opened = engine._index("pages")
        other.put_mappings("pages", more)
        context = Context(opened.snapshot, engine._analysis)
        found = compile_query(context, {"term": {"number": 2}})
        assert search_top(context.snapshot.searcher, found, 1)[0] == 1
        opened = engine._index("pages")
        other.put_mappings("pages", {"properties": {f"l{number}": {"type": "long"} for number in range(40)}})
        other.close()
        opened.run(read_action(_page(3)))
        for number in range(4):
            query = {"query": {"term": {"number": number}}}
            engine.refresh("pages")
            assert [hit["_id"] for hit in engine.search("pages", query)["hits"]["hits"]] == [str(number)]


def test_what_a_rebuild_brought_is_found_though_a_write_meanwhile_was_refused(tmp_path: Path, words):
    more = {"properties": {f"k{number}": {"type": "keyword"} for number in range(40)}}
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        opened = engine._index("pages")
        with EmbeddedEngine(tmp_path, words) as other:
            other.put_mappings("pages", more)
            other.bulk(map(_page, range(2)))
            other.refresh("pages")
            with pytest.raises(EngineError, match="another process"):
                opened.run(read_action(_page(3)))
            assert _total(engine) == 2


def test_the_next_writer_knows_what_the_last_one_learned(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as early:
        early.create_index("pages", {}, {})
        assert _total(early) == 0
        with EmbeddedEngine(tmp_path, words) as other:
            other.bulk([{"_index": "pages", "_id": "a", "_source": {"first": "one"}}])
        early.bulk([{"_index": "pages", "_id": "b", "_source": {"second": "two"}}])
        early.bulk([{"_index": "pages", "_id": "a", "_op_type": "update", "doc": {"second": "two"}}])
        early.refresh("pages")
        assert early.mappings("pages")["properties"].keys() == {"first", "second"}
        for query in ({"match": {"first": "one"}}, {"match": {"second": "two"}}):
            assert "a" in [hit["_id"] for hit in early.search("pages", {"query": query})["hits"]["hits"]]


def test_full_portions_are_durable_before_a_refresh_and_invisible_until_then(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=10)) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk(map(_page, range(25)))
        assert _total(engine) == 0
        assert engine.get("pages", "7") is not None
        assert engine.get("pages", "24") is not None
        with EmbeddedEngine(tmp_path, words) as other:
            assert _total(other) == 20
        engine.refresh("pages")
        assert _total(engine) == 25


def test_updates_see_what_is_not_refreshed_whether_committed_or_not(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=2)) as engine:
        engine.create_index("pages", {}, {})
        same = {"_index": "pages", "_id": "1", "_op_type": "update"}
        engine.bulk([_page(1), *({**same, "doc": {"inner": {f"step{n}": n}}} for n in range(5))])
        assert engine.get("pages", "1")["_source"]["inner"] == {
            "word": "x",
            **{f"step{n}": n for n in range(5)},
        }
        engine.refresh("pages")
        assert _total(engine) == 1


def test_updates_can_write_what_is_missing(engine: EmbeddedEngine):
    engine.create_index("pages", {}, {})
    update = {"_index": "pages", "_op_type": "update", "doc": {"number": 1}}
    result = engine.bulk(
        [
            {**update, "_id": "a", "doc_as_upsert": True},
            {**update, "_id": "b", "upsert": {"number": 0}},
            {**update, "_id": "b", "upsert": {"number": 0}},
            {"_index": "pages", "_op_type": "update", "_id": "c", "script": {"source": "x"}},
        ]
    )
    assert [engine.get("pages", id_)["_source"] for id_ in "ab"] == [{"number": 1}, {"number": 1}]
    assert [failure.status for failure in result.failures] == [400]


def test_an_index_made_with_other_languages_is_refused(tmp_path: Path):
    one, other = (
        Canonicalizer.of(make_scheme(codes=["en", "any"], options=CanonOptions(mode)))
        for mode in ("stem", "surface")
    )
    with EmbeddedEngine(tmp_path, one) as engine:
        engine.create_index("pages", {}, {})
    with EmbeddedEngine(tmp_path, one) as engine:
        assert _total(engine) == 0
    with EmbeddedEngine(tmp_path, other) as engine:
        with pytest.raises(EngineError, match="index FILE --index pages --recreate"):
            engine.search("pages", {})
        engine.delete_index("pages")


@pytest.mark.parametrize("damaged", ["catalog.json", "tantivy/meta.json"])
def test_damaged_files_are_told_and_can_be_deleted(tmp_path: Path, words, damaged):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        engine.bulk(map(_page, range(5)))
    (tmp_path / "pages" / damaged).write_text('{"half":')
    with EmbeddedEngine(tmp_path, words) as engine:
        with pytest.raises(EngineUnavailable, match="index again"):
            engine.search("pages", {})
        engine.delete_index("pages")
        engine.create_index("pages", {}, {})
        assert _total(engine) == 0


def test_a_deleted_index_takes_its_points_in_time_along(engine: EmbeddedEngine):
    engine.create_index("pages", {}, {})
    pit = engine.open_pit("pages")
    engine.delete_index("pages")
    with pytest.raises(EngineError, match="open another"):
        engine.search(None, {"pit": {"id": pit}})
    with pytest.raises(IndexMissing):
        engine.search("pages", {})


def test_a_closed_engine_says_so_and_closes_twice(tmp_path: Path, words):
    engine = EmbeddedEngine(tmp_path, words)
    engine.create_index("pages", {}, {})
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.search("pages", {})
    with pytest.raises(EngineError, match="closed"):
        engine.bulk([])


def test_closing_keeps_what_was_written_to_other_indices_than_one_that_fails(tmp_path: Path, words):
    engine = EmbeddedEngine(tmp_path, words)
    for name in ("first", "broken", "last"):
        engine.create_index(name, {}, {})
        engine.bulk([{"_index": name, "_id": "1", "_source": {"t": "one"}}])
    shutil.rmtree(tmp_path / "broken" / "tantivy")
    with pytest.raises(EngineUnavailable, match="broken"):
        engine.close()
    with EmbeddedEngine(tmp_path, words) as after:
        assert [after.get(name, "1") is not None for name in ("first", "last")] == [True, True]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_the_folder_of_an_open_index_is_held_so_that_one_made_anew_gets_another_number(tmp_path, words):
    def held() -> list[str]:
        return [str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]

    folder = str(tmp_path / "pages" / "tantivy")
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
    with EmbeddedEngine(tmp_path, words) as reader:
        assert _total(reader) == 0
        assert folder in held()
        with EmbeddedEngine(tmp_path, words) as engine:
            engine.delete_index("pages")
            mapped = {f"f{number}": {"type": "keyword"} for number in range(90)}
            engine.create_index("pages", {"properties": mapped}, {})
            engine.bulk([_page(7)])
        assert _total(reader) == 1
        assert reader.get("pages", "7")["_source"] == _page(7)["_source"]
        assert held().count(folder) == 1
    # Threads of tantivy may hold its lock for a moment yet.
    assert folder not in held()


def test_an_index_elsewhere_that_is_linked_to_is_deleted_there(tmp_path: Path, words):
    (tmp_path / "elsewhere").mkdir()
    link, place = tmp_path / "data" / "pages", tmp_path / "elsewhere" / "pages"
    for _ in range(2):
        with EmbeddedEngine(tmp_path / "data", words) as engine:
            engine.create_index("pages", {}, {})
            engine.bulk([_page(1)])
        link.rename(place)
        link.symlink_to(place)
        with EmbeddedEngine(tmp_path / "data", words) as engine:
            assert _total(engine) == 1
            engine.delete_index("pages")
            assert not engine.index_exists("pages")
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["data", "elsewhere"]


def test_an_interrupt_while_words_are_made_loses_nothing_that_was_taken(tmp_path: Path, words):
    left = iter([KeyboardInterrupt()])

    def interrupted(text: str) -> list[Token]:
        if text == "last" and (error := next(left, None)):
            raise error
        return words(text)

    with EmbeddedEngine(tmp_path, interrupted) as engine:
        engine.create_index("pages", {}, {})
        assert engine.bulk(map(_page, range(9))).indexed == 9
        engine.bulk([{"_index": "pages", "_id": "9", "_source": {"number": 9, "body": "last"}}])
        with pytest.raises(KeyboardInterrupt):
            engine.refresh("pages")
    with EmbeddedEngine(tmp_path, words) as engine:
        hits = engine.search("pages", {"sort": ["number"], "size": 20})["hits"]["hits"]
        assert [hit["_source"]["number"] for hit in hits] == list(range(10))
        assert engine.search("pages", {"query": {"match": {"body": "last"}}})["hits"]["total"]["value"] == 1


def test_an_index_that_is_deleted_or_made_anew_within_a_request_is_seen(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})

        def actions():
            yield _page(0)
            engine.delete_index("pages")
            yield _page(1)
            engine.create_index("pages", {}, {})
            yield _page(2)

        result = engine.bulk(actions())
        assert (result.indexed, [failure.status for failure in result.failures]) == (2, [404])
        engine.refresh("pages")
        assert [hit["_id"] for hit in engine.search("pages", {})["hits"]["hits"]] == [_page(2)["_id"]]
