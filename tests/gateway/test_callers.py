"""What one caller sees of indices is not kept for others; what differs with each request is no caller."""

import json
import re
import warnings

import pytest
from support.interceptor import Script, with_note

from shinglefold.api.index_options import IndexOptions
from shinglefold.errors import EngineUnavailable, PermissionDenied
from shinglefold.gateway import Interceptor
from shinglefold.gateway.access import credentials
from shinglefold.gateway.rest import RestRequest, RestResponse, Send, path_of
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.runtime.sans_io import run
from shinglefold.settings import Settings

CALLERS = {"one": {"Authorization": "one"}, "other": {"Authorization": "other"}}


class Seen(Script):
    """An engine that shows a caller these indices: some fold unasked, others have no recipe."""

    def __init__(self, site, shown):
        super().__init__(site, *[201] * 9)
        self.shown, self.asked, self.counted = shown, 0, 0

    def __call__(self, request):
        if isinstance(request, Call) and request.method == "all_mappings":
            self.asked += 1
            folding = with_note(self.site, fold=True)
            return {name: folding if has_recipe else {} for name, has_recipe in self.shown.items()}
        if isinstance(request, Send) and "/_alias/" in request.request.path:
            return RestResponse(404, {})
        if isinstance(request, Send) and request.request.path.endswith("/_doc/1"):
            self.sent.append(request.request)
            return RestResponse(201, {"_id": "1"})
        return super().__call__(request)


def ask(interceptor, seen, caller, path, body, **headers):
    request = RestRequest("POST", path, {}, CALLERS[caller] | headers, body)
    return run(interceptor.steps(request), seen)


#: A name, and what two callers see behind it: indices with a recipe, or without one.
PATTERNS = {
    "a pattern": ("si*", {"site": True}, {"site-other": False}),
    "_all": ("_all", {"site": True}, {"plain": False}),
    "a list": ("site,secret", {"site": True}, {"secret": False}),
    "a list with a pattern": ("site,se*", {"site": True}, {"secret": False}),
    "an exclusion": ("s*,-secret", {"site": True}, {"other": False}),
    "an alias": ("pages", {"site": True}, {"plain": False}),
    "a data stream": ("logs", {".ds-logs-000001": True}, {".ds-logs-000002": False}),
    "a date": ("<site-{now/d}>", {"site-2026.11.27": True}, {"plain": False}),
}


@pytest.mark.long(every=6)
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("first", CALLERS)
def test_searches_are_folded_by_what_their_caller_sees(site, name, first):
    index, one, other = PATTERNS[name]
    seen = {"one": Seen(site, one), "other": Seen(site, other)}
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    indices = interceptor._handlers["search"].__self__._indices
    path = "/_search" if index == "_all" else path_of(index, "_search")

    def folds(caller):
        return run(indices.folds(index, CALLERS[caller]), seen[caller])

    order = [first, *CALLERS, *CALLERS]
    assert [folds(caller) for caller in order] == [caller == "one" for caller in order]
    each = 2 if index.startswith("site,") else 1
    assert [one.asked for one in seen.values()] == [each, each]
    # The request itself passes for the caller who sees no recipe.
    assert ask(interceptor, seen["other"], "other", path, {"query": {"match_all": {}}}) is None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["an alias", "a data stream", "a date"])
@pytest.mark.parametrize("first", CALLERS)
def test_documents_are_signed_by_what_their_caller_sees(site, name, first):
    index, one, other = PATTERNS[name]
    seen = {"one": Seen(site, one), "other": Seen(site, other)}
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    for caller in (first, *CALLERS, *CALLERS):
        seen[caller].sent.clear()
        found = ask(interceptor, seen[caller], caller, path_of(index, "_doc", "1"), b'{"title": "a bridge"}')
        signed = ["_dedup" in json.loads(request.body) for request in seen[caller].sent]
        assert (found is None, signed) == ((False, [True]) if caller == "one" else (True, []))


def test_an_index_is_the_same_for_all_callers(site):
    seen = Seen(site, {"site": True})
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    for caller in (*CALLERS, *CALLERS):
        ask(interceptor, seen, caller, "/site/_doc/1", b'{"title": "a bridge"}')
    assert seen.asked == 1


