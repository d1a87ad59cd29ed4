"""Steps of the gateway whose caller leaves, and searches with an ``ext`` that is no object."""

import asyncio
import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("aiohttp")

from support.interceptor import Script, intercept

from shinglefold.errors import (
    AuthenticationFailed,
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexExists,
    IndexMissing,
    IndexReadOnly,
    InputError,
    MissingExtra,
    OutputError,
    PermissionDenied,
    PitExpired,
    ProcessorError,
    RecipeMismatch,
    Refused,
    SchemeMismatch,
    ShinglefoldError,
    UnknownLanguage,
    UnsupportedQuery,
    WindowTooLarge,
)
from shinglefold.gateway.http.caller_engine import _product
from shinglefold.gateway.http.interception import SEARCHES, Intercepted, Interception, _EngineAccess
from shinglefold.gateway.http.messages import HttpCaller, Reply, encode, send_answer
from shinglefold.gateway.http.metrics import Metrics
from shinglefold.gateway.http.upstream import _read
from shinglefold.gateway.rest import TAKES_TIME, Operation, RestRequest, RestResponse, status_of
from shinglefold.gateway.search_answers import with_folding


def _run(steps, perform, threads, body=b"{}", timed=None):
    """Run steps of a search, whose requests a function answers."""
    timed = [] if timed is None else timed
    metrics = SimpleNamespace(stage=lambda name: nullcontext(timed.append(name)))
    gateway = SimpleNamespace(_perform=perform, _searching=threads, _metrics=metrics)
    request = RestRequest("GET", "/_search", body=body)
    given = Intercepted(Operation("search"), request, "", HttpCaller({}))
    return Interception._run(gateway, steps, given)


#: What steps read before they go on: the body, what they yield, and the answer; and where they go on.
PLACES = [
    (b"{}", "read", b"{}", "loop"),
    (None, "read", b"{}", "loop"),
    (b"{}", "read", b" " * 300_000, "thread"),
    (b" " * 20_000, "read", b"{}", "thread"),
    (b"{}", TAKES_TIME, b"{}", "thread"),
]


@pytest.mark.parametrize(("body", "asked", "answer", "place"), PLACES)
def test_only_short_steps_run_in_the_loop(body, asked, answer, place):
    went_on, timed = [], []

    def steps():
        for request in (asked, "read"):
            yield request
            went_on.append("loop" if threading.current_thread() is threading.main_thread() else "thread")
        return "answered"

    async def perform(_request, given):
        given.caller.replies.append(Reply(200, [], answer, {}))

    with ThreadPoolExecutor(1) as threads:
        assert asyncio.run(_run(steps(), perform, threads, body, timed)) == "answered"
    assert went_on == [place] * 2
    assert timed == ["fold"] * 3


#: Options of a page, and whether it may compare texts.
TEXTS = [
    ({}, False),
    ({"min_resemblance": 0.5, "members": 3}, False),
    ({"members": {"size": 3}}, False),
    ({"members": {"size": 3, "from": "index"}}, True),
    ({"explain": {"passages": True}}, True),
    ({"verify": "text"}, True),
]


@pytest.mark.long(every=6)
@pytest.mark.parametrize(("options", "texts"), TEXTS)
def test_pages_that_compare_texts_say_that_they_take_their_time(site, options, texts):
    yielded = []

    def answer(request):
        yielded.append(request)
        return Script(site)(request)

    body = json.dumps({"query": {"match_all": {}}, "ext": {"dedup": options}}).encode()
    for path, sent in (
        ("/site/_search", body),
        ("/site/_msearch", b"{}\n" + body + b"\n{}\n" + body + b"\n"),
    ):
        yielded.clear()
        intercept(site, answer, path, sent)
        assert (TAKES_TIME in yielded) is texts


