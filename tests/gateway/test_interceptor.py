"""Requests that the gateway takes: searches and their answers."""

import itertools
import json
from contextlib import closing

import pytest
from support.interceptor import Script, intercept, lines, with_note

import shinglefold
from shinglefold.api.index_options import IndexOptions
from shinglefold.errors import EngineUnavailable, PermissionDenied
from shinglefold.examples import temporary_index
from shinglefold.gateway import Interceptor
from shinglefold.gateway.rest import RestRequest, RestResponse, Send, Tiebreaker, Work, operation_of
from shinglefold.gateway.search_answers import with_folding
from shinglefold.grouping.regroup import regroup
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.rerank.request.fold_options import FoldOptions
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


def test_a_search_is_that_of_an_open_index(site):
    body = {"query": {"match": {"title": "мост"}}, "size": 3}
    expected = site.search(body)
    answer = Script(site)
    for given, always in ((dict(body, ext={"dedup": {}}), False), (json.dumps(body), True)):
        found = intercept(site, answer, "/site/_search", given, always=always)
        told = found.body["dedup"]
        # Unasked, the total is that of groups.
        assert (found.body["hits"]["total"]["value"] == told["groups"]) is always
        engines = {**found.body["hits"], "total": told.pop("hits_total", found.body["hits"]["total"])}
        assert {**found.body, "hits": engines, "took": 0} == {**expected, "took": 0}
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


def test_what_is_not_json_is_left_to_the_engine(site):
    script = Script(site)
    items = [{"index": {"status": 400, "error": {}}}, {"index": {"status": 201}}]
    broken, whole = b'{"index": {"_id": "1"}}\n{"title":\n', lines({"index": {"_id": "2"}}, {"title": "a"})

    def answer(request):
        if isinstance(request, Send):
            sent = request.request.body.splitlines()
            assert sent[:2] == broken.splitlines()
            assert "_dedup" in json.loads(sent[3])
            return RestResponse(200, {"items": items})
        return script(request)

    assert intercept(site, answer, "/site/_bulk", broken + whole).body["items"] == items


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