@pytest.mark.parametrize(
    ("error", "behind", "told"),
    [
        (PermissionDenied("no"), ["site-1"], "'site-2', whose mappings may not be read.*backfill site-2`"),
        (PermissionDenied("no"), ["site-1", "site-2"], ""),
        (EngineUnavailable("lost"), ["site-1"], "in 'site-2' is that of its text before: lost"),
    ],
)
def test_an_index_behind_an_alias_that_cannot_be_read_fails_no_write(site, error, behind, told):
    class Behind(Seen):
        def __call__(self, request):
            if isinstance(request, Call) and request.arguments == ("site-2",):
                raise error
            if isinstance(request, Send) and "_alias" not in request.request.path:
                return RestResponse(201, {"_index": "site-2", "_id": "1", "result": "created"})
            return super().__call__(request)

    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shown = dict.fromkeys(behind, True)
        found = ask(interceptor, Behind(site, shown), "one", "/pages/_doc/1", b'{"title": "a"}')
    assert (found.status, found.body["_index"]) == (201, "site-2")
    messages = [one for one in of_documents(caught) if "site-2" in one]
    assert len(messages) == bool(told)
    assert re.search(told, "".join(messages))


def test_each_caller_that_may_not_read_mappings_is_logged_once_for_each_name(site, caplog):
    class Denied(Script):
        def __call__(self, request):
            if isinstance(request, Call) and request.method == "all_mappings":
                raise PermissionDenied("no")
            return super().__call__(request)

    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    template = b'{"source": {"query": {"match_all": {}}}}'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for caller in (*CALLERS, *CALLERS):
            for path, body in (
                ("/site/_search", b"{}"),
                ("/site/_msearch", b"{}\n{}\n"),
                ("/other/_search/template", template),
                ("/other/_msearch/template", b"{}\n" + template + b"\n"),
            ):
                assert ask(interceptor, Denied(site), caller, path, body) is None
    told = [one.getMessage() for one in caplog.records]
    assert [[name in one for one in told].count(True) for name in ("'site'", "'other'")] == [2, 2]
    assert len(told) == 4
    assert all("Let the user read mappings" in one for one in told)


def of_documents(caught):
    """The warnings, but for those that tell of an index that it numbers groups."""
    return [str(one.message) for one in caught if "numbers groups" not in str(one.message)]


class NoAlias(Seen):
    """An engine with an alias of two indices, whose options can't be read."""

    answer = RestResponse(403, {"error": "no"})

    def __call__(self, request):
        if isinstance(request, Send) and "/_alias/" in request.request.path:
            return self.answer
        if isinstance(request, Send) and "/_update/" in request.request.path:
            return RestResponse(200, {"_index": "site-2", "_id": "1", "result": "updated"})
        return super().__call__(request)


def test_an_alias_that_may_not_be_read_is_told(site):
    """Which of its indices takes writes is unknown then, and what routing it gives to documents."""
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    denied = NoAlias(site, {"site-1": True, "site-2": True})
    with pytest.warns(UserWarning, match="alias") as caught:
        found = ask(interceptor, denied, "one", "/pages/_update/1", b'{"doc": {"title": "a"}}')
    assert (found.status, found.body["result"]) == (200, "updated")
    first, second = of_documents(caught)
    assert "the user may not read the alias 'pages'" in first
    assert "the fingerprint of '1' in 'pages' is that of its text before: the user may not read it" in second


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, {"error": {"type": "busy"}, "status": 503}),
        (200, {"message": "Log in"}),
        (200, "Log in"),
        (200, None),
        (200, []),
        (200, {"site-1": {"aliases": 7}}),
        (200, {"site-1": {"aliases": {"pages": 7}}}),
    ],
)
def test_an_alias_that_cannot_be_read_now_fails_the_write(site, status, body):
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    denied = NoAlias(site, {"site-1": True, "site-2": True})
    denied.answer = RestResponse(status, body)
    with pytest.raises(EngineUnavailable, match=r"the engine.*answer"):
        ask(interceptor, denied, "one", "/pages/_doc/1", b'{"title": "a"}')
    assert denied.sent == []


@pytest.mark.parametrize(("status", "told"), [(400, False), (403, True), (503, True)])
def test_a_template_that_cannot_be_read_is_told(site, status, told):
    class Denied(Seen):
        def __call__(self, request):
            if isinstance(request, Send) and "_simulate_index" in request.request.path:
                return RestResponse(status, {"error": "no"})
            return super().__call__(request)

    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ask(interceptor, Denied(site, {}), "one", "/pages/_doc/1", b'{"title": "a"}') is None
    assert any("its template can't be looked at" in str(one.message) for one in caught) is told