@pytest.mark.parametrize("times", [1, 2])
def test_steps_close_what_they_opened_if_the_caller_leaves_while_they_run_in_a_thread(times):
    """Nothing closes those that still run when the server ends, too."""
    entered, release, asked = threading.Event(), threading.Event(), []

    def steps():
        try:
            yield TAKES_TIME
            yield "open"
            entered.set()
            release.wait(10)
            yield "never sent"
        except asyncio.CancelledError:
            yield "close"
            raise

    async def perform(request, _given):
        asked.append(request)

    async def leave():
        with ThreadPoolExecutor(1) as threads:
            task = asyncio.ensure_future(_run(steps(), perform, threads))
            await asyncio.to_thread(entered.wait, 10)
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
            if times == 1:
                release.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()

    asyncio.run(leave())

    assert asked == ["open", "close"][: 3 - times]


def _answered(operation, error, *replies, request=None, answer=None, status=200):
    """What the gateway answers to a request whose steps raise an error."""
    sent = []

    async def send(asked, _given):
        sent.append(asked)
        body = {"took": 1, "hits": {"hits": []}} if answer is None else answer
        return RestResponse(status, body, Reply(status, [], b"{}", body))

    gateway = SimpleNamespace(
        _send=send, _metrics=SimpleNamespace(count_failure=lambda _: None, count=lambda *_: None)
    )
    for name in ("_count_failure", "_answer_unfolded"):
        setattr(gateway, name, partial(getattr(Interception, name), gateway))
    caller = HttpCaller({}, list(replies))
    asked = request or RestRequest("POST", "/site/_search", body=b"{}")
    given = Intercepted(Operation(operation, "site"), asked, "", caller)
    made = asyncio.run(Interception._answer_to_error(gateway, error, given))
    return made, sent


#: The status of an error without an answer of the engine: of writes, and of searches; None is the engine's
#: own page. 503 makes clients send the request again.
STATUSES = {
    ConfigError("x"): (400, 400),
    UnknownLanguage("x"): (400, None),
    MissingExtra("de", "German"): (400, None),
    SchemeMismatch("a", "b", "index x", "reindex"): (400, None),
    RecipeMismatch("field", "a", "b", "index x", "reindex"): (400, None),
    InputError("x"): (400, None),
    OutputError("x"): (503, None),
    ProcessorError("x"): (400, None),
    Refused("x", "1"): (409, None),
    EngineError("x"): (503, None),
    IndexMissing("x"): (404, None),
    IndexExists("x"): (400, None),
    IndexReadOnly("x"): (403, None),
    UnsupportedQuery("x"): (400, None),
    WindowTooLarge("x"): (400, None),
    PitExpired("x"): (404, None),
    AuthenticationFailed("x"): (401, None),
    PermissionDenied("x"): (403, None),
    EngineUnavailable("x"): (503, 503),
    ShinglefoldError("x"): (503, None),
    KeyError("a fault of ours"): (500, None),
}  # fmt: skip


def test_every_error_has_a_status():
    def below(kind):
        return {kind, *(one for sub in kind.__subclasses__() for one in below(sub))}

    ours = {kind for kind in below(ShinglefoldError) if kind.__module__ == "shinglefold.errors"}
    assert ours <= {type(error) for error in STATUSES}


@pytest.mark.parametrize("error", STATUSES, ids=lambda error: type(error).__name__)
def test_an_error_that_callers_have_to_mend_does_not_say_try_again(error):
    write, search = STATUSES[error]
    for operation in ("index", "create", "update", "bulk", "reindex", "update_by_query"):
        answer, sent = _answered(operation, error)
        assert (answer.status, answer.body["status"], sent) == (write, write, [])
    for operation in SEARCHES:
        answer, sent = _answered(operation, error)
        assert (answer.status, len(sent)) == ((200, 1) if search is None else (search, 0))
    # In a bulk that was begun, an error is told by item.
    assert status_of(error) == (503 if write == 500 else write)


@pytest.mark.parametrize("refused", [{"error": "x"}, "no JSON", None])
def test_a_refusal_of_a_search_that_failed_while_it_was_folded_keeps_its_bytes(refused):
    answer, _ = _answered("search", KeyError("a fault of ours"), answer=refused or "", status=502)
    assert (answer.status, answer.body) == (502, b"{}")


