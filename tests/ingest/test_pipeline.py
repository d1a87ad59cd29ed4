import copy
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from shinglefold.contracts.engine import Document, Processor
from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.processors.context import Options, Tools
from shinglefold.model.scheme import Scheme

Run = Callable[..., Any]
Make = Callable[..., Pipeline]
FAIL = {"fail": {"message": "no good", "tag": "gate"}}
NOTE = {
    "set": {
        "field": "why",
        "value": "{{{_ingest.on_failure_processor_type}}} {{{_ingest.on_failure_processor_tag}}}: "
        "{{{_ingest.on_failure_message}}}",
    }
}
AFTER = {"set": {"field": "after", "value": 1}}


def with_handlers(*handlers: dict[str, Any]) -> dict[str, Any]:
    return {"fail": {**FAIL["fail"], "on_failure": list(handlers)}}


def test_a_document_that_a_handler_rescues_continues_with_the_next_step(run_one: Run):
    done = run_one({"a": 1}, with_handlers(NOTE), AFTER)
    assert done.document == {"a": 1, "why": "fail gate: no good", "after": 1}


def test_ignore_failure_continues_with_the_next_step(run_one: Run):
    ignored = {"fail": {**FAIL["fail"], "ignore_failure": True, "on_failure": [NOTE]}}
    assert run_one({"a": 1}, ignored, AFTER).document == {"a": 1, "after": 1}


def test_the_pipeline_s_handlers_end_the_way_of_a_document(run_one: Run):
    done = run_one({"a": 1}, FAIL, AFTER, on_failure=[NOTE])
    assert done.document == {"a": 1, "why": "fail gate: no good"}


def test_handlers_see_the_failure_where_a_step_lost_the_metadata(run_one: Run):
    for step in ({"remove": {"field": "_ingest"}}, {"set": {"field": "_ingest", "value": 1}}):
        assert run_one({}, step, with_handlers(NOTE)).document == {"why": "fail gate: no good"}


def test_a_handler_that_fails_hands_over_to_the_pipeline_s(run_one: Run):
    second = {"fail": {"message": "worse", "tag": "handler"}}
    done = run_one({}, with_handlers(second), AFTER, on_failure=[NOTE])
    assert done.document == {"why": "fail handler: worse"}
    assert str(run_one({}, with_handlers(second)).failure) == "fail [handler]: worse"
    assert run_one({}, FAIL, AFTER, on_failure=[second]).failure.reason == "worse"


def test_handlers_may_drop_and_have_conditions(run_one: Run):
    assert run_one({}, with_handlers({"drop": {}}), AFTER).status == "dropped"
    inner = {"drop": {"if": "ctx._ingest.on_failure_message == 'another'"}}
    assert run_one({}, with_handlers(inner), AFTER).document == {"after": 1}


def test_conditions_choose_documents_within_a_block(make_pipeline: Make):
    pipeline = make_pipeline(
        {"drop": {"if": "ctx.n == 1"}},
        {"set": {"if": "ctx.n > 1 && ctx.n < 4", "field": "mid", "value": True}},
    )
    outcomes = list(pipeline.run([{"n": n} for n in range(5)]))
    assert [outcome.status for outcome in outcomes] == ["done", "dropped", "done", "done", "done"]
    kept = [outcome.document for outcome in outcomes if outcome.document]
    assert kept == [{"n": 0}, {"n": 2, "mid": True}, {"n": 3, "mid": True}, {"n": 4}]


def test_a_condition_that_cannot_be_decided_fails_past_the_step_s_own_handlers(run_one: Run):
    step = {"drop": {"if": "ctx.a.b == 1", "ignore_failure": True, "on_failure": [AFTER]}}
    failed = run_one({}, step)
    assert "no [b] in null" in failed.failure.reason
    assert run_one({}, step, on_failure=[AFTER]).document == {"after": 1}


def test_order_is_kept_over_many_blocks(make_pipeline: Make):
    pipeline = make_pipeline({"supershingle": {"field": "body"}})
    documents = [{"n": n, "body": f"слово {n} " * (n % 7)} for n in range(2_500)]
    assert [outcome.document["n"] for outcome in pipeline.run(documents)] == list(range(2_500))


def test_the_documents_given_stay_as_they_are(make_pipeline: Make):
    documents = [{"_id": "1", "a": {"b": "<p>x</p>"}, "l": [1]}]
    before = copy.deepcopy(documents)
    list(
        make_pipeline({"html_strip": {"field": "a.b"}}, {"set": {"field": "l.0", "value": 2}}).run(documents)
    )
    assert documents == before


