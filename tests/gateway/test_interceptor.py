"""The interceptor without a network: which requests concern it, what it asks for, and what it answers."""

import json
import warnings
from contextlib import closing

import pytest

import shinglefold
from shinglefold.api.index_options import IndexOptions
from shinglefold.contracts.engine import Guard, VersionedDocument
from shinglefold.errors import ConfigError, EngineUnavailable, PermissionDenied
from shinglefold.examples import temporary_index
from shinglefold.gateway import Interceptor
from shinglefold.gateway.gates import Admit
from shinglefold.gateway.rest import (
    Read,
    RestRequest,
    RestResponse,
    Send,
    Tiebreaker,
    Work,
    operation_of,
)
from shinglefold.grouping import Verdict
from shinglefold.grouping.gate.protocol.member import SimilarDocument
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.runtime.sans_io import run
from shinglefold.settings import Settings

OPERATIONS = {
    ("GET", "/news/_search"): ("search", "news", None),
    ("POST", "/_search"): ("search", None, None),
    ("POST", "/_all/_search"): ("search", "_all", None),
    ("POST", "/a,b*/_msearch"): ("msearch", "a,b*", None),
    ("POST", "/%3Cnews-%7Bnow%2Fd%7D%3E/_doc"): ("index", "<news-{now/d}>", None),
    ("PUT", "/news/_doc/a%2Fb"): ("index", "news", "a/b"),
    ("PUT", "/news/_create/_search"): ("create", "news", "_search"),
    ("POST", "/news/_update/1"): ("update", "news", "1"),
    ("POST", "/_bulk"): ("bulk", None, None),
    ("PUT", "/news/_bulk"): ("bulk", "news", None),
    ("PUT", "/_bulk/stream"): ("bulk_stream", None, None),
    ("POST", "/_reindex"): ("reindex", None, None),
    ("POST", "/news/_update_by_query"): ("update_by_query", "news", None),
    ("GET", "/news/_doc/1"): None,
    ("DELETE", "/news/_doc/1"): None,
    ("HEAD", "/news"): None,
    ("GET", "/"): None,
    ("POST", "/_search/scroll"): None,
    ("PUT", "/news"): None,
    ("GET", "/_cat/indices"): None,
    ("POST", "/news/_search/template"): ("search_template", "news", None),
    ("GET", "/_msearch/template"): ("msearch_template", None, None),
    ("POST", "/_render/template"): None,
    ("POST", "/_async_search"): None,
    ("POST", "/news/_reindex"): None,
}


@pytest.mark.parametrize("given", OPERATIONS)
def test_operations(given):
    assert operation_of(*given) == OPERATIONS[given]


@pytest.fixture(scope="module")
def site():
    folder = temporary_index("site")
    with closing(shinglefold.open(folder, "site")) as opened:
        yield opened


def with_note(site, **note):
    mappings = site.engine.mappings("site")
    return {**mappings, "_meta": {"shinglefold": mappings["_meta"]["shinglefold"] | note}}


class Script:
    """An engine that knows one index, stores one document, and answers bulks as the test says."""

    def __init__(self, site, *statuses):
        self.site, self.statuses, self.sent, self.version = site, list(statuses), [], 0

    def __call__(self, request):
        if isinstance(request, Work):
            return request.function()
        if isinstance(request, Tiebreaker):
            return self.site.engine.tiebreaker()
        if isinstance(request, Read):
            self.version += 1
            return [
                VersionedDocument(id_, {"title": f"version {self.version}"}, Guard(self.version, 1))
                for id_ in request.ids
            ]
        if isinstance(request, Call):
            return request.on(self.site.engine)
        assert isinstance(request, Send)
        self.sent.append(request.request)
        lines = [json.loads(line) for line in request.request.body.splitlines()]
        verbs = [verb for line in lines for verb in line if verb in ("index", "update", "delete", "create")]
        items = [{verb: {"_id": "1", "status": self.statuses.pop(0)}} for verb in verbs]
        return RestResponse(200, {"took": 1, "errors": False, "items": items})