def test_the_engines_own_refusal_goes_before():
    class Refusal(Exception):
        status_code = 429

    error = ConfigError("x")
    error.__cause__ = Refusal()
    reply = Reply(429, [(b"content-type", b"application/json")], b'{"error":"busy"}', {"error": "busy"})
    for operation in ("index", "search"):
        answer, sent = _answered(operation, error, reply)
        assert (answer.status, answer.body, sent) == (429, b'{"error":"busy"}', [])
    assert (_answered("index", error)[0].status, status_of(error)) == (429, 429)


@pytest.mark.parametrize(
    "value", ["1.5", "NaN", "-Infinity", "1e999", "36893488147419103232", '"\\ud800"', '"é"']
)
def test_values_beyond_strict_json_stay_in_a_page_made_of_them(value):
    content = f'{{"took":1,"hits":[{value}]}}'.encode()
    reply = Reply(200, [], content, *_read(content))
    # An answer that is strict comes first.
    caller = HttpCaller({}, [Reply(200, [], b"{}", *_read(b"{}")), reply])
    given = Intercepted(Operation("search"), RestRequest("POST", "/_search"), "", caller)
    page = RestResponse(200, {**reply.value, "dedup": {"folded": 0}})
    answer = Interception._complete(SimpleNamespace(_metrics=Metrics()), page, given)
    body, _ = encode(answer, (), "opensearch", pretty=False)
    assert repr(json.loads(body)) == repr({**json.loads(content), "dedup": {"folded": 0}})


@pytest.mark.parametrize(("size", "place"), [(1000, ""), (100_000, "loop"), (300_000, "thread")])
@pytest.mark.parametrize("compressed", [True, False])
def test_only_long_answers_are_compressed_in_threads(size, place, compressed):
    body, sent, places = bytes(size), [], []

    class Threads(ThreadPoolExecutor):
        def submit(self, *work):
            places.append("thread")
            return super().submit(*work)

    async def send(message):
        sent.append(message)

    with Threads(1) as threads:
        asyncio.run(send_answer(send, 200, [(b"x", b"y")], body, compressed=compressed, threads=threads))
    start, rest = sent
    headers = dict(start["headers"])
    packed = headers.get(b"content-encoding") == b"gzip"
    assert packed == (compressed and place != "")
    assert (places == ["thread"]) == (compressed and place == "thread")
    assert (gzip.decompress(rest["body"]) if packed else rest["body"]) == body
    assert headers[b"content-length"] == str(len(rest["body"])).encode()
    assert (headers[b"x"], b"vary" in headers) == (b"y", packed)


def _hits(count, total, relation="eq"):
    hits = [{"_id": str(number)} for number in range(count)]
    return {"took": 1, "hits": {"total": {"value": total, "relation": relation}, "hits": hits}}


