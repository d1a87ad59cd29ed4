"""Writes through the interceptor without a network: conflicts, scripts, gates, order."""

import json
import warnings

import pytest
from support.interceptor import Script, intercept, lines, reads, with_note

from shinglefold.api.index_options import IndexOptions
from shinglefold.contracts.engine import Guard
from shinglefold.errors import ConfigError, EngineUnavailable, InputError, PermissionDenied
from shinglefold.gateway import Interceptor
from shinglefold.gateway.gates import Admit
from shinglefold.gateway.rest import (
    RestRequest,
    RestResponse,
    Send,
)
from shinglefold.gateway.writes import source_of
from shinglefold.grouping import Verdict
from shinglefold.grouping.gate.protocol.pending_document import SimilarDocument
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.runtime.sans_io import run
from shinglefold.settings import Settings


def test_a_conflict_is_merged_again_and_alone(site):
    script = Script(site, 201, 409, 409, 200)
    body = lines(
        {"index": {"_id": "2"}}, {"title": "another"}, {"update": {"_id": "1"}}, {"doc": {"body": "text"}}
    )
    found = intercept(site, script, "/site/_bulk", body, filter_path="took")
    assert [next(iter(item.values()))["status"] for item in found.body["items"]] == [201, 200]
    assert [len(request.body.splitlines()) for request in script.sent] == [4, 2, 2]
    guards = [json.loads(request.body.splitlines()[-2])["update"]["if_seq_no"] for request in script.sent]
    assert guards == [1, 2, 3]
    assert all("filter_path" not in request.parameters for request in script.sent)
    last = json.loads(script.sent[-1].body.splitlines()[-1])["doc"]
    (expected,) = site.sign([{"title": "version 3", "body": "text"}])
    assert last == {"body": "text", "_dedup": expected["_dedup"]}


def test_a_conflict_with_the_callers_own_guard_is_the_callers(site):
    script = Script(site, 409)
    action = {"update": {"_id": "1", "if_seq_no": 7, "if_primary_term": 1}}
    found = intercept(site, script, "/site/_bulk", lines(action, {"doc": {"body": "text"}}))
    assert found.body["items"][0]["update"]["status"] == 409
    assert json.loads(script.sent[0].body.splitlines()[0]) == action


@pytest.mark.parametrize("in_bulk", [False, True])
def test_an_update_sends_what_the_pipeline_makes_of_it(site, in_bulk):
    steps = [{"lowercase": {"field": "body"}}, {"set": {"field": "state", "value": "new"}}]
    steps += site.recipe.pipeline["processors"]

    class Processed(Script):
        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                return {"site": with_note(site, groups=None, pipeline={"processors": steps})}
            return super().__call__(request)

    script, body = Processed(site, *[200] * in_bulk), [{"update": {"_id": "1"}}, {"doc": {"body": "TEXT"}}]
    intercept(site, script, "/site/_bulk" if in_bulk else "/site/_update/1", lines(*body[not in_bulk :]))
    sent = json.loads(script.sent[0].body.splitlines()[-1])["doc"]
    (expected,) = site.sign([{"title": "version 1", "body": "text"}])
    assert sent == {"body": "text", "state": "new", "_dedup": expected["_dedup"]}