FOLDED = {"query": {"match_all": {}}, "ext": {"dedup": {}}}
#: What the engine refuses, each by its path: it is sent on as it came.
REFUSED = {
    **{
        f"a name that is none: {name!r}": ("/_msearch", lines({"index": name}, FOLDED))
        for name in (1, True, {}, [[]], "\ud800")
    },
    "searches without their last newline": ("/_msearch", lines({"index": "site"}, FOLDED)[:-1]),
    "a bulk without its last newline": ("/site/_bulk", lines({"index": {"_id": "1"}}, {"title": "a"})[:-1]),
    **{
        f"{body!r} in place of the body of {path}": (path, body)
        for body in (b"[]", b"null", b"0", b'""', b"false", b'"ext"', b"  ", b"{} {}")
        for path in (
            *("/site/_search", "/site/_search/template", "/_search", "/site/_doc/1", "/site/_update/1"),
            *("/_reindex", "/site/_update_by_query"),
        )
    },
    **{f"an ext of {ext!r}": ("/site/_search", {"ext": ext}) for ext in (None, [], 0, "", False, 5, "dedup")},
    "a key twice in a search": ("/site/_search", b'{"size": 1, "size": 2, "ext": {"dedup": {}}}'),
    "a key twice, not to be folded": ("/site/_search", b'{"size": 1, "size": 2, "ext": {"dedup": false}}'),
    "a key twice, deep": ("/site/_search", b'{"ext": {"dedup": {"members": 1, "members": 2}}}'),
    "a key twice in one of several": ("/_msearch", b'{"index": "site"}\n{"ext": {"dedup": {}}, "ext": {}}\n'),
    "a key twice in a header": (
        "/_msearch",
        b'{"index": "site", "index": "other"}\n{"ext": {"dedup": {}}}\n',
    ),
    "a key twice in a template": ("/site/_search/template", b'{"id": "a", "id": "b", "ext": {"dedup": {}}}'),
    "a key twice in an update": ("/site/_update/1", b'{"doc": {"title": "a", "title": "b"}}'),
    "a reindex into no object": ("/_reindex", b'{"dest": "site"}'),
    "a reindex into half of a surrogate pair": ("/_reindex", b'{"dest": {"index": "\\ud800"}}'),
    "a reindex into a list": ("/_reindex", b'{"dest": []}'),
    "a search without a body of several": ("/_msearch", b'{"index": "site"}\n'),
    "a document that is a list": ("/site/_doc/1", b"[1]"),
    "no document": ("/site/_doc/1", b""),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_refuses_passes(site, name):
    for always in (True, False):
        assert intercept(site, Script(site), *REFUSED[name], always=always) is None


#: Bodies of several searches with empty lines, and the index and the size of each search that is read.
EMPTY_HEADERS = {
    b'\n{"size": 1}\n\n{"size": 2}\n': None,
    b'\n\n{"size": 1}\n\n{"size": 2}\n': [1, 2],
    b'\n\n{"size": 1}\n{}\n{"size": 2}\n': [1, 2],
    b'{}\n{"size": 1}\n\n{"size": 2}\n': [1, 2],
    b'{}\n{"size": 1}\n\n\n{"size": 2}\n': None,
}


@pytest.mark.parametrize("body", EMPTY_HEADERS)
def test_an_empty_line_is_the_header_of_a_search(site, body):
    sizes = EMPTY_HEADERS[body]
    for operation, path in (("interceptor", "/site/_msearch"), ("wish", "/site/_msearch")):
        given = body.replace(b'"size"', b'"ext": {"dedup": {}}, "size"')
        if operation == "wish":
            made = with_folding("msearch", RestRequest("POST", path, body=given), fold=False).body
            lines_ = [json.loads(line) for line in made.splitlines()] if made != given else None
            found = lines_ and [one["size"] for one in lines_[1::2]]
        else:
            answer = intercept(site, Script(site), path, given)
            found = answer and [len(one["hits"]["hits"]) for one in answer.body["responses"]]
        assert found == sizes, operation


BODIES = {
    "all": {"query": {"match_all": {}}},
    "some": {"query": {"match": {"title": "мост"}}},
    "none": {"query": {"match": {"title": "такогословавнихнет"}}},
    "all counted": {"query": {"match_all": {}}, "track_total_hits": True},
}
WAYS = {
    "by window": {},
    "by short windows": {"window": 5, "max_window": 40},
    "by texts": {"verify": "text"},
    "by stored groups": {"mode": "native"},
}
_LIST = {"search": "/site/_search", "msearch": "/_msearch"}


@pytest.fixture(scope="module")
def numbered():
    """The example site with the numbers of groups stored."""
    folder = temporary_index("site")
    shinglefold.setup(folder, "site", text=["title", "body"], groups=True)
    with closing(shinglefold.open(folder, "site")) as opened:
        regroup(opened.engine, "site")
        yield opened


def ask(site, body, door, dedup=None, **parameters):
    """Return a page that is folded unasked by one of the ways to search."""
    given = body if door == "search" else lines({"index": "site"}, body)
    found = intercept(site, Script(site), _LIST[door], given, always=True, dedup=dedup, **parameters).body
    return found if door == "search" else found["responses"][0]


#: The size of a page by body and way, and how it is asked for: two Latin squares that are orthogonal, so that
#: each value of one meets each value of all others.
_SIZES = (1, 3, 31, 500)
_ASKED = ((False, "search"), (False, "msearch"), (True, "search"), (True, "msearch"))
CELLS = [
    (name, way, _SIZES[at ^ other], *_ASKED[at ^ (0, 2, 3, 1)[other]])
    for at, name in enumerate(BODIES)
    for other, way in enumerate(WAYS)
]


@pytest.mark.long(every=16)
@pytest.mark.parametrize(("name", "way", "size", "as_int", "door"), CELLS)
def test_asking_until_the_total_ends_with_each_group_once(numbered, name, way, size, as_int, door):
    found = []
    dedup = FoldOptions.parse(WAYS[way])
    parameters = {"rest_total_hits_as_int": "true"} if as_int else {}
    for asked in itertools.count():
        assert asked < 200
        body = {**BODIES[name], "from": len(found), "size": size}
        page = ask(numbered, body, door, dedup, **parameters)
        found += [hit["_id"] for hit in page["hits"]["hits"]]
        total = page["hits"]["total"]
        if len(found) >= (total if as_int else total["value"]):
            break
    if way == "by window" and not as_int:
        assert total["relation"] == "eq"
    assert ("hits_total" in page["dedup"]) is (name != "none")
    whole = numbered.search({**BODIES[name], "size": 500, "ext": {"dedup": WAYS[way]}})
    assert found == [hit["_id"] for hit in whole["hits"]["hits"]]


@pytest.mark.parametrize("door", _LIST)
def test_a_page_beyond_the_last_says_how_many_hits_pages_have(site, door):
    page = ask(site, {"from": 300}, door)
    assert not page["hits"]["hits"]
    assert page["hits"]["total"] == {"value": 62, "relation": "eq"}
    assert page["dedup"]["hits_total"] == {"value": 166, "relation": "eq"}


@pytest.mark.parametrize("door", _LIST)
def test_whoever_asks_for_folding_gets_the_total_of_the_engine(site, door):
    for more in ({}, {"from": 300}, {"size": 500}):
        page = ask(site, {**more, "ext": {"dedup": {}}}, door)
        assert page["hits"]["total"] == {"value": 166, "relation": "eq"}
        assert "hits_total" not in page["dedup"]


def test_a_page_without_a_total_gets_none(site):
    page = ask(site, {"size": 500, "track_total_hits": False}, "search")
    assert "total" not in page["hits"]
    assert "hits_total" not in page["dedup"]


def test_a_page_after_a_hit_that_ranks_behind_its_group_is_the_engines_own(site):
    class Searched(Script):
        def __call__(self, request):
            if isinstance(request, Send):
                return RestResponse(200, site.engine.search("site", request.request.body))
            return super().__call__(request)

    body = {"sort": [{"_score": "desc"}], "search_after": [0.5]}
    longest = FoldOptions.parse({"representative": "longest"})
    found = intercept(site, Searched(site), "/site/_search", body, always=True, dedup=longest).body
    assert found["dedup"]["mode"] == "unfolded"
    assert '"cursor": true' in found["dedup"]["mode_reason"]
