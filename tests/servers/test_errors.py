"""Whatever a real server refuses is told as one of our errors, with a remedy and its cause."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from support.servers.admin import ask
from support.servers.server import blocked

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.errors import (
    EngineError,
    EngineUnavailable,
    IndexExists,
    IndexMissing,
    IndexReadOnly,
    PitExpired,
    UnsupportedQuery,
    WindowTooLarge,
)

NUMBERS = {"properties": {"n": {"type": "integer"}}}


@contextmanager
def told(error: type[EngineError], *words: str) -> Iterator[None]:
    """Check the error, that it names what the reader needs, and that its cause is kept."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.__cause__ is not None
    for word in ("127.0.0.1", *words):
        assert word in str(caught.value)


def test_a_missing_index(engine: Engine):
    for call in (
        lambda: engine.search("shinglefold-absent", {}),
        lambda: engine.mappings("shinglefold-absent"),
        lambda: engine.refresh("shinglefold-absent"),
        lambda: engine.get("shinglefold-absent", "1"),
        lambda: engine.open_pit("shinglefold-absent"),
        lambda: engine.delete_index("shinglefold-absent"),
    ):
        with told(IndexMissing, "shinglefold-absent", "Create it first"):
            call()
    with pytest.raises(IndexMissing, match="no index fits"):
        engine.mappings("shinglefold-absent-*")


def test_an_index_that_is_deleted_under_a_point_in_time(engine, new_index):
    index = new_index()
    search = {"pit": {"id": engine.open_pit(index)}}
    engine.delete_index(index)
    if type(engine).__name__.startswith("Elasticsearch"):
        # Which tells no more than that there are no shards, as where all nodes that have them are gone.
        with told(EngineUnavailable, "no_shard_available_action_exception", "Try again later"):
            engine.search(None, search)
        return
    meanwhile = "deleted while it was read under a point in time: begin anew"
    with told(IndexMissing, index, meanwhile):
        engine.search(None, search)
    with told(IndexMissing, index, meanwhile):
        engine.search(None, search, {"request_cache": True})
    answers = engine.msearch([(None, search), ("shinglefold-absent", {})])
    assert [isinstance(one, IndexMissing) for one in answers] == [True, True]
    assert [meanwhile in str(one) for one in answers] == [True, False]


def test_documents_that_can_not_be_read_are_no_matter_of_time(engine, new_index):
    """A gate would wait and read again what is refused for good."""
    index, routed = new_index(), new_index({"_routing": {"required": True}})
    for name, id_, words in (
        (routed, "1", "routing is required"),
        (index, "", "Ids can't be empty"),
    ):
        with pytest.raises(UnsupportedQuery, match=rf"{words}.* \(400\)"):
            engine.read(name, [id_])
    with pytest.raises(IndexMissing, match=r"\(404\)"):
        engine.read("shinglefold-absent", ["1"])
    for id_ in ("", "half \ud800"):
        assert engine.get(index, id_) is None


def test_half_a_surrogate_pair_is_stored_and_read(engine, new_index):
    index, source = new_index(), {"text": "half \ud800 of it"}
    actions = [
        {"_index": index, "_id": "a", "_source": source},
        {"_index": index, "_id": "b", "_source": json.dumps(source).encode()},
    ]
    assert engine.bulk(actions).indexed == 2
    (written,) = engine.write([{"_index": index, "_id": "c", "_source": source}])
    assert written.status == 201
    assert [one.source for one in engine.read(index, ["a", "b", "c"])] == [source] * 3


def test_an_index_that_is_there_already(engine, new_index):
    index = new_index()
    with told(IndexExists, index, "take another name"):
        engine.create_index(index, {}, {})


def test_names_that_would_mean_many_indices_are_refused_before_they_are_sent(engine, new_index):
    index = new_index()
    for name in ("*", "_all", "", f"{index}*", f"{index},other"):
        for call in (engine.delete_index, engine.index_exists):
            with pytest.raises(UnsupportedQuery, match="does not name one index"):
                call(name)
    for call in (engine.refresh, engine.mappings, engine.open_pit):
        with pytest.raises(UnsupportedQuery, match="names no index"):
            call("")
    with pytest.raises(UnsupportedQuery, match="name an index, or a point in time"):
        engine.search(None, {})
    assert engine.index_exists(index)


@pytest.mark.parametrize(
    ("mappings", "settings", "word"),
    [
        ({"properties": {"n": {"type": "no-such-type"}}}, {}, "no-such-type"),
        ({"properties": {"n": {"type": "integer", "no_such_option": 1}}}, {}, "no_such_option"),
        ({}, {"no_such_setting": 1}, "no_such_setting"),
    ],
)
def test_mappings_and_settings_the_server_has_not(engine, mappings, settings, word):
    with told(UnsupportedQuery, word):
        engine.create_index("shinglefold-wrong", mappings, settings)
    assert not engine.index_exists("shinglefold-wrong")


