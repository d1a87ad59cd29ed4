# A row is one line, however long it is.
# ruff: noqa: E501
"""Requests that read, each the same on an index directly and through the gateway.

INDEX has the documents of ``support.distinct``. A row is a request, or several in turn; a pair between them
takes a value of the answer before it for those behind it, such as the id of a scroll.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from support.rest.raw import Request

Step = Request | tuple[str, str]
Row = Request | Sequence[Step]
WATER: Any = {"query": {"match": {"body": "water"}}, "size": 3}
ALL: Any = {"query": {"match_all": {}}, "sort": ["number"], "size": 2}


def get(target: str, body: Any = None, **more: Any) -> Request:
    return Request("GET", target, body, **more)


def post(target: str, body: Any = None, **more: Any) -> Request:
    return Request("POST", target, body, **more)


def headers(**given: str) -> dict[str, Any]:
    """Return headers, as arguments of a request."""
    return {"headers": {name.replace("_", "-"): value for name, value in given.items()}}


_SEARCH = "/INDEX/_search"
#: Ways to send and to ask for one search, which an HTTP proxy gets wrong first.
FORMS: Mapping[str, Row] = {
    "info": get("/"),
    "info, pretty": get("/?pretty"),
    "info, HEAD": Request("HEAD", "/"),
    "search by GET": get(_SEARCH, WATER),
    "search by POST": post(_SEARCH, WATER),
    "search without a body": get(_SEARCH),
    "search by POST with an empty body": post(_SEARCH, b""),
    "search with an empty object": post(_SEARCH, {}),
    "search with a slash at the end": post(f"{_SEARCH}/", WATER),
    "search with two slashes": post("//INDEX//_search", WATER),
    "search without an index": post("/_search?index=INDEX&allow_partial_search_results=true", WATER),
    "search, q": get(f"{_SEARCH}?q=body:water&size=2"),
    "search, q with a plus": get(f"{_SEARCH}?q=water+bridge&size=2&default_operator=AND"),
    "search, q with an escaped plus": get(f"{_SEARCH}?q=%2Bwater%20%2Bbridge&size=2"),
    "search, q with unicode": get(f"{_SEARCH}?q=%D0%BC%D0%BE%D1%81%D1%82"),
    "search, q with a semicolon": get(f"{_SEARCH}?q=water;bridge"),
    "search, q with an ampersand": get(f"{_SEARCH}?q=water%26bridge"),
    "search, q with a broken escape": get(f"{_SEARCH}?q=%zz"),
    "search, q that is not UTF-8": get(f"{_SEARCH}?q=%ff%fe"),
    "search, a parameter twice": get(f"{_SEARCH}?size=1&size=2"),
    "search, a question mark alone": get(f"{_SEARCH}?"),
    "search, an empty parameter": get(f"{_SEARCH}?size=1&pretty="),
    "search, a parameter without a value": get(f"{_SEARCH}?size=1&human"),
    "search, an unknown parameter": get(f"{_SEARCH}?nonsense=1"),
    "search, a misspelt parameter": get(f"{_SEARCH}?sizee=1"),
    "search, source": get(f"{_SEARCH}?source=%7B%22size%22%3A1%7D&source_content_type=application/json"),
    "search, typed keys": post(f"{_SEARCH}?typed_keys", {"size": 0, "aggs": {"tags": {"terms": {"field": "tag"}}}}),
    "search, total as a number": post(f"{_SEARCH}?rest_total_hits_as_int=true", WATER),
    "search, filter_path": post(f"{_SEARCH}?filter_path=hits.hits._id,-took", WATER),
    "search, filter_path of nothing": post(f"{_SEARCH}?filter_path=nothing", WATER),
    "search, pretty": post(f"{_SEARCH}?pretty", WATER),
    "search, pretty=false": post(f"{_SEARCH}?pretty=false", WATER),
    "search, yaml": post(f"{_SEARCH}?format=yaml", WATER),
    "search, accept yaml": post(_SEARCH, WATER, **headers(Accept="application/yaml")),
    "search, cbor": post(f"{_SEARCH}?format=cbor&filter_path=timed_out", {"size": 0}),
    "search, gzip asked for": post(_SEARCH, WATER, **headers(Accept_Encoding="gzip")),
    "search, gzip or deflate asked for": post(_SEARCH, WATER, **headers(Accept_Encoding="gzip, deflate, br")),
    "search, identity asked for": post(_SEARCH, WATER, **headers(Accept_Encoding="identity")),
    "search, sent as gzip": post(_SEARCH, WATER, sent="gzip"),
    "search, sent in chunks": post(_SEARCH, WATER, sent="chunked"),
    "search, sent as gzip in chunks": post(_SEARCH, WATER, sent="gzip chunked"),
    "search, sent after 100": post(_SEARCH, WATER, sent="expect"),
    "search, GET in chunks": get(_SEARCH, WATER, sent="chunked"),
    "search, charset": post(_SEARCH, WATER, **headers(Content_Type="application/json; charset=UTF-8")),
    "search, compatible": post(
        _SEARCH,
        WATER,
        **headers(
            Content_Type="application/vnd.elasticsearch+json; compatible-with=9",
            Accept="application/vnd.elasticsearch+json; compatible-with=9",
        ),
    ),
    "search, older compatible": post(
        _SEARCH,
        WATER,
        **headers(
            Content_Type="application/vnd.elasticsearch+json; compatible-with=8",
            Accept="application/vnd.elasticsearch+json; compatible-with=8",
        ),
    ),
    "search, body in YAML": post(_SEARCH, "query:\n  match:\n    body: water\nsize: 1\n", **headers(Content_Type="application/yaml")),
    "search, a form": post(_SEARCH, WATER, **headers(Content_Type="application/x-www-form-urlencoded")),
    "search, a content type of nonsense": post(_SEARCH, WATER, **headers(Content_Type="nonsense")),
    "search, an accept of nonsense": post(_SEARCH, WATER, **headers(Accept="image/png")),
    "search, an id of its own": post(_SEARCH, WATER, **headers(X_Opaque_Id="caller-7", Traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
    "search, a long header": post(_SEARCH, WATER, **headers(X_Long="x" * 7_000)),
    "search, a long line": get(f"{_SEARCH}?q={'x' * 5_000}"),
    "search, broken JSON": post(_SEARCH, '{"query": {"match'),
    "search, not UTF-8": post(_SEARCH, b'{"query": {"match": {"body": "\xff\xfe"}}}'),
    "search, JSON and more": post(_SEARCH, '{"size": 1} {"size": 2}'),
    "search, a key twice": post(_SEARCH, '{"size": 1, "size": 2}'),
    "search, an array": post(_SEARCH, "[1]"),
    "search, null": post(_SEARCH, "null"),
    "search, comments": post(_SEARCH, '{"size": 1 /* one */}'),
    "search, byte order mark": post(_SEARCH, b"\xef\xbb\xbf" + b'{"size": 1}'),
    "search, an unknown key": post(_SEARCH, {"nonsense": 1}),
    "search, an unknown query": post(_SEARCH, {"query": {"nonsense": {}}}),
    "search, error_trace": post(f"{_SEARCH}?error_trace=true", {"query": {"nonsense": {}}}),
    "search, an unknown field to sort by": post(_SEARCH, {"sort": ["absent"]}),
    "search, a window too large": post(_SEARCH, {"from": 20_000}),
    "search, a wrong type": post(_SEARCH, {"size": "many"}),
    "search, ext of others": post(_SEARCH, {**WATER, "ext": {"nonsense": {}}}),
    "search, a missing index": post("/absent-index/_search", WATER),
    "search, a missing index ignored": post("/absent-index,INDEX/_search?ignore_unavailable=true", WATER),
    "search, a pattern of nothing": post("/absent-*/_search", WATER),
    "search, a name that no index has": post("/Upper/_search", WATER),
    "search, PUT": Request("PUT", _SEARCH, WATER),
    "search, DELETE": Request("DELETE", _SEARCH),
    "search, HEAD": Request("HEAD", _SEARCH),
    "search, OPTIONS": Request("OPTIONS", _SEARCH),
    "search, PATCH": Request("PATCH", _SEARCH),
}  # fmt: skip
#: The operations that read.
OPERATIONS: Mapping[str, Row] = {
    "HEAD index": Request("HEAD", "/INDEX"),
    "HEAD a missing index": Request("HEAD", "/absent-index"),
    "HEAD document": Request("HEAD", "/INDEX/_doc/1?routing=r1"),
    "HEAD a missing document": Request("HEAD", "/INDEX/_doc/absent"),
    "HEAD source": Request("HEAD", "/INDEX/_source/1?routing=r1"),
    "HEAD template": Request("HEAD", "/_index_template/absent"),
    "HEAD alias": Request("HEAD", "/INDEX/_alias/absent"),
    "HEAD with a gzip answer": Request("HEAD", "/INDEX", headers={"Accept-Encoding": "gzip"}),
    "get": get("/INDEX/_doc/1?routing=r1"),
    "get, parts of the source": get("/INDEX/_doc/1?routing=r1&_source_includes=title,number"),
    "get, stored fields": get("/INDEX/_doc/1?routing=r1&stored_fields=tag"),
    "get, pretty": get("/INDEX/_doc/1?routing=r1&pretty"),
    "get, yaml": get("/INDEX/_doc/1?routing=r1&format=yaml"),
    "get, missing": get("/INDEX/_doc/absent"),
    "get, missing index": get("/absent-index/_doc/1"),
    "get, source": get("/INDEX/_source/1?routing=r1"),
    "get, missing source": get("/INDEX/_source/absent"),
    "get, missing, filter_path": get("/INDEX/_doc/absent?filter_path=found"),
    "mget": post("/INDEX/_mget", {"docs": [{"_id": "1", "routing": "r1"}, {"_id": "absent"}]}),
    "mget over indices": post("/_mget", {"docs": [{"_index": "INDEX", "_id": "2"}, {"_index": "absent-index", "_id": "2"}]}),
    "mget of nothing": post("/INDEX/_mget", {"docs": []}),
    "msearch": post("/_msearch", [{"index": "INDEX"}, WATER, {"index": "absent-index"}, WATER, {}, {"size": 0}]),
    "msearch of an index": post("/INDEX/_msearch", [{}, WATER, {"preference": "_local"}, ALL]),
    "msearch by GET": get("/INDEX/_msearch", [{}, WATER]),
    "msearch, parameters": post("/INDEX/_msearch?max_concurrent_searches=1&typed_keys=true&filter_path=responses.hits.total", [{}, WATER]),
    "msearch, source": get("/INDEX/_msearch?source=%7B%7D%0A%7B%22size%22%3A1%7D%0A&source_content_type=application/x-ndjson"),
    "msearch, source and a body": post("/INDEX/_msearch?source=%7B%7D%0A%7B%22size%22%3A1%7D%0A&source_content_type=application/x-ndjson", [{}, WATER]),
    "search template, source": get("/INDEX/_search/template?source=%7B%22source%22%3A%7B%22size%22%3A1%7D%7D&source_content_type=application/json"),
    "msearch, one wrong": post("/INDEX/_msearch", [{}, {"query": {"nonsense": {}}}, {}, WATER]),
    "msearch without an end of line": post("/INDEX/_msearch", b'{}\n{"size": 0}'),
    "msearch, empty": post("/INDEX/_msearch", b""),
    "msearch, lines with CR": post("/INDEX/_msearch", b'{}\r\n{"size": 0}\r\n'),
    "msearch, empty headers": post("/INDEX/_msearch", b'\n{"size": 0}\n'),
    "msearch, broken JSON": post("/INDEX/_msearch", b'{}\n{"size": \n'),
    "msearch, sent as gzip": post("/INDEX/_msearch", [{}, WATER], sent="gzip"),
    "count": post("/INDEX/_count", {"query": {"match": {"body": "water"}}}),
    "count by GET": get("/INDEX/_count?q=water"),
    "count, wrong": post("/INDEX/_count", {"size": 1}),
    "explain": post("/INDEX/_explain/1?routing=r1", {"query": {"match": {"body": "water"}}}),
    "explain, missing": post("/INDEX/_explain/absent", {"query": {"match": {"body": "water"}}}),
    "field_caps": get("/INDEX/_field_caps?fields=title,number"),
    "field_caps, filtered": post("/INDEX/_field_caps?fields=*", {"index_filter": {"match_all": {}}}),
    "validate": post("/INDEX/_validate/query?explain=true", {"query": {"match": {"body": "water"}}}),
    "validate, wrong": post("/INDEX/_validate/query", {"query": {"nonsense": {}}}),
    "term vectors": get("/INDEX/_termvectors/1?routing=r1&fields=title"),
    "search shards": get("/INDEX/_search_shards?filter_path=indices"),
    "rank eval": post("/INDEX/_rank_eval", {"requests": [{"id": "a", "request": {"query": {"match": {"body": "water"}}}, "ratings": []}], "metric": {"precision": {}}}),
    "search template": post("/INDEX/_search/template", {"source": {"size": "{{n}}"}, "params": {"n": 1}}),
    "msearch template": post("/INDEX/_msearch/template", [{}, {"source": {"size": 1}}]),
    "render template": post("/_render/template", {"source": {"size": "{{n}}"}, "params": {"n": 1}}),
    "scripts": get("/_scripts/absent"),
    "mapping": get("/INDEX/_mapping"),
    "mapping of a field": get("/INDEX/_mapping/field/title"),
    "settings": get("/INDEX/_settings"),
    "settings, flat": get("/INDEX/_settings?flat_settings=true&include_defaults=false&pretty"),
    "index": get("/INDEX"),
    "aliases": get("/INDEX/_alias"),
    "a missing alias": get("/INDEX/_alias/absent"),
    "cat indices": get("/_cat/indices/INDEX?h=index,docs.count,pri"),
    "cat indices, with a head": get("/_cat/indices/INDEX?v&h=index,docs.count"),
    "cat indices, JSON": get("/_cat/indices/INDEX?format=json&h=index,docs.count"),
    "cat indices, help": get("/_cat/indices?help"),
    "cat count": get("/_cat/count/INDEX?h=count"),
    "cat of nothing": get("/_cat/nonsense"),
    "cat": get("/_cat"),
    "health": get("/_cluster/health/INDEX?filter_path=status,number_of_nodes"),
    "analyze": post("/INDEX/_analyze", {"field": "title", "text": "Two Bridges"}),
    "analyze by GET": get("/_analyze", {"analyzer": "standard", "text": "Мост через реку"}),
    "analyze, wrong": post("/_analyze", {"analyzer": "nonsense", "text": "a"}),
    "resolve": get("/_resolve/index/INDEX"),
    "tasks": get("/_tasks/absent:1"),
    # One that was never made is not asked for: Elasticsearch 8.19 runs out of memory reading it, and ends.
    "scroll": (
        post("/INDEX/_search?scroll=1m", ALL),
        ("SCROLL", "_scroll_id"),
        post("/_search/scroll", {"scroll": "1m", "scroll_id": "SCROLL"}),
        get("/_search/scroll?scroll=1m&scroll_id=SCROLL"),
        Request("DELETE", "/_search/scroll", {"scroll_id": ["SCROLL"]}),
        post("/_search/scroll", {"scroll": "1m", "scroll_id": "SCROLL"}),
    ),
    "point in time, OpenSearch": (
        post("/INDEX/_search/point_in_time?keep_alive=1m"),
        ("PIT", "pit_id"),
        post("/_search", {**ALL, "pit": {"id": "PIT", "keep_alive": "1m"}}),
        Request("DELETE", "/_search/point_in_time", {"pit_id": ["PIT"]}),
    ),
    "point in time, Elasticsearch": (
        post("/INDEX/_pit?keep_alive=1m"),
        ("PIT", "id"),
        post("/_search", {**ALL, "pit": {"id": "PIT", "keep_alive": "1m"}}),
        Request("DELETE", "/_pit", {"id": "PIT"}),
    ),
    "search_after": (
        post("/INDEX/_search", ALL),
        post("/INDEX/_search", {**ALL, "search_after": [1]}),
    ),
    "an asynchronous search": get("/_async_search/absent"),
    "an unknown path": get("/_nonsense"),
    "an unknown path of an index": get("/INDEX/_nonsense"),
    "an unknown path by POST": post("/INDEX/_nonsense/1/2/3", {}),
    "favicon": get("/favicon.ico"),
    "dots": get("/INDEX/_doc/.."),
    "escaped dots": get("/INDEX/_doc/%2E%2E"),
    "dots inside": get("/INDEX/../INDEX/_count"),
    "escaped dots inside": post("/INDEX/%2e%2e/_search", {"size": 0}),
    "dots before a search": post("/INDEX/../INDEX/_search", {"size": 0}),
    "a search with a space": post("/INDEX/_search%20", {"size": 0}),
    "PATCH index": Request("PATCH", "/INDEX"),
    "an escaped name": get("/%49NDEX/_count"),
    "a name in date math": get("/%3Cabsent-%7Bnow%2Fd%7D%3E/_count"),
    "several names": get("/INDEX,INDEX/_count"),
    "names with an escaped comma": get("/INDEX%2CINDEX/_count"),
    "names by pattern": get("/INDEX*/_count"),
    "names with spaces": get("/INDEX%20/_count"),
}  # fmt: skip