def test_a_gate_decides_in_place_of_the_engine(site):
    asked = []

    class Gated(Script):
        gate, failing = "refuse", False

        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                return {"site": with_note(site, gate=self.gate)}
            if isinstance(request, Admit):
                asked.append(request)
                if self.failing:
                    raise EngineUnavailable("lost")
                like = SimilarDocument("old", 0.9, Guard(1, 1), similarity=0.95)
                ids = [one["_id"] for one in request.documents]
                return [Verdict("refused", ids[0], like=like, reason="it resembles 'old'")] + [
                    Verdict("accepted", id_) for id_ in ids[1:]
                ]
            if isinstance(request, Send) and request.request.path.endswith("_mget"):
                assert request.request.headers == {"Content-Type": "application/json"}
                asked.append(json.loads(request.request.body))
                return RestResponse(404, {"error": "no"})
            return super().__call__(request)

    headers = {"Content-Type": "application/x-ndjson"}
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())

    def bulk(answer, body, **parameters):
        return run(interceptor.steps(RestRequest("POST", "/site/_bulk", parameters, headers, body)), answer)

    script = Gated(site, 200)
    new = lines({"index": {"_id": "1"}}, {"title": "a"}, {"create": {"routing": "r"}}, {"title": "b"})
    found = bulk(script, new + lines({"delete": {"_id": "1"}})).body
    refused, stored, deleted = (next(iter(item.values())) for item in found["items"])
    assert (refused["status"], refused["error"]["like"]) == (
        409,
        {"_index": "site", "_id": "old", "resemblance": 0.9, "similarity": 0.95},
    )
    assert (stored["status"], stored["_seq_no"], deleted["status"], found["errors"]) == (201, -2, 200, True)
    admit, versions = asked
    assert [(one.get("_op_type"), one.get("_routing"), "_dedup" in one) for one in admit.documents] == [
        (None, None, True),
        ("create", "r", True),
    ]
    assert versions["docs"] == [{"_id": admit.documents[1]["_id"], "_source": False, "routing": "r"}]
    assert len(script.sent) == 1
    # What a gate can't keep is refused by name, and nothing is sent.
    for action, parameters, name in (
        ({"if_seq_no": 1, "if_primary_term": 1}, {}, "if_seq_no"),
        ({"pipeline": "p"}, {}, "pipeline"),
        ({}, {"pipeline": "p"}, "pipeline"),
        ({}, {"wait_for_active_shards": "2"}, "wait_for_active_shards"),
    ):
        with warnings.catch_warnings(action="ignore"):
            answer = bulk(script, lines({"index": action}, {"title": "a"}), **parameters)
        (item,) = answer.body["items"]
        assert (item["index"]["status"], f"[{name}]" in item["index"]["error"]["reason"]) == (400, True)
    assert len(script.sent) == 1
    # A gate that fails is told by item once something was stored, else by an error.
    script = Gated(site, 200)
    script.failing = True
    late = bulk(script, lines({"delete": {"_id": "1"}}) + new).body["items"]
    assert [next(iter(item.values()))["status"] for item in late] == [200, 503, 503]
    with pytest.raises(EngineUnavailable):
        bulk(script, new)
    script.gate, interceptor = "cap", Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    with pytest.raises(ConfigError, match="later version"):
        bulk(script, new)


AFTER_SCRIPTS = {
    "renewed": ([200], 1, ""),
    "renewed after conflicts": ([409, 409, 200], 3, ""),
    "changed by others all the time": ([409] * 5, 5, "others change it"),
    "refused": ([400], 1, "no room"),
    "not sent": (ConnectionError("lost"), 1, "lost"),
    "not read": (PermissionDenied("not yours"), 0, "not yours"),
    "deleted": ([404], 1, ""),
}


