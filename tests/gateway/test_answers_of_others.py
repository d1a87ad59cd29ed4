"""Answers of 200 that are not the engine's, such as those of a proxy, to what a folded client sends."""

import asyncio
import json
from http.server import ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from support.clients import a_client, lines
from support.drop_in import OTHER, TEXT
from support.interceptor import with_note
from support.serving import Quiet, serving

import shinglefold
from shinglefold.errors import EngineError, EngineUnavailable

WAYS = [(product, awaited) for product in ("opensearch", "elasticsearch") for awaited in (False, True)]
HIT = {"_index": "pages", "_id": "1", "_score": 1.0, "_source": {"title": TEXT}}
FOUND = {
    "took": 1,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "failed": 0},
    "hits": {"total": {"value": 1, "relation": "eq"}, "max_score": 1.0, "hits": [HIT]},
}
STORED = {"_index": "pages", "_id": "1", "_version": 2, "_seq_no": 1, "_primary_term": 1, "status": 200}


def as_engine(path, body, mappings):
    """Return what an engine answers."""
    end = path.rpartition("/")[2]
    if path == "/":
        return {"version": {"number": "3.8.0", "distribution": "opensearch"}}
    if "_settings" in path:
        return {"pages": {"settings": {"index.uuid": "u"}}}
    if end == "_mapping":
        name = path.split("/")[1]
        return {name: {"mappings": mappings.get(name, {})}}
    if end == "_bulk":
        verbs = [verb for line in body for verb in line if verb in ("index", "create", "update", "delete")]
        return {
            "took": 1,
            "errors": False,
            "items": [{verb: {**STORED, "result": "updated"}} for verb in verbs],
        }
    if end == "_mget":
        docs = [{**STORED, "_id": one["_id"], "found": True} for one in body[0]["docs"]]
        return {"docs": [{**one, "_source": {"title": OTHER}} for one in docs]}
    if end == "_msearch":
        return {"took": 1, "responses": [{**FOUND, "status": 200}] * (len(body) // 2)}
    if end == "_search":
        return FOUND
    return {**STORED, "result": "updated"}


@pytest.fixture(scope="module")
def upstream(site):
    """A server that answers as an engine, but for requests whose path ends as ``odd`` says."""
    mappings = {"pages": with_note(site, groups=None)}
    state = SimpleNamespace(odd=("", 0), answer=b"", seen=0)

    class Answers(Quiet):
        def do_GET(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            body = [json.loads(line) for line in raw.splitlines() if line.strip()]
            answer = json.dumps(as_engine(path, body, mappings)).encode()
            kind = "application/json"
            if path.endswith(state.odd[0]):
                state.seen += 1
                if state.seen > state.odd[1]:
                    answer = state.answer
                    kind = kind if answer[:1] in (b"{", b"[") else "text/plain"
            self.send_response(200)
            for name, value in (("X-Elastic-Product", "Elasticsearch"), ("Content-Type", kind)):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_PUT = do_POST = do_GET  # noqa: N815 - the library's names

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Answers)) as url:
        state.url = url
        yield state


def ask(upstream, way, odd, answer, request):
    """Send a request by a folded client; the answers to a path are others than an engine's."""
    upstream.odd, upstream.answer, upstream.seen = odd, answer, 0

    async def awaited():
        client = shinglefold.fold(a_client(way[0], upstream.url, awaited=True))
        try:
            return await request(way[0], client)
        finally:
            await client.close()

    if way[1]:
        return asyncio.run(awaited())
    return request(way[0], shinglefold.fold(a_client(way[0], upstream.url, awaited=False)))


def bulk(*given, **more):
    return lambda product, client: client.bulk(**lines(product, "operations", list(given)), **more)


def searches(*given):
    return lambda product, client: client.msearch(**lines(product, "searches", list(given)))


INDEX = ({"index": {"_index": "pages", "_id": "1"}}, {"title": TEXT})
UPDATE = ({"update": {"_index": "pages", "_id": "2"}}, {"doc": {"title": TEXT}})
FOLDED = {"query": {"match_all": {}}, "ext": {"dedup": {}}}
REQUESTS = {
    "a bulk": ("_bulk", bulk(*INDEX)),
    "a bulk with an update": ("_bulk", bulk(*INDEX, *UPDATE)),
    "the document to update": ("_mget", bulk(*UPDATE)),
    "a search": ("_search", lambda _, client: client.search(index="pages", body=FOLDED)),
    "several folded searches": ("_msearch", searches({"index": "pages"}, FOLDED, {"index": "pages"}, FOLDED)),
    "a folded search among others": ("_msearch", searches({"index": "pages"}, FOLDED, {"index": "bare"}, {})),
}
ODD = [
    b'{"message": "Log in"}',
    b"[]",
    b"<html>Log in</html>",
    b'{"items": [], "docs": [], "responses": [], "hits": {}}',
    b'{"items": null, "docs": 7, "responses": {}, "hits": []}',
    b'{"items": ["a", "b"], "docs": ["a"], "responses": ["a", "b"], "hits": {"hits": ["a"]}}',
    b'{"items": [{}, {}], "docs": [{"found": true}], "responses": [7, {}], "hits": {"hits": 7}}',
    b'{"items": [{"index": 7}], "docs": [{"found": true, "_source": 7}], "hits": {"hits": [{}]}}',
]


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: answer.decode()[:40])
@pytest.mark.parametrize("name", REQUESTS)
def test_what_the_engine_would_not_answer_is_told(upstream, name, answer):
    end, request = REQUESTS[name]
    for way in WAYS:
        with pytest.raises(EngineUnavailable, match=r"answer.*Try again, and check the address") as told:
            ask(upstream, way, (end, 0), answer, request)
        shown = str(told.value)
        assert "Log in" in shown or b"Log in" not in answer, shown


