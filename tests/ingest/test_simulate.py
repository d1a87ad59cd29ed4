from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline

Make = Callable[..., Pipeline]
NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
STAMP = {"timestamp": "2024-05-01T12:00:00.000Z"}


def doc(**source: Any) -> dict[str, Any]:
    return {"_index": "i", "_id": "1", "_source": source}


def test_the_answer_has_the_servers_shape(make_pipeline: Make):
    pipeline = make_pipeline(
        {"set": {"field": "b", "value": "{{{_id}}}"}},
        {"drop": {"if": "ctx.a == 1"}},
        {"fail": {"if": "ctx.a == 2", "message": "two", "tag": "t"}},
    )
    answer = pipeline.simulate([doc(a=0), doc(a=1), doc(a=2), {"_source": {}}], now=NOW)
    cause = {"type": "processor_error", "reason": "two", "processor_type": "fail", "processor_tag": "t"}
    assert answer["docs"] == [
        {"doc": {"_index": "i", "_id": "1", "_source": {"a": 0, "b": "1"}, "_ingest": STAMP}},
        None,
        {"error": {"root_cause": [cause], **cause}},
        {"doc": {"_index": "_index", "_id": "_id", "_source": {"b": "_id"}, "_ingest": STAMP}},
    ]


def verbose(pipeline: Pipeline, document: dict[str, Any]) -> list[dict[str, Any]]:
    return pipeline.simulate([document], verbose=True, now=NOW)["docs"][0]["processor_results"]


def test_verbose_shows_every_step_and_its_status(make_pipeline: Make):
    pipeline = make_pipeline(
        {"set": {"field": "b", "value": 1, "description": "give b"}},
        {"drop": {"if": "ctx.a == 1"}},
        {"fail": {"message": "never mind", "ignore_failure": True, "tag": "soft"}},
        {"fail": {"message": "stop", "on_failure": [{"set": {"field": "saved", "value": True}}]}},
        {"drop": {}},
        {"set": {"field": "never", "value": 1}},
    )
    results = verbose(pipeline, doc(a=0))
    kinds = ("set", "drop", "fail", "fail", "set", "drop")
    assert [result["processor_type"] for result in results] == list(kinds)
    statuses = ["success", "skipped", "error_ignored", "error", "success", "dropped"]
    assert [result["status"] for result in results] == statuses
    assert results[0]["description"] == "give b"
    assert results[0]["doc"]["_source"] == {"a": 0, "b": 1}
    assert results[1]["if"] == {"condition": "ctx.a == 1", "result": False}
    assert results[2]["ignored_error"]["error"]["reason"] == "never mind"
    assert results[2]["tag"] == "soft"
    assert results[3]["error"]["reason"] == "stop"
    assert results[4]["doc"]["_ingest"]["on_failure_message"] == "stop"
    assert "doc" not in results[5]


def test_verbose_shows_a_condition_that_could_not_be_decided(make_pipeline: Make):
    (result,) = verbose(make_pipeline({"drop": {"if": "ctx.x.y == 1"}}), doc(a=0))
    assert result["status"] == "error"
    assert "no [y] in null" in result["error"]["reason"]


def test_each_step_of_the_answer_shows_the_document_as_it_was_then(make_pipeline: Make):
    steps = [{"set": {"field": "n", "value": n}} for n in range(3)]
    shown = [result["doc"]["_source"]["n"] for result in verbose(make_pipeline(*steps), doc())]
    assert shown == [0, 1, 2]


@pytest.mark.parametrize("given", [5, {"_id": "1"}, {"_source": []}, {"_source": {}, "_idd": "1"}])
def test_documents_of_another_shape_are_refused(make_pipeline: Make, given: Any):
    with pytest.raises(ConfigError, match=r"docs\[0\]"):
        make_pipeline({"drop": {}}).simulate([given])