def test_a_mapping_conflict_is_returned_with_its_reason(engine, new_index):
    index = new_index(NUMBERS)
    (failure,) = engine.bulk([{"_index": index, "_id": "1", "_source": {"n": "many"}}]).failures
    assert failure.status == 400
    assert "failed to parse field [n] of type [integer]" in failure.reason
    strict = new_index({"dynamic": "strict", **NUMBERS})
    (failure,) = engine.bulk([{"_index": strict, "_id": "1", "_source": {"other": 1}}]).failures
    assert (failure.status, "strict" in failure.reason) == (400, True)


def test_queries_the_server_can_not_read_name_what_is_wrong(engine, new_index):
    index = new_index(NUMBERS)
    engine.bulk([{"_index": index, "_id": "1", "_source": {"n": 1}}])
    engine.refresh(index)
    for body, word in (
        ({"query": {"no_such_query": {}}}, "no_such_query"),
        ({"no_such_key": {}}, "no_such_key"),
        ({"query": {"term": {"n": "many"}}}, "many"),
        ({"sort": ["no_such_field"]}, "no_such_field"),
        ({"query": {"match_all": {}}, "size": {1, 2}}, "JSON"),
    ):
        with told(UnsupportedQuery, word):
            engine.search(index, body)


def test_a_window_beyond_the_greatest(engine, new_index):
    index = new_index(settings={"max_result_window": 50})
    with told(WindowTooLarge, "[50]", "search_after"):
        engine.search(index, {"from": 45, "size": 10})


def test_a_point_in_time_that_was_closed(engine, new_index):
    closed = engine.open_pit(new_index())
    engine.close_pit(closed)
    engine.close_pit(closed)
    with told(PitExpired, "open another"):
        engine.search(None, {"pit": {"id": closed}})
    with pytest.raises(EngineError):
        engine.search(None, {"pit": {"id": "no-such-id"}})
    engine.close_pit("no-such-id")


def test_a_point_in_time_that_ran_out(engine, new_index):
    index = new_index()
    with told(PitExpired, "longer keep_alive"):
        # A server looks now and then what has run out: ours every second, another's every minute. To ask
        # earlier would make OpenSearch keep it for five minutes.
        for patience in (2.5, 5, 70):
            pit = engine.open_pit(index, "1ms")
            time.sleep(patience)
            engine.search(None, {"pit": {"id": pit}})
    engine.close_pit(pit)


def test_a_closed_index(engine, server, new_index):
    index = new_index()
    ask(server.url, "POST", f"/{index}/_close")
    with told(EngineError, "closed", "Open the index"):
        engine.search(index, {})


@pytest.mark.parametrize("block", ["write", "read_only"])
def test_a_read_only_index(engine, server, new_index, block):
    index = new_index()
    with blocked(server, index, block):
        result = engine.bulk([{"_index": index, "_id": "1", "_source": {"n": 1}}])
        (failure,) = result.failures
        assert (result.indexed, failure.status) == (0, 403)
        assert "blocked" in failure.reason
        if block == "read_only":
            with told(IndexReadOnly, "index.blocks"):
                engine.delete_index(index)
    assert engine.bulk([{"_index": index, "_id": "1", "_source": {"n": 1}}]).indexed == 1


def test_a_server_that_is_not_there():
    for address in (
        "http://127.0.0.1:1",
        "opensearch+http://127.0.0.1:1",
        "elasticsearch+http://127.0.0.1:1",
    ):
        with (
            told(EngineUnavailable, "127.0.0.1:1", "Check the address"),
            closing(open_engine(address)) as engine,
        ):
            engine.info()


def test_https_asked_of_a_server_that_speaks_http(server):
    address = server.url.replace("http:", "https:")
    for spelled in (address, f"opensearch+{address}", f"elasticsearch+{address}"):
        with told(EngineUnavailable, "https"), closing(open_engine(spelled)) as engine:
            engine.info()


def test_the_adapter_for_elasticsearch_on_another_product(server, engine):
    if engine.info()["distribution"] == "elasticsearch":
        return
    with (
        pytest.raises(EngineError, match="is not Elasticsearch"),
        closing(open_engine(f"elasticsearch+{server.url}")) as wrong,
    ):
        wrong.mappings("*")


def test_a_closed_engine(server):
    engine = open_engine(server.url)
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="is closed; open another"):
        engine.info()