#: Parts of a hit, with values of types that engines do not return.
WRONG = [
    *({"_index": value} for value in (5, [], {})),
    *({"_id": value} for value in (5, True, ["1"], {})),
    *({"_routing": value} for value in (5, [], {})),
    *({"_score": value} for value in ("high", [], {})),
    *({"_source": value} for value in (7, "text", [{}], True)),
    *({"fields": value} for value in (7, "text", [{}])),
    *({"sort": value} for value in ("x", 7, {"x": 1})),
    *({"inner_hits": value} for value in (7, "text", [{}], {"a": 7}, {"a": {"hits": 7}})),
    *({"inner_hits": {"a": {"hits": value}}} for value in ({}, {"hits": {}}, {"hits": ["b"]})),
    {"inner_hits": {"a": {"hits": {"hits": [{**HIT, "_source": 7}]}}}},
    {"inner_hits": {"a": {"hits": {"total": {"value": "x"}, "hits": []}}}},
]


def found(hits, **more):
    return json.dumps({**FOUND, "hits": {**FOUND["hits"], "hits": hits, **more}}).encode()


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_part_of_a_hit_of_another_type_is_told(upstream, wrong):
    """The last of several hits has it: all are checked, and the message quotes it."""
    answer = found([HIT, {"_index": "pages", "_id": "2"}, {**HIT, **wrong}])
    several = b'{"responses": [' + answer + b"," + answer + b"]}"
    (name,) = wrong
    expected = r"answer.*got .*Try again, and check the address"
    if name != "inner_hits":
        expected = rf"answer.*got {name}: .* in .*Try again, and check the address"
    for way in WAYS:
        for end, request, sent in (("_search", "a search", answer), ("_msearch", "several", several)):
            asked = next(asked for given, (_, asked) in REQUESTS.items() if given.startswith(request))
            with pytest.raises(EngineUnavailable, match=expected):
                ask(upstream, way, (end, 0), sent, asked)


@pytest.mark.parametrize("total", ["many", [], {}, {"value": None}, {"value": "9"}], ids=str)
def test_a_total_that_is_no_number_is_told(upstream, total):
    for way in WAYS:
        with pytest.raises(EngineUnavailable, match=r"answer.*Try again, and check the address"):
            ask(upstream, way, ("_search", 0), found([HIT], total=total), REQUESTS["a search"][1])


@pytest.mark.parametrize(
    "fields", [{"title": 7}, {"_dedup.digest": 7}, {"_dedup.signature": {"a": 1}}], ids=str
)
def test_doc_values_of_any_type_are_read(upstream, fields):
    """They are what the document holds, of whatever type."""
    hits = [{**HIT, "fields": fields, "sort": [1.0, 1]}, {**HIT, "_id": "2", "sort": [1.0, 2]}]
    for way in WAYS:
        page = ask(upstream, way, ("_search", 0), found(hits), REQUESTS["a search"][1])
        assert [hit["_id"] for hit in page["hits"]["hits"]] == ["1", "2"]


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: answer.decode()[:40])
def test_later_actions_of_a_bulk_that_are_not_answered_have_failed(upstream, answer):
    """Else a client would send the first ones again, or count the others as stored."""
    for way in WAYS:
        request = bulk(*INDEX, *UPDATE, UPDATE[0], {"doc": {"title": OTHER}})
        found = ask(upstream, way, ("_bulk", 1), answer, request)
        first, second, third = (next(iter(one.values())) for one in found["items"])
        assert (found["errors"], first["status"], second["status"], third["status"]) == (True, 200, 200, 503)
        assert "check the address" in third["error"]["reason"]


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: answer.decode()[:40])
def test_a_fingerprint_that_cannot_be_renewed_is_told(upstream, answer):
    """The script has run: an error would hide it."""
    for way in WAYS:
        with pytest.warns(UserWarning, match="of '2' in 'pages' is that of its text before: .*the address"):
            ask(
                upstream,
                way,
                ("_mget", 0) if answer == ODD[0] else ("_bulk", 0),
                answer,
                lambda _, client: client.update(index="pages", id="2", body={"script": "x"}),
            )


def test_an_answer_that_a_client_filters_is_returned(upstream):
    for way in WAYS:
        found = ask(
            upstream,
            way,
            ("_bulk", 0),
            b'{"errors": false}',
            lambda product, client: client.bulk(
                **lines(product, "operations", list(INDEX)), filter_path="errors"
            ),
        )
        assert dict(found) == {"errors": False}


def test_an_endless_search_ends(upstream):
    """Hits without ids were read again and again."""
    answer = json.dumps({**FOUND, "hits": {**FOUND["hits"], "hits": [{"_index": "pages"}]}}).encode()
    for way in WAYS:
        with pytest.raises(EngineError, match="check the address"):
            ask(upstream, way, *(("_search", 0), answer), REQUESTS["a search"][1])