def intercept(site, answer, path, body, *, always=False, **parameters):
    made = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings(), always=always)
    steps = made.steps(RestRequest("POST", path, parameters, {}, body))
    return None if steps is None else run(steps, answer)


def lines(*values):
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_search_is_that_of_an_open_index(site):
    body = {"query": {"match": {"title": "мост"}}, "size": 3}
    expected = site.search(body)
    answer = Script(site)
    for given, always in ((dict(body, ext={"dedup": {}}), False), (json.dumps(body), True)):
        found = intercept(site, answer, "/site/_search", given, always=always)
        assert {**found.body, "took": 0} == {**expected, "took": 0}
    for passes in (body, dict(body, ext={"other": 1}), b"{", b"[]", None):
        assert intercept(site, answer, "/site/_search", passes) is None
    assert not answer.sent


FOLDING = {
    "all say so": ({"a": True, "b": True}, True),
    "one has no recipe": ({"a": True, "b": None}, True),
    "one says no": ({"a": True, "b": False}, False),
    "one says nothing": ({"a": True, "b": ""}, False),
    "none has a recipe": ({"a": None}, False),
}


@pytest.mark.parametrize("name", FOLDING)
def test_indices_say_whether_searches_are_folded_unasked(site, name):
    noted, folds = FOLDING[name]

    class Noted(Script):
        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                return {
                    index: {} if fold is None else with_note(site, **({} if fold == "" else {"fold": fold}))
                    for index, fold in noted.items()
                }
            return super().__call__(request)

    answer = Noted(site)
    found = intercept(site, answer, "/site/_search", {"query": {"match": {"title": "мост"}}})
    assert found is None if not folds else "dedup" in found.body
    for body in ({"collapse": {"field": "host"}}, {"pit": {"id": "x"}}):
        assert intercept(site, answer, "/site/_search" if "collapse" in body else "/_search", body) is None
    for parameters in ({"scroll": "1m"}, {"filter_path": "hits"}):
        assert intercept(site, answer, "/site/_search", {}, **parameters) is None
    several = lines({"index": "site"}, {"size": 2}, {"index": "site"}, {"ext": {"dedup": False}})

    def last(request):
        if isinstance(request, Send):
            sent = len(request.request.body.splitlines()) // 2
            return RestResponse(200, {"responses": [{"took": 1, "hits": {}}] * sent})
        return answer(request)

    found = intercept(site, last, "/_msearch", several)
    assert ["dedup" in one for one in found.body["responses"]] == [folds, False]


def test_searches_of_who_may_not_read_mappings_pass_with_one_question(site):
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    asked = []

    def denied(request):
        asked.append(request)
        raise PermissionDenied("no")

    for who in ("one", "one", "other"):
        headers = {"Authorization": who, "X-Opaque-Id": str(len(asked))}
        assert run(interceptor.steps(RestRequest("POST", "/site/_search", {}, headers, {})), denied) is None
    assert len(asked) == 2


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
        if isinstance(request, Read) and isinstance(statuses, PermissionDenied):
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


def test_what_is_not_json_is_left_to_the_engine(site):
    script = Script(site, 400, 201)
    broken, whole = b'{"index": {"_id": "1"}}\n{"title":\n', lines({"index": {"_id": "2"}}, {"title": "a"})

    def answer(request):
        if isinstance(request, Send):
            sent = request.request.body.splitlines()
            assert sent[:2] == broken.splitlines()
            assert "_dedup" in json.loads(sent[3])
            return RestResponse(200, {"items": script.statuses})
        return script(request)

    assert intercept(site, answer, "/site/_bulk", broken + whole).body["items"] == [400, 201]


