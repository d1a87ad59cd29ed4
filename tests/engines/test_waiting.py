"""Changes are written many at a time; whoever asks meanwhile is told as if each had been written alone."""

import pytest

from shinglefold.contracts.engine import Engine

INDEX = "waiting"


@pytest.fixture
def embedded(engine: Engine) -> Engine:
    engine.create_index(INDEX, {"properties": {"n": {"type": "integer"}}}, {})
    return engine


def _put(number: int, verb: str = "index", text: str = "слово") -> dict:
    return {"_op_type": verb, "_index": INDEX, "_id": str(number), "_source": {"n": number, "text": text}}


def _delete(number: int) -> dict:
    return {"_op_type": "delete", "_index": INDEX, "_id": str(number)}


def _found(engine: Engine, text: str) -> list[str]:
    body = {"query": {"match": {"text": text}}, "size": 1_000, "sort": [{"n": "asc"}]}
    return [hit["_id"] for hit in engine.search(INDEX, body)["hits"]["hits"]]


def test_changes_of_one_document_in_one_request_happen_in_order(embedded):
    update = {"_op_type": "update", "_index": INDEX, "_id": "1", "doc": {"text": "мост"}}
    result = embedded.bulk([_put(1), update, _put(2), _delete(2), _put(3), _delete(3), _put(3, text="мост")])
    assert (result.indexed, result.failures) == (7, ())
    embedded.refresh(INDEX)
    assert _found(embedded, "мост") == ["1", "3"]
    assert _found(embedded, "слово") == []


def test_what_waits_is_there_to_be_refused_updated_and_read(embedded):
    result = embedded.bulk([_put(1), _put(1, "create"), _delete(2), _put(1, text="мост")])
    assert [failure.status for failure in result.failures] == [409, 404]
    assert result.written_over == 1
    assert embedded.get(INDEX, "1")["_source"] == {"n": 1, "text": "мост"}


@pytest.mark.parametrize("number", [255, 256, 257, 700])
def test_any_number_is_written_whole(embedded, number):
    embedded.bulk(_put(one) for one in range(number))
    embedded.refresh(INDEX)
    assert len(_found(embedded, "слово")) == number


def test_a_query_deletes_what_waits(embedded):
    embedded.bulk([_put(1), _put(2, text="мост")])
    assert embedded.delete_by_query(INDEX, {"match": {"text": "мост"}}).indexed == 1
    assert _found(embedded, "слово") == ["1"]


def test_new_fields_come_while_others_wait(embedded):
    wide = {f"field{number}": f"мост {number}" for number in range(60)}
    embedded.bulk([_put(1), {**_put(2), "_source": {"n": 2, **wide}}, _put(3)])
    embedded.refresh(INDEX)
    assert _found(embedded, "слово") == ["1", "3"]
    body = {"query": {"match": {"field59": "мост"}}}
    assert [hit["_id"] for hit in embedded.search(INDEX, body)["hits"]["hits"]] == ["2"]