@pytest.mark.parametrize("name", AFTER_SCRIPTS)
@pytest.mark.parametrize("in_bulk", [False, True], ids=["single", "bulk"])
def test_fingerprints_are_renewed_after_scripts_or_the_update_succeeds_with_a_warning(site, name, in_bulk):
    statuses, tries, why = AFTER_SCRIPTS[name]
    script = {"script": {"source": "ctx._source.title = 'new'"}}
    sent = []

    def answer(request):
        if reads(request) and isinstance(statuses, PermissionDenied):
            raise statuses
        if not isinstance(request, Send):
            return Script.__call__(reader, request)
        asked = request.request
        if b"script" in asked.body:
            done = {"_id": "1", "result": "updated", "_seq_no": 5}
            items = {"took": 1, "items": [{"update": {**done, "status": 200}}]}
            return RestResponse(200, items if in_bulk else done)
        sent.append(asked)
        assert (asked.path, asked.parameters) == ("/_bulk", {"refresh": "true"})
        if isinstance(statuses, Exception):
            raise statuses
        told = {"_id": "1", "status": statuses[len(sent) - 1], "_seq_no": 6}
        if told["status"] >= 400:
            told = {**told, "error": {"type": "x", "reason": "no room"}}
        return RestResponse(200, {"items": [{"update": told}]})

    reader = Script(site)
    path, body = ("/site/_bulk", lines({"update": {"_id": "1"}}, script)) if in_bulk else (
        "/site/_update/1", json.dumps(script).encode(),
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = intercept(site, answer, path, body, refresh="true").body
    if in_bulk:
        assert found["errors"] is False
        found = found["items"][0]["update"]
    assert (found["result"], found["_seq_no"]) == (
        "updated",
        6 if statuses in ([200], [409, 409, 200]) else 5,
    )
    told = [str(one.message) for one in caught if "fingerprint of" in str(one.message)]
    assert [why in one for one in told] == ([True] if why else [])
    assert len(sent) == tries
    for number, one in enumerate(sent, 1):
        action, doc = map(json.loads, one.body.splitlines())
        (expected,) = site.sign([{"title": f"version {number}"}])
        assert (action["update"]["if_seq_no"], doc["doc"]["_dedup"]) == (number, expected["_dedup"])


def test_a_document_that_others_store_meanwhile_is_merged(site):
    class Late(Script):
        def __call__(self, request):
            found = super().__call__(request)
            return [None] if reads(request) and self.version == 1 else found

    script = Late(site, 200, 200)
    intercept(site, script, "/site/_bulk", lines({"update": {"_id": "1"}}, {"doc": {"body": "text"}}))
    sent = [json.loads(request.body.splitlines()[-1])["doc"] for request in script.sent]
    (expected,) = site.sign([{"title": "version 2", "body": "text"}])
    assert sent == [{"body": "text"}, {"body": "text", "_dedup": expected["_dedup"]}]


def test_actions_on_one_document_keep_their_order(site):
    script = Script(site, 200, 200, 200, 200)
    update = {"update": {"_id": "1"}}, {"doc": {"body": "text"}}
    body = lines(*update, {"delete": {"_id": "1"}}, {"index": {"_id": "1"}}, {"title": "new"}, *update)
    found = intercept(site, script, "/site/_bulk", body)
    assert [next(iter(item)) for item in found.body["items"]] == ["update", "delete", "index", "update"]
    # The document is read anew after each request that wrote it.
    assert [len(request.body.splitlines()) for request in script.sent] == [2, 3, 2]


@pytest.mark.parametrize("failure", [RestResponse(429, {"error": "busy"}), ConnectionError("lost")])
@pytest.mark.parametrize("by_conflict", [True, False])
def test_what_was_stored_is_told_when_a_later_request_fails(site, failure, by_conflict):
    """An error would make clients send the whole bulk again, and store its documents twice."""

    class Failing(Script):
        def __call__(self, request):
            if isinstance(request, Send) and self.sent:
                if isinstance(failure, Exception):
                    raise failure
                return failure
            return super().__call__(request)

    update = {"update": {"_id": "1"}}, {"doc": {"body": "text"}}
    first = lines({"index": {}}, {"title": "new"})
    body = first + lines(*update) if by_conflict else first + lines(*update, *update)
    script = Failing(site, 201, 409 if by_conflict else 200)
    found = intercept(site, script, "/site/_bulk", body)
    answered = [next(iter(item.values())) for item in found.body["items"]]
    assert found.status == 200
    assert found.body["errors"] is True
    assert answered[0]["status"] == 201
    assert answered[-1]["status"] in (429, 503)
    assert answered[-1]["error"]


def test_the_routing_of_a_bulk_holds_for_what_is_read(site):
    routings = []

    class Watched(Script):
        def __call__(self, request):
            if reads(request):
                routings.extend(request.arguments[3])
            return super().__call__(request)

    body = lines(
        *({"update": {"_id": "1"}}, {"doc": {"body": "text"}}),
        *({"update": {"_id": "2", "routing": "own"}}, {"doc": {"body": "text"}}),
    )
    intercept(site, Watched(site, 200, 200), "/site/_bulk", body, routing="all")
    assert routings == ["all", "own"]


def test_who_may_not_read_documents_updates_them_with_a_warning(site):
    class Denied(Script):
        def __call__(self, request):
            if reads(request):
                raise PermissionDenied("no")
            return super().__call__(request)

    update = lines({"update": {"_id": "1"}}, {"doc": {"body": "text"}})
    for path, body in (("/site/_bulk", update), ("/site/_update/1", update.split(b"\n")[1])):
        script = Denied(site, 200)
        with pytest.warns(UserWarning, match="may not read"):
            intercept(site, script, path, body)
        assert json.loads(script.sent[0].body.splitlines()[-1]) == {"doc": {"body": "text"}}


def test_a_write_whose_recipe_cannot_be_read_passes_with_a_warning(site):
    def denied(request):
        raise PermissionDenied("no")

    for path, body in (("/site/_doc", b"{}"), ("/site/_bulk", lines({"index": {}}, {}))):
        with pytest.warns(UserWarning, match="may not be read"):
            assert intercept(site, denied, path, body) is None
    with pytest.warns(UserWarning, match="can't be read"):
        assert intercept(site, denied, "/site/_bulk", b"nonsense") is None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", [b'{"title": "a", "title": "b"}', b'{"title": "a", "n": 1.0e2}'])
def test_a_signed_document_keeps_its_bytes(site, text):
    for path, body in (("/site/_doc/1", text), ("/site/_bulk", b'{"index": {"_id": "1"}}\n' + text + b"\n")):
        sent = []
        answer = Script(site)

        def noted(request, answer=answer, sent=sent):
            if isinstance(request, Send):
                sent.append(request.request.body)
                return RestResponse(200, {"items": [{"index": {"status": 201}}]})
            return answer(request)

        intercept(site, noted, path, body)
        assert text[:-1] + b',"_dedup":{' in sent[0]


LEAVING = {
    "while a script runs": (lambda request: isinstance(request, Send), KeyboardInterrupt()),
    "while the document is read": (reads, KeyboardInterrupt()),
    "steps are closed": (lambda request: isinstance(request, Send), GeneratorExit()),
    "no answer": (lambda request: isinstance(request, Send), EngineUnavailable("lost")),
}


@pytest.mark.parametrize("in_bulk", [False, True], ids=["single", "bulk"])
@pytest.mark.parametrize("name", LEAVING)
def test_a_script_whose_caller_gets_no_answer_is_logged(site, caplog, name, in_bulk):
    last, error = LEAVING[name]

    def leaves(request):
        if last(request):
            raise error
        if isinstance(request, Send):
            done = {"_id": "7", "result": "updated", "status": 200}
            stored = {"_id": "6", "result": "created", "status": 201}
            items = {"items": [{"index": stored}, {"update": done}]}
            return RestResponse(200, items if in_bulk else done)
        return Script(site)(request)

    script = {"script": {"source": "x"}}
    path, body = ("/site/_update/7", lines(script)) if not in_bulk else (
        "/site/_bulk", lines({"index": {"_id": "6"}}, {"title": "a"}, {"update": {"_id": "7"}}, script),
    )  # fmt: skip
    with pytest.raises(type(error)):
        intercept(site, leaves, path, body)
    told = [one for one in caplog.messages if "the fingerprint of" in one]
    assert len(told) == 1
    assert told[0].startswith("the fingerprint of '7' in 'site' is that of its text before: ")


def test_scripts_of_a_bulk_are_logged_if_the_caller_leaves_between_its_requests(site, caplog):
    sent = []

    def leaves(request):
        if isinstance(request, Send):
            sent.append(request.request)
            if len(sent) == 2:
                raise KeyboardInterrupt
            return RestResponse(
                200, {"items": [{"update": {"_id": "7", "result": "updated", "status": 200}}]}
            )
        return Script(site)(request)

    # The second request merges what the first one wrote.
    body = lines(
        *({"update": {"_id": "7"}}, {"script": {"source": "x"}}),
        *({"update": {"_id": "7"}}, {"doc": {"title": "new"}}),
    )
    with pytest.raises(KeyboardInterrupt):
        intercept(site, leaves, "/site/_bulk", body)
    told = [one for one in caplog.messages if "the fingerprint of" in one]
    assert [one.partition(" in ")[0] for one in told] == ["the fingerprint of '7'"]


#: A document as it came, and as a pipeline leaves it: whether its bytes may be kept.
SOURCES = {
    "nothing changed": ({"a": 1, "b": [1.5, {"c": None}]}, {"a": 1, "b": [1.5, {"c": None}]}, True),
    "an integer becomes a fraction": ({"a": 1}, {"a": 1.0}, False),
    "a fraction becomes an integer": ({"a": 1.0}, {"a": 1}, False),
    "true becomes 1": ({"a": True}, {"a": 1}, False),
    "0 becomes false": ({"a": 0}, {"a": False}, False),
    "a negative zero": ({"a": -0.0}, {"a": 0.0}, False),
    "in an object": ({"a": {"b": 1}}, {"a": {"b": True}}, False),
    "in a list": ({"a": [0, 1]}, {"a": [0, 1.0]}, False),
    "deep": ({"a": [{"b": [{"c": 1}]}]}, {"a": [{"b": [{"c": 1.0}]}]}, False),
    "a text becomes a number": ({"a": "1"}, {"a": 1}, False),
    "null becomes false": ({"a": None}, {"a": False}, False),
    "a field is taken out": ({"a": 1, "b": 2}, {"a": 1}, False),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_document_keeps_its_bytes_only_where_each_value_is_the_same(name):
    given, made, kept = SOURCES[name]
    text = json.dumps(given, indent=1).encode()
    document = {**json.loads(json.dumps(made)), "_dedup": {"digest": "x"}, "_id": "1"}
    found = source_of(Outcome("done", document), text, given)
    assert (found == text[:-1] + b',"_dedup":{"digest":"x"}}') is kept
    expected = {name: value for name, value in document.items() if name != "_id"}
    assert json.dumps(json.loads(found)) == json.dumps(expected)


REFRESHED = {
    "all": (RestResponse(200, {"_shards": {"total": 2, "successful": 2, "failed": 0}}), ""),
    "a copy that is not there": (
        RestResponse(200, {"_shards": {"total": 2, "successful": 1, "failed": 0}}),
        "",
    ),
    "some failed": (RestResponse(200, {"_shards": {"total": 2, "successful": 1, "failed": 1}}), "1 of 2"),
    "refused": (RestResponse(403, {"error": "no"}), "status 403"),
    "no answer": (EngineUnavailable("lost"), "lost"),
    "another error": (ConnectionError("reset"), "reset"),
}


@pytest.mark.parametrize("in_bulk", [False, True], ids=["single", "bulk"])
@pytest.mark.parametrize("name", REFRESHED)
def test_a_refresh_that_fails_after_a_gate_is_told_and_the_document_is_stored(site, name, in_bulk):
    answer, why = REFRESHED[name]

    def gated(request):
        if isinstance(request, Call) and request.method == "all_mappings":
            return {"site": with_note(site, gate="refuse")}
        if isinstance(request, Admit):
            return [Verdict("accepted", one["_id"]) for one in request.documents]
        if isinstance(request, Send) and request.request.path.endswith("_mget"):
            raise ConnectionError("versions are lost")
        if isinstance(request, Send):
            assert request.request.path == "/site/_refresh"
            if isinstance(answer, Exception):
                raise answer
            return answer
        return Script(site)(request)

    path, body = ("/site/_bulk", lines({"index": {"_id": "1"}}, {"title": "a"})) if in_bulk else (
        "/site/_doc/1", b'{"title": "a"}',
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = intercept(site, gated, path, body, refresh="true")
    item = found.body["items"][0]["index"] if in_bulk else {**found.body, "status": found.status}
    assert (item["status"], item["result"], item["_seq_no"]) == (201, "created", -2)
    told = [str(one.message) for one in caught]
    assert [("searches may not show them yet" in one, why in one) for one in told] == [(True, True)] * bool(
        why
    )


@pytest.mark.parametrize("levels", [600, 5000])
@pytest.mark.parametrize("path", ["/site/_doc", "/site/_bulk", "/site/_search"])
def test_json_that_is_nested_too_deeply_is_refused_in_words(site, path, levels):
    nested = b'{"title":"a","ext":{"dedup":{}},"a":' + b"[" * levels + b"]" * levels + b"}\n"
    body = b'{"index":{"_index":"site"}}\n' + nested if path.endswith("bulk") else nested
    with pytest.raises(
        InputError if levels > 600 or "search" not in path else ConfigError, match=r"levels|deeply"
    ):
        intercept(site, Script(site, 201), path, body)