@pytest.mark.parametrize("index", ["site", "si*", "pages"])
def test_what_pages_show_one_caller_is_not_known_of_another(site, index):
    """Such as whether all documents have a number of a group: one may not see those without."""
    seen = Seen(site, {"site": True})
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    folding = interceptor._handlers["search"].__self__
    steps = {
        caller: [run(folding._folding_of(index, CALLERS[caller]), seen).steps for _ in range(3)]
        for caller in CALLERS
    }
    assert [len({id(one) for one in each}) for each in steps.values()] == [1, 1]
    one, other = steps["one"][0], steps["other"][0]
    shared = {kept for kept in vars(one) if getattr(one, kept) is getattr(other, kept)}
    of_indices = {"_knowledge", "_strategies", "_pipelines"}
    assert "_grouped" not in shared
    # What takes memory is there once.
    assert "_loaded" in shared
    assert shared & of_indices == (of_indices if index == "site" else set())


#: Headers that clients, proxies and tracers add to each request.
OF_REQUESTS = (
    *("X-Request-Id", "x-correlation-id", "Traceparent", "tracestate", "X-Opaque-Id", "Date", "Baggage"),
    *("Content-Length", "Content-Type", "Content-Encoding", "Accept", "Accept-Encoding", "User-Agent"),
    *("b3", "X-B3-TraceId", "X-B3-SpanId", "X-B3-ParentSpanId", "X-B3-Sampled", "uber-trace-id"),
    *("X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "elastic-apm-traceparent", "x-elastic-client-meta"),
    *("X-Datadog-Trace-Id", "X-Datadog-Parent-Id", "sentry-trace", "X-Request-Start", "Referer"),
)
#: Headers by which engines and what stands before them tell callers apart.
OF_CALLERS = (
    *("Authorization", "Cookie", "es-security-runas-user", "securitytenant", "x-proxy-user", "x-proxy-roles"),
    *("X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Amz-Security-Token", "es-secondary-authorization"),
    *("x-proxy-ext-department", "ssl-client-cert", "X-Anything-Else", "opendistro_security_impersonate_as"),
)


def test_callers_are_told_apart_by_what_may_be_credentials():
    who = {"authorization": "Basic x"}
    for name in OF_REQUESTS:
        assert {credentials(who | {one: one}) for one in (name, name.upper())} == {credentials(who)}, name
    for name in OF_CALLERS:
        first, second = ({**who, name: value} for value in "12")
        assert credentials(first) != credentials(second), name
        assert credentials(first) != credentials(who), name


def test_a_request_id_makes_no_other_caller(site):
    seen = Seen(site, {"site": True})
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    indices = interceptor._handlers["search"].__self__._indices
    for number in range(5):
        headers = {"Authorization": "one", **{name: str(number) for name in OF_REQUESTS}}
        run(indices.folds("si*", headers), seen)
    assert seen.asked == 1


@pytest.mark.filterwarnings("ignore:'site")
@pytest.mark.parametrize("own", [None, "r"])
@pytest.mark.parametrize("path", ["/pages/_doc/1", "/pages/_bulk"])
def test_a_document_behind_a_switched_alias_is_read_by_the_routing_that_the_alias_gives(site, path, own):
    """Without it the document is not found where it has more than one shard, and its fingerprint stays."""
    routings = []

    class Switched(Seen):
        def __call__(self, request):
            if isinstance(request, Call) and request.arguments == ("site-2",):
                return {"site-2": with_note(site, fields=["body"])}
            if isinstance(request, Call) and request.method == "read":
                routings.append(request.arguments[3])
                return [None]
            if isinstance(request, Send) and "_alias" in request.request.path:
                options = {"index_routing": "r", "search_routing": "r"}
                return RestResponse(200, {"site-2": {"aliases": {"pages": options}}})
            if isinstance(request, Send):
                told = {"_index": "site-2", "_id": "1", "result": "created", "status": 201}
                several = request.request.path.endswith("_bulk")
                return RestResponse(200, {"items": [{"index": told}]}) if several else RestResponse(201, told)
            return super().__call__(request)

    body = b'{"title": "a"}'
    body = b'{"index": {"_id": "1"}}\n' + body + b"\n" if path.endswith("_bulk") else body
    interceptor = Interceptor(site.engine, FoldedSearch, IndexOptions(), Settings())
    parameters = {} if own is None else {"routing": own}
    run(interceptor.steps(RestRequest("POST", path, parameters, {}, body)), Switched(site, {"site-1": True}))
    assert routings == [["r"]]