class Fragile:
    """A processor that breaks its contract."""

    type: ClassVar[str] = "fragile"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.short = options.flag("short", False)

    def apply(self, documents: Sequence[Document]) -> list[Document | Exception | None]:
        if any(document.get("poison") for document in documents):
            raise RuntimeError("broke")
        return [] if self.short else [{**document, "ok": True} for document in documents]


def fragile(scheme: Scheme, **options: Any) -> Pipeline:
    definition = {"processors": [{"fragile": options}]}
    return Pipeline.from_json(definition, scheme, processors={"fragile": Fragile})


def test_a_processor_that_raises_fails_only_the_culprit(scheme: Scheme):
    outcomes = list(fragile(scheme).run([{"n": 1}, {"poison": 1}, {"n": 3}]))
    assert [outcome.status for outcome in outcomes] == ["done", "failed", "done"]
    assert "RuntimeError('broke')" in outcomes[1].failure.reason
    assert isinstance(Fragile(Options({}, ""), None), Processor)


def test_a_processor_that_loses_documents_fails_them_all(scheme: Scheme):
    outcomes = list(fragile(scheme, short=True).run([{"n": 1}, {"n": 2}]))
    assert [outcome.failure.reason for outcome in outcomes] == ["fragile returned 0 documents for 2"] * 2


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ([], "pipeline: expected an object with a list 'processors'"),
        ({}, "'processors': expected a list, got None"),
        ({"processors": {}}, "'processors': expected a list, got {}"),
        ({"processors": [], "versoin": 1}, "'versoin'; did you mean 'version'"),
        ({"processors": [], "version": "1"}, "'version': expected a whole number, got '1'"),
        ({"processors": [], "on_failure": []}, "must not be empty"),
    ],
)
def test_a_definition_of_another_shape_is_refused(definition: Any, told: str):
    with pytest.raises(ConfigError, match=told):
        Pipeline.from_json(definition)


def test_the_default_pipeline_takes_pages_and_texts(scheme: Scheme):
    pipeline = Pipeline.from_json(default_definition(), scheme)
    text = "Сегодня в городе выпал первый снег, и стало совсем тихо."
    page = {"_id": "1", "format": "html", "title": "Снег <b>", "body": f"<p>{text}</p><script>x()</script>"}
    plain = {"_id": "2", "title": "Снег <b>", "body": text}
    one, other, empty = (o.document for o in pipeline.run([page, plain, {"_id": "3"}]))
    assert one["_dedup"] == other["_dedup"]
    assert (one["_dedup"]["lang"], empty["_dedup"]["lang"]) == ("ru", "und")
    for given, made in ((page, one), (plain, other), ({"_id": "3"}, empty)):
        assert {name: value for name, value in made.items() if name != "_dedup"} == given
    files = Pipeline.from_json(default_definition(pages=True), scheme)
    stored = next(files.run([page])).document
    assert stored == {**other, "_id": "1", "format": "text"}
    assert "signature" not in empty["_dedup"]


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
    answer = pipeline.simulate([{**doc(a=0), "_routing": "r"}, doc(a=1), doc(a=2), {"_source": {}}], now=NOW)
    cause = {"type": "processor_error", "reason": "two", "processor_type": "fail", "processor_tag": "t"}
    assert answer["docs"] == [
        {"doc": {**doc(a=0, b="1"), "_routing": "r", "_ingest": STAMP}},
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
    assert results[0]["doc"]["_source"] == results[2]["doc"]["_source"] == {"a": 0, "b": 1}
    assert results[1]["if"] == {"condition": "ctx.a == 1", "result": False}
    assert results[2]["ignored_error"]["error"]["reason"] == "never mind"
    assert results[2]["tag"] == "soft"
    assert results[3]["error"]["reason"] == "stop"
    assert results[4]["doc"]["_ingest"]["on_failure_message"] == "stop"
    assert "doc" not in results[5]


def test_verbose_shows_a_condition_that_could_not_be_decided(make_pipeline: Make):
    (result,) = verbose(make_pipeline({"drop": {"if": "ctx.x.y == 1"}}), doc(a=0))
    assert (result["status"], result["if"]) == ("error", {"condition": "ctx.x.y == 1"})
    assert "no [y] in null" in result["error"]["reason"]


def test_each_step_of_the_answer_shows_the_document_as_it_was_then(make_pipeline: Make):
    steps = [{"set": {"field": "n", "value": n}} for n in range(3)]
    shown = [result["doc"]["_source"]["n"] for result in verbose(make_pipeline(*steps), doc())]
    assert shown == [0, 1, 2]


@pytest.mark.parametrize("given", [5, {"_id": "1"}, {"_source": []}, {"_source": {}, "_idd": "1"}])
def test_documents_of_another_shape_are_refused(make_pipeline: Make, given: Any):
    with pytest.raises(ConfigError, match=r"docs\[0\]"):
        make_pipeline({"drop": {}}).simulate([given])