#: ``from`` and ``size`` in the body, in the URL, the engine's page: why it has no more hits.
PAGES = {
    "full, in the body": ({"size": 3}, {}, _hits(3, 9), "page_full"),
    "full, in the URL": ({}, {"size": "3"}, _hits(3, 9), "page_full"),
    "the URL goes before": ({"size": 30}, {"size": "3"}, _hits(3, 9), "page_full"),
    "more than ten, and the end": ({"size": 20}, {}, _hits(15, 15), "end_of_results"),
    "more than ten in the URL, and the end": ({}, {"size": "20"}, _hits(15, 15), "end_of_results"),
    "the last page": ({"size": 3, "from": 6}, {}, _hits(1, 7), "end_of_results"),
    "from in the URL": ({"size": 3}, {"from": "6"}, _hits(1, 7), "end_of_results"),
    "ten by default": ({}, {}, _hits(10, 11), "page_full"),
    "as text": ({"size": "3", "from": "0"}, {}, _hits(3, 9), "page_full"),
    "as a fraction": ({"size": 3.0}, {}, _hits(3, 9), "page_full"),
    "hits were lost": ({"size": 5}, {}, _hits(3, 9), "partial_answer"),
    "a shard failed": ({}, {}, {**_hits(3, 3), "_shards": {"total": 2, "failed": 1}}, "partial_answer"),
    "nearest neighbours": ({"query": {"knn": {"v": {"vector": [1], "k": 3}}}}, {}, _hits(3, 3), "k_reached"),
    "size 0": ({"size": 0}, {}, _hits(0, 9), None),
    "size 0 in the URL": ({"size": 5}, {"size": "0"}, _hits(0, 9), None),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_fails_while_it_is_folded_says_why_it_ends(name):
    body, parameters, page, why = PAGES[name]
    text = json.dumps(body).encode()
    request = RestRequest("POST", "/site/_search", parameters, body=text)
    answer, _ = _answered("search", KeyError("a fault"), request=request, answer=page)
    assert answer.body.get("dedup", {}).get("stopped_by") == why
    header = b'{"index": "site"}\n'
    several = {"took": 1, "responses": [page, {"error": "x", "status": 400}, page]}
    request = RestRequest("POST", "/_msearch", {}, body=(header + text + b"\n") * 3)
    answer, _ = _answered("msearch", KeyError("a fault"), request=request, answer=several)
    found = [one.get("dedup", {}).get("stopped_by") for one in answer.body["responses"]]
    assert found == ([why, None, why] if not parameters else found)
    # What is in a template is not known: a page that shows all hits is the end, another one may not be.
    request = RestRequest("POST", "/site/_search/template", {}, body=b'{"id": "t"}')
    answer, _ = _answered("search_template", KeyError("a fault"), request=request, answer=page)
    shown, total = len(page["hits"]["hits"]), page["hits"]["total"]["value"]
    expected = "end_of_results" if shown == total and "_shards" not in page else "page_full"
    assert answer.body["dedup"]["stopped_by"] == expected


@pytest.mark.parametrize("body", [b"[]", b"null", b"0", b'""', b"false", b"[1]"])
@pytest.mark.parametrize("fold", [False, None])
def test_a_wish_makes_no_search_of_what_is_none(body, fold):
    for operation in ("search", "search_template"):
        request = RestRequest("POST", "/site/_search", body=body)
        assert with_folding(operation, request, fold=fold).body == body


TWICE = {
    "search": b'{"size": 1, "size": 2, "ext": {"dedup": {}}}',
    "msearch": b'{}\n{"size": 1, "size": 2, "ext": {"dedup": {}}}\n',
}


@pytest.mark.parametrize("operation", TWICE)
def test_a_wish_leaves_a_key_twice_to_the_engine(operation):
    request = RestRequest("POST", "/site/_search", body=TWICE[operation])
    assert {with_folding(operation, request, fold=fold).body for fold in (False, None)} == {request.body}


def test_the_version_is_read_for_another_caller_if_the_first_one_may_not():
    body = {"version": {"distribution": "opensearch", "number": "3.8.0"}}
    asked = []

    async def ask(*given, **_):
        asked.append(given)
        return Reply(200, [], b"{}", body)

    gateway = SimpleNamespace(
        _access=_EngineAccess(_product("opensearch", {}, {}), *[None] * 3),
        _upstream=SimpleNamespace(ask=ask, connection=SimpleNamespace(product="")),
    )
    assert gateway._access.product == ("opensearch", None, False)
    caller = HttpCaller({"authorization": "other"})
    found = [asyncio.run(Interception._tiebreaker(gateway, caller)) for _ in range(2)]
    assert found == ["_shard_doc"] * 2
    assert len(asked) == 1


def test_a_wish_ends_no_search_that_was_cut_off():
    body = b'{"index": "site"}\n{"query": {"match_all": {}}}'
    assert with_folding("msearch", RestRequest("POST", "/_msearch", body=body), fold=False).body == body


@pytest.mark.parametrize("ext", [b"5", b'"dedup"', b'["dedup"]'])
def test_an_ext_that_is_no_object_passes(site, ext):
    body = b'{"ext": %s}' % ext
    request = RestRequest("POST", "/site/_search", body=body)

    for fold in (False, None):
        with_folding("search", request, fold=fold)
    assert intercept(site, None, "/site/_search", body, always=True) is None
