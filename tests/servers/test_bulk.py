"""Bulk on a real server behind a relay that spoils requests: nothing is lost, nothing is written twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.servers.faulty import BROKEN, CUT, HALF, LATE, LOST, Relay, relay

from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.engines.http.bulk import CHUNK
from shinglefold.errors import EngineUnavailable
from shinglefold.runtime.backoff import Backoff

pytestmark = pytest.mark.newest


@pytest.fixture
def before(server) -> Iterator[Relay]:
    with relay(server.url) as made:
        yield made


@pytest.fixture
def through(before: Relay) -> Iterator[Engine]:
    engine = open_engine(Connection((before.url,), timeout=2, retries=2))
    engine.backoff = Backoff(2, first=0.01)
    yield engine
    engine.close()


def documents(index, count, **extra):
    return [
        {"_index": index, "_id": str(number), "_source": {"n": number}, **extra} for number in range(count)
    ]


def stored(engine, index):
    engine.refresh(index)
    order = {"n": {"order": "asc", "unmapped_type": "long"}}
    answer = engine.search(index, {"size": 5000, "sort": [order], "track_total_hits": True})
    assert answer["hits"]["total"]["value"] == len(answer["hits"]["hits"])
    return [hit["_source"]["n"] for hit in answer["hits"]["hits"]]


@pytest.mark.parametrize("fault", [429, 503, LOST, LATE, CUT, HALF, BROKEN])
def test_a_spoilt_request_is_sent_again(through, before, new_index, engine, fault):
    index = new_index()
    before.faults = [fault, fault]
    result = through.bulk(documents(index, 20))
    assert (result.indexed, result.failures) == (20, ())
    assert stored(engine, index) == list(range(20))


@pytest.mark.parametrize("fault", [LOST, LATE, HALF, BROKEN])
def test_documents_without_an_id_are_written_once_though_the_answer_was_lost(
    through, before, new_index, engine, fault
):
    index = new_index()
    before.faults = [fault]
    result = through.bulk({"_index": index, "_source": {"n": number}} for number in range(20))
    assert result.indexed == 20
    assert stored(engine, index) == list(range(20))


def test_a_server_that_stays_busy_is_given_up(through, before, new_index, engine):
    index = new_index()
    before.faults = [503] * 50
    with pytest.raises(EngineUnavailable, match="Try again later"):
        through.bulk(documents(index, 5))
    assert stored(engine, index) == []


def test_what_was_left_when_the_server_went_is_returned(through, before, new_index, engine):
    index = new_index()
    actions = documents(index, 2 * CHUNK + 10)

    def until_it_goes():
        for number, action in enumerate(actions):
            if number > CHUNK:
                # The first chunk is through by now.
                before.faults = [503] * 50
            yield action

    result = through.bulk(until_it_goes())
    assert result.indexed == CHUNK
    assert [failure.action for failure in result.failures] == actions[CHUNK:]
    assert {failure.status for failure in result.failures} == {503}
    assert stored(engine, index) == list(range(CHUNK))


def test_a_source_may_be_json_text(engine, new_index):
    index = new_index()
    text = '{"n":7,"word":"снег \\"\\n","list":[1,null]}'
    assert engine.can.takes_json
    assert engine.bulk([{"_index": index, "_id": "7", "_source": text}]).indexed == 1
    assert engine.get(index, "7")["_source"] == {"n": 7, "word": 'снег "\n', "list": [1, None]}
    (failure,) = engine.bulk([{"_index": index, "_id": "8", "_source": "{broken"}]).failures
    assert failure.status == 400


def test_a_source_that_is_bytes_goes_out_as_it_is(engine, new_index):
    index = new_index({"properties": {"n": {"type": "integer"}}})
    text = '{"n":7,"word":"снег \\"\\n","list":[1,null]}'.encode()
    ids = ["7", 'a "ї" / \\', "8"]
    actions = [{"_index": index, "_id": id_, "_source": text} for id_ in ids]
    result = engine.bulk([*actions, {"_index": index, "_source": text}])
    assert (result.indexed, result.failures) == (4, ())
    for id_ in ids:
        assert engine.get(index, id_)["_source"] == {"n": 7, "word": 'снег "\n', "list": [1, None]}
    assert engine.bulk(actions).written_over == 3
    broken = {"_index": index, "_id": "9", "_source": b"{broken"}
    mistyped = {"_index": index, "_id": "10", "_source": b'{"n":"many"}'}
    objects = {"_index": index, "_id": "11", "_source": {"n": 11}}
    result = engine.bulk([broken, mistyped, *actions])
    assert (result.indexed, [failure.action for failure in result.failures]) == (3, [broken, mistyped])
    assert {failure.status for failure in result.failures} == {400}
    assert engine.bulk([*actions, objects]).indexed == 4


def test_two_requests_at_a_time_through_a_bad_network_lose_nothing(through, before, new_index, engine):
    index = new_index()
    parts = [documents(index, (part + 1) * 50)[part * 50 :] for part in range(8)]
    # Two faults: even if both befell one request, it would be sent a third time.
    before.faults = [LATE, LOST]
    with ThreadPoolExecutor(engine.can.bulks_at_once) as pool:
        results = list(pool.map(through.bulk, parts))
    assert [result.indexed for result in results] == [50] * 8
    assert stored(engine, index) == list(range(400))


def test_an_action_that_can_not_be_sent_does_not_take_the_others_with_it(engine, new_index):
    index = new_index({"properties": {"n": {"type": "integer"}}})
    actions = documents(index, 60)
    actions[7]["_source"] = {"n": {1, 2}}
    actions[23]["_op_type"] = "upend"
    actions[41]["_id"] = "x" * 600
    actions[42]["_source"] = {"n": "many"}
    actions[43]["_index"] = "shinglefold-absent"
    actions[44] = {"_source": {}}
    wrong = [7, 23, 41, 42, 43, 44]
    result = engine.bulk(actions)
    assert result.indexed == 60 - len(wrong)
    assert sorted(actions.index(failure.action) for failure in result.failures) == wrong
    assert {failure.status for failure in result.failures} == {400, 404}
    assert all(failure.reason for failure in result.failures)
    assert not engine.index_exists("shinglefold-absent")
    assert len(stored(engine, index)) == 60 - len(wrong)


def test_the_last_of_many_versions_wins(engine, new_index):
    index = new_index()
    actions = ({"_index": index, "_id": str(n % 7), "_source": {"n": n}} for n in range(3 * CHUNK))
    assert engine.bulk(actions).indexed == 3 * CHUNK
    assert stored(engine, index) == list(range(3 * CHUNK - 7, 3 * CHUNK))


def test_a_concurrent_edit_wins_over_a_guarded_update(engine, new_index):
    index = new_index()
    engine.bulk(documents(index, 1))
    engine.refresh(index)
    (hit,) = engine.search(index, {"seq_no_primary_term": True})["hits"]["hits"]
    guard = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
    engine.bulk([{"_index": index, "_id": "0", "_source": {"n": 1}}])
    update = {"_op_type": "update", "_index": index, "_id": "0", "doc": {"n": 2}, **guard}
    (failure,) = engine.bulk([update]).failures
    assert failure.status == 409
    assert stored(engine, index) == [1]