def test_a_document_that_others_store_meanwhile_is_merged(site):
    class Late(Script):
        def __call__(self, request):
            found = super().__call__(request)
            return [None] if isinstance(request, Read) and self.version == 1 else found

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
            if isinstance(request, Read):
                routings.extend(request.routings)
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
            if isinstance(request, Read):
                raise PermissionDenied("no")
            return super().__call__(request)

    update = lines({"update": {"_id": "1"}}, {"doc": {"body": "text"}})
    for path, body in (("/site/_bulk", update), ("/site/_update/1", update.split(b"\n")[1])):
        script = Denied(site, 200)
        with pytest.warns(UserWarning, match="may not read"):
            intercept(site, script, path, body)
        assert json.loads(script.sent[0].body.splitlines()[-1]) == {"doc": {"body": "text"}}


def test_parameters_in_a_url_of_opensearch_are_read():
    from shinglefold.gateway.dialects import OpenSearchDialect

    call = {
        "method": "POST",
        "url": "/news/_update/1?refresh=true&routing=a%20b",
        "params": {"pretty": b"true"},
    }
    request, _ = OpenSearchDialect().read(None, (), call, parsed=False)
    assert (request.path, request.parameters) == (
        "/news/_update/1",
        {"refresh": "true", "routing": "a b", "pretty": "true"},
    )


def test_each_search_of_several_has_the_routing_of_all(site):
    asked = []

    def answer(request):
        if isinstance(request, Tiebreaker):
            return site.engine.tiebreaker()
        if isinstance(request, Call) and "routing" in repr(request):
            asked.append(request)
            raise EngineUnavailable("seen")
        if isinstance(request, Send):
            return RestResponse(200, {"responses": [{"took": 1, "error": "seen"}]})
        return request.on(site.engine)

    header, body = {"indices": "site"}, {"query": {"match_all": {}}, "ext": {"dedup": {}}}
    intercept(site, answer, "/_msearch", lines(header, body), routing="u1")
    assert asked


def test_one_callers_missing_right_is_not_anothers(site):
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())

    def denied(request):
        raise PermissionDenied("no")

    def write(answer):
        steps = interceptor.steps(RestRequest("POST", "/site/_doc/1", {}, {}, b'{"title": "a"}'))
        return run(steps, answer)

    with pytest.warns(UserWarning, match="may not be read"):
        assert write(denied) is None

    sent = []

    def allowed(request):
        if isinstance(request, Send):
            sent.append(request.request)
            return RestResponse(201, {})
        return request.function() if isinstance(request, Work) else request.on(site.engine)

    write(allowed)
    assert "_dedup" in json.loads(sent[0].body)


def test_a_write_whose_recipe_cannot_be_read_passes_with_a_warning(site):
    def denied(request):
        raise PermissionDenied("no")

    for path, body in (("/site/_doc", b"{}"), ("/site/_bulk", lines({"index": {}}, {}))):
        with pytest.warns(UserWarning, match="may not be read"):
            assert intercept(site, denied, path, body) is None
    with pytest.warns(UserWarning, match="can't be read"):
        assert intercept(site, denied, "/site/_bulk", b"nonsense") is None


def test_what_is_asked_in_place_of_a_request_has_its_credentials_and_timeouts():
    from shinglefold.gateway.dialects import Caller, ElasticsearchDialect, OpenSearchDialect

    headers = {
        "Authorization": "Bearer of-caller",
        "Content-Type": "application/x-ndjson",
        "x-opaque-id": "7",
    }
    given = {"headers": {"authorization": "of-client", "content-type": "application/json"}, "body": b""}
    for dialect, how in ((ElasticsearchDialect(), "request_timeout"), (OpenSearchDialect(), "timeout")):
        made = dialect.as_caller(dict(given), Caller(headers, {how: 3}))
        assert made[how] == 3
        sent = [(name.lower(), value) for name, value in made["headers"].items()]
        assert sorted(sent) == [
            ("authorization", "Bearer of-caller"),
            ("content-type", "application/json"),
            ("x-opaque-id", "7"),
        ]
