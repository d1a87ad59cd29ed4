# A row is one line, however long it is.
# ruff: noqa: E501
"""Requests that write: the same in turn to two indices alike, to INDEX directly and to its twin by the gateway."""

from collections.abc import Mapping
from typing import Any

from support.rest.raw import Request
from support.rest.reads import Row, get, headers, post

TEXT = "The ferry to the island leaves at noon and at six, and from May on it runs on Sundays, too, said the port."
OTHER = "The town hall was painted yellow last week, which some of its neighbours like, and others do not like at all."
PAGE: Any = {"title": "Ferry", "body": TEXT, "number": 1}


def put(target: str, body: Any = None, **more: Any) -> Request:
    return Request("PUT", target, body, **more)


def delete(target: str, body: Any = None) -> Request:
    return Request("DELETE", target, body)


def _life(id_: str) -> Row:
    """A document is written, read, updated and deleted under an id, as it is put into the path."""
    return (
        put(f"/INDEX/_doc/{id_}", PAGE),
        get(f"/INDEX/_doc/{id_}"),
        Request("HEAD", f"/INDEX/_doc/{id_}"),
        post(f"/INDEX/_update/{id_}", {"doc": {"body": OTHER}}),
        get(f"/INDEX/_source/{id_}"),
        delete(f"/INDEX/_doc/{id_}"),
        delete(f"/INDEX/_doc/{id_}"),
    )


#: Documents written one at a time.
DOCUMENTS: Mapping[str, Row] = {
    **{
        f"id {id_}": _life(id_)
        for id_ in (
            *("plain", "a%2Fb", "a%252Fb", "a+b", "a%2Bb", "a%20b", "%D0%BC%D0%BE%D1%81%D1%82", "a%3Fb", "a%23b"),
            *("a%26b", "a=b", "a;b", "a,b", "a:b", "_under", "_search", "_doc", "%25", "%E2%82%AC", "a%22b", "*"),
            *("http%3A%2F%2Fexample.org%2Fa%3Fb%3Dc", "x" * 512, "%7Btemplate%7D", "~tilde", "a%5Cb", "a@b", "%00"),
        )
    },
    "an id too long": put(f"/INDEX/_doc/{'x' * 513}", PAGE),
    "an id with a slash": put("/INDEX/_doc/a/b", PAGE),
    "an empty id": put("/INDEX/_doc/", PAGE),
    "an id that is not UTF-8": put("/INDEX/_doc/%ff", PAGE),
    "create": (put("/INDEX/_create/c1", PAGE), put("/INDEX/_create/c1", PAGE), post("/INDEX/_create/c1", PAGE)),
    "op_type": (put("/INDEX/_doc/o1?op_type=create", PAGE), put("/INDEX/_doc/o1?op_type=create", PAGE)),
    "op_type of nonsense": put("/INDEX/_doc/o2?op_type=nonsense", PAGE),
    "without an id": post("/INDEX/_doc", PAGE),
    "without an id, PUT": put("/INDEX/_doc", PAGE),
    "refresh": (put("/INDEX/_doc/r1?refresh=true", PAGE), post("/INDEX/_count", {"query": {"ids": {"values": ["r1"]}}})),
    "refresh, wait_for": put("/INDEX/_doc/r2?refresh=wait_for", PAGE),
    "refresh of nonsense": put("/INDEX/_doc/r3?refresh=nonsense", PAGE),
    "routing": (put("/INDEX/_doc/ro?routing=a%2Fb", PAGE), get("/INDEX/_doc/ro?routing=a%2Fb")),
    "guards": (
        put("/INDEX/_doc/g1?version=5&version_type=external", PAGE),
        put("/INDEX/_doc/g1?version=4&version_type=external", PAGE),
        put("/INDEX/_doc/g1?if_seq_no=999999&if_primary_term=1", PAGE),
        delete("/INDEX/_doc/g1?version=4&version_type=external"),
    ),
    "pretty": put("/INDEX/_doc/p1?pretty", PAGE),
    "filter_path": put("/INDEX/_doc/p2?filter_path=result", PAGE),
    "yaml": put("/INDEX/_doc/p3?format=yaml", PAGE),
    "accept yaml": put("/INDEX/_doc/p4", PAGE, **headers(Accept="application/yaml")),
    "gzip answer": put("/INDEX/_doc/p5", PAGE, **headers(Accept_Encoding="gzip")),
    "sent as gzip": (put("/INDEX/_doc/s1", PAGE, sent="gzip"), get("/INDEX/_source/s1")),
    "sent in chunks": (put("/INDEX/_doc/s2", PAGE, sent="chunked"), get("/INDEX/_source/s2")),
    "sent after 100": (put("/INDEX/_doc/s3", PAGE, sent="expect"), get("/INDEX/_source/s3")),
    "sent as YAML": (put("/INDEX/_doc/s4", f"title: Ferry\nbody: {TEXT}\n", **headers(Content_Type="application/yaml")), get("/INDEX/_source/s4")),
    "charset": put("/INDEX/_doc/s5", PAGE, **headers(Content_Type="application/json;charset=utf-8")),
    "wrong content type": put("/INDEX/_doc/s6", PAGE, **headers(Content_Type="text/plain")),
    "timeout, active shards": put("/INDEX/_doc/s7?timeout=5s&wait_for_active_shards=1", PAGE),
    "an unknown parameter": put("/INDEX/_doc/s8?nonsense=1", PAGE),
    "an empty body": put("/INDEX/_doc/e1", b""),
    "no body": put("/INDEX/_doc/e2"),
    "an empty document": (put("/INDEX/_doc/e3", {}), get("/INDEX/_source/e3")),
    "an array": put("/INDEX/_doc/e4", "[1]"),
    "a number": put("/INDEX/_doc/e5", "1"),
    "broken JSON": put("/INDEX/_doc/e6", '{"title": '),
    "JSON and more": put("/INDEX/_doc/e7", '{"title": "a"} {"title": "b"}'),
    "a key twice": put("/INDEX/_doc/e8", '{"title": "a", "title": "b"}'),
    "not UTF-8": put("/INDEX/_doc/e9", b'{"title": "\xff"}'),
    "half a pair": (put("/INDEX/_doc/e10", '{"title": "\\ud83d", "body": "' + TEXT + '"}'), get("/INDEX/_source/e10")),
    "numbers": (
        put("/INDEX/_doc/n1", f'{{"body": "{TEXT}", "raw": {{"a": 1.0, "b": 1e3, "c": 12345678901234567890, "d": 0.1, "e": -0.0}}}}'),
        get("/INDEX/_source/n1"),
    ),
    "a wrong type": put("/INDEX/_doc/t1", {**PAGE, "number": "many"}),
    "a metadata field": put("/INDEX/_doc/t2", {**PAGE, "_id": "t2"}),
    "odd fields": put("/INDEX/_doc/t3", {**PAGE, "a..b": 1}),
    "a missing index": put("/absent-index/_doc/1?require_alias=true", PAGE),
    "a name that no index has": put("/Upper/_doc/1", PAGE),
    "a missing pipeline": put("/INDEX/_doc/pi?pipeline=absent", PAGE),
    "DELETE without an id": delete("/INDEX/_doc"),
    "PATCH": Request("PATCH", "/INDEX/_doc/1", PAGE),
    "types of old": put("/INDEX/page/1", PAGE),
    "update": (
        put("/INDEX/_doc/u1", PAGE),
        post("/INDEX/_update/u1", {"doc": {"number": 2}}),
        post("/INDEX/_update/u1", {"doc": {"number": 2}}),
        post("/INDEX/_update/u1?_source=true", {"doc": {"body": OTHER}}),
        post("/INDEX/_update/u1?_source=title,number", {"doc": {"title": "Hall"}}),
        post("/INDEX/_update/u1", {"doc": {"title": "Hall"}, "detect_noop": False}),
        get("/INDEX/_doc/u1"),
        post("/INDEX/_update/u1?if_seq_no=999999&if_primary_term=1", {"doc": {"title": "x"}}),
        post("/INDEX/_update/u1?retry_on_conflict=3&refresh=true", {"doc": {"title": "y"}}),
        post("/INDEX/_update/u1?pretty", {"doc": {"title": "z"}}),
    ),
    "update, retries": (
        put("/INDEX/_doc/u6", PAGE),
        post("/INDEX/_update/u6?retry_on_conflict=x", {"doc": {"title": "y"}}),
        post("/INDEX/_update/u6?retry_on_conflict=3&if_seq_no=1&if_primary_term=1", {"doc": {"title": "y"}}),
        post("/INDEX/_update/u7?retry_on_conflict=x", {"doc": {"title": "y"}, "doc_as_upsert": True}),
        get("/INDEX/_source/u6"),
    ),
    "update, missing": post("/INDEX/_update/absent", {"doc": {"title": "x"}}),
    "update, upserts": (
        post("/INDEX/_update/u2", {"doc": {"title": "x"}, "doc_as_upsert": True}),
        post("/INDEX/_update/u2", {"doc": {"body": TEXT}, "doc_as_upsert": True}),
        post("/INDEX/_update/u3", {"doc": {"title": "x"}, "upsert": PAGE}),
        get("/INDEX/_source/u2"),
        get("/INDEX/_source/u3"),
    ),
    "update, nothing": post("/INDEX/_update/u4", {}),
    "update, an empty body": post("/INDEX/_update/u4", b""),
    "update, unknown keys": post("/INDEX/_update/u4", {"nonsense": 1}),
    "update, null": post("/INDEX/_update/u4", {"doc": None}),
    "update, broken JSON": post("/INDEX/_update/u4", '{"doc": '),
    "update, a missing index": post("/absent-index/_update/1?require_alias=true", {"doc": {"title": "x"}}),
    "update, GET": get("/INDEX/_update/u4"),
    "update by a script": (put("/INDEX/_doc/u5", PAGE), post("/INDEX/_update/u5", {"script": {"source": "ctx._source.number = 7"}}), get("/INDEX/_source/u5")),
    "update by query": (
        put("/INDEX/_doc/q1?refresh=true", PAGE),
        post("/INDEX/_update_by_query?refresh=true&conflicts=proceed", {"query": {"ids": {"values": ["q1"]}}}),
        post("/INDEX/_update_by_query", {"query": {"nonsense": {}}}),
        post("/INDEX/_delete_by_query?refresh=true", {"query": {"ids": {"values": ["q1"]}}}),
        post("/INDEX/_delete_by_query", {}),
    ),
    "reindex": (
        put("/INDEX/_doc/x1?refresh=true", PAGE),
        post("/_reindex", {"source": {"index": "INDEX", "query": {"ids": {"values": ["x1"]}}}, "dest": {"index": "INDEX", "op_type": "create"}, "conflicts": "proceed"}),
        post("/_reindex", {"source": {"index": "absent-index"}, "dest": {"index": "INDEX"}}),
        post("/_reindex", {}),
    ),
    "aliases": (
        post("/_aliases", {"actions": [{"add": {"index": "INDEX", "alias": "INDEX-alias"}}]}),
        put("/INDEX-alias/_doc/al", PAGE),
        get("/INDEX-alias/_source/al"),
        get("/_alias/INDEX-alias"),
        delete("/INDEX/_alias/INDEX-alias"),
    ),
    "mapping and settings": (
        put("/INDEX/_mapping", {"properties": {"new": {"type": "keyword"}}}),
        put("/INDEX/_mapping", {"properties": {"new": {"type": "text"}}}),
        put("/INDEX/_settings", {"index": {"refresh_interval": "2s"}}),
        put("/INDEX/_settings", {"index": {"nonsense": 1}}),
        post("/INDEX/_refresh"),
        post("/INDEX/_flush"),
        post("/INDEX/_forcemerge?max_num_segments=1"),
        post("/INDEX/_cache/clear"),
    ),
    "an index is made and deleted": (
        put("/INDEX-new", {"settings": {"number_of_replicas": 0}}),
        put("/INDEX-new"),
        post("/INDEX-new/_close"),
        post("/INDEX-new/_search", {}),
        put("/INDEX-new/_doc/1", PAGE),
        post("/INDEX-new/_open"),
        delete("/INDEX-new"),
        delete("/INDEX-new"),
    ),
}  # fmt: skip


def _bulk(*lines: Any, target: str = "/_bulk", **more: Any) -> Request:
    return post(target, list(lines), **more)


def _of(action: str, id_: str | None = None, **more: Any) -> Any:
    return {action: {"_index": "INDEX", **({} if id_ is None else {"_id": id_}), **more}}


_MIXED: tuple[Any, ...] = (
    *(_of("index", "b1"), PAGE, _of("create", "b2"), {**PAGE, "body": OTHER}, _of("create", "b2"), PAGE),
    *(_of("update", "b1"), {"doc": {"body": OTHER}}, _of("update", "b2"), {"doc": {"number": 9}}),
    *(_of("update", "absent"), {"doc": {"body": OTHER}}, _of("update", "b3"), {"doc": PAGE, "doc_as_upsert": True}),
    *(_of("index", "b4"), {"number": "many"}, _of("delete", "b2"), _of("delete", "absent")),
    *(_of("index"), PAGE, _of("index", "b5", routing="r"), PAGE, _of("index", "b5", if_seq_no=999_999, if_primary_term=1), PAGE),
    *(_of("update", "b1", _source=True), {"doc": {"number": 3}}, _of("update", "b1"), {"doc": {"number": 3}}),
)  # fmt: skip
_EVENT: Any = {
    "@timestamp": "2026-11-26T22:00:00.000Z",
    "message": TEXT,
    "body": TEXT,
    "host": {"name": "web1"},
}
_NULLS = {"_id": None, "_index": "INDEX", "routing": None}
_FILTER = "filter_path=errors,items.*.error,items.*.status"
#: Bulks; the last ones are those of log shippers, as their sources and pages have them.
BULKS: Mapping[str, Row] = {
    "all actions": (_bulk(*_MIXED), post("/INDEX/_refresh"), post("/INDEX/_search", {"sort": ["_doc"], "_source": ["number"], "size": 0}), get("/INDEX/_source/b1")),
    "all actions, PUT": Request("PUT", "/_bulk?refresh=true", list(_MIXED)),
    "pretty": _bulk(*_MIXED, target="/INDEX/_bulk?pretty"),
    "yaml": _bulk(_of("index", "y1"), PAGE, target="/_bulk?format=yaml"),
    "index in the path": (_bulk({"index": {"_id": "i1"}}, PAGE, {"index": {}}, PAGE, target="/INDEX/_bulk"), get("/INDEX/_source/i1")),
    "filter_path": _bulk(*_MIXED, target=f"/_bulk?{_FILTER}"),
    "filter_path of nothing": _bulk(_of("index", "f1"), PAGE, target="/_bulk?filter_path=items.*.error"),
    "filter_path of ids": _bulk(*_MIXED, target="/_bulk?filter_path=items.*._id"),
    "sent as gzip": _bulk(*_MIXED, sent="gzip"),
    "sent in chunks": _bulk(*_MIXED, sent="chunked"),
    "sent as gzip in chunks": _bulk(*_MIXED, sent="gzip chunked"),
    "sent after 100": _bulk(*_MIXED, sent="expect"),
    "a gzip answer": _bulk(*_MIXED, **headers(Accept_Encoding="gzip")),
    "as JSON": _bulk(_of("index", "j1"), PAGE, **headers(Content_Type="application/json")),
    "as JSON, charset": _bulk(_of("index", "j1"), PAGE, **headers(Content_Type="application/json; charset=utf-8")),
    "a wrong content type": _bulk(_of("index", "j2"), PAGE, **headers(Content_Type="text/plain")),
    "lines with CR": post("/INDEX/_bulk", b'{"index": {"_id": "cr"}}\r\n{"title": "a"}\r\n'),
    "empty lines": post("/INDEX/_bulk", b'\n{"index": {"_id": "el"}}\n{"title": "a"}\n\n'),
    "an empty line for a document": post("/INDEX/_bulk", b'{"index": {"_id": "eb"}}\n\n{"delete": {"_id": "el"}}\n \n{"index": {"_id": "eb"}}\n{"title": "a"}\n'),
    "ids that are no texts": (
        post("/INDEX/_bulk", b"".join(b'{"index": {"_id": %b}}\n{"title": "a"}\n' % one for one in (b"1", b"1.0", b"1e2", b"-0", b"true", b"false", b'""', b"9" * 30))),
        post("/INDEX/_bulk?refresh=true", b"".join(b'{"update": {"_id": %b}}\n{"doc": {"title": "b"}}\n' % one for one in (b"1", b"1.0", b"1e2", b"true", b"2", b"null"))),
        post("/INDEX/_bulk?refresh=true", b"".join(b'{"update": {"_id": %b}}\n{"doc": {"title": "b"}}\n' % one for one in (b"1", b"1.0", b"1e2", b"true", b"2"))),
        get("/INDEX/_source/1e2"), get("/INDEX/_source/true"),
    ),
    "a key twice": post("/INDEX/_bulk", b'{"index": {"_id": "kt"}}\n{"title": "a", "title": "b"}\n{"index": {"_id": "kt"}}\n{"title": "a"}\n{"update": {"_id": "kt"}}\n{"doc": {"title": "a"}}\n'),
    "a key twice in an update": post("/INDEX/_bulk", b'{"update": {"_id": "kt"}}\n{"doc": {"title": "a", "title": "b"}}\n'),
    "routings that are no texts": post("/INDEX/_bulk", b"".join(b'{"index": {"_id": "rn", "routing": %b}}\n{"title": "a"}\n' % one for one in (b"1", b"1.50", b"true", b"null"))),
    **{
        f"an action of {one}": post("/INDEX/_bulk", f'{one}\n{{"title": "a"}}\n'.encode())
        for one in ('{"index": {"_id": [1]}}', '{"index": {"_id": {}}}', '{"index": null}', '{"index": []}', '{"index": {"_id": "1", "_id": "2"}}', '[1]', '{}')
    },
    "no end of line": post("/INDEX/_bulk", b'{"index": {"_id": "ne"}}\n{"title": "a"}'),
    "empty": post("/_bulk", b""),
    "no body": post("/_bulk"),
    "no JSON": post("/_bulk", b"not a bulk"),
    "an end of line alone": post("/_bulk", b"\n"),
    "no document": post("/INDEX/_bulk", b'{"index": {"_id": "nd"}}\n'),
    "an unknown action": post("/INDEX/_bulk", b'{"nonsense": {"_id": "ua"}}\n{"title": "a"}\n'),
    "an unknown key": post("/INDEX/_bulk", b'{"index": {"_id": "uk", "nonsense": 1}}\n{"title": "a"}\n'),
    "a type": post("/INDEX/_bulk", b'{"index": {"_id": "ty", "_type": "_doc"}}\n{"title": "a"}\n'),
    "an action that is no object": post("/INDEX/_bulk", b'{"index": 1}\n{"title": "a"}\n'),
    "an array of a document": post("/INDEX/_bulk", b'{"index": {"_id": "ar"}}\n[1]\n{"index": {"_id": "ar2"}}\n{"title": "a"}\n'),
    "broken JSON in a document": post("/INDEX/_bulk", b'{"index": {"_id": "bj"}}\n{"title": \n{"index": {"_id": "bj2"}}\n{"title": "a"}\n'),
    "broken JSON in an action": post("/INDEX/_bulk", b'{"index": {"_id": "ba"}}\n{"title": "a"}\n{"index": \n{"title": "a"}\n'),
    "not UTF-8": post("/INDEX/_bulk", b'{"index": {"_id": "nu"}}\n{"title": "\xff"}\n'),
    "no index anywhere": post("/_bulk", b'{"index": {"_id": "ni"}}\n{"title": "a"}\n'),
    "an array": post("/_bulk", "[]\n"),
    "a missing index": _bulk({"index": {"_index": "absent-index", "_id": "1", "require_alias": True}}, PAGE, _of("index", "mi"), PAGE),
    "a name that no index has": _bulk({"index": {"_index": "Upper", "_id": "1"}}, PAGE, _of("index", "mi"), PAGE),
    "an unknown parameter": _bulk(_of("index", "up"), PAGE, target="/_bulk?nonsense=1"),
    "parameters": _bulk(_of("index", "pa"), PAGE, target="/_bulk?refresh=wait_for&timeout=5s&wait_for_active_shards=1&routing=r&require_alias=false"),
    "a missing pipeline": _bulk(_of("index", "mp"), PAGE, target="/_bulk?pipeline=absent"),
    "GET": get("/_bulk", [_of("index", "ge"), PAGE]),
    "retries of nonsense": (
        _bulk(_of("index", "re"), PAGE),
        _bulk(_of("update", "re", retry_on_conflict="x"), {"doc": {"title": "y"}}),
        _bulk(_of("update", "re", retry_on_conflict="2"), {"doc": {"title": "y"}}),
        _bulk(_of("update", "re", retry_on_conflict=3, if_seq_no=1, if_primary_term=1), {"doc": {"title": "z"}}),
    ),
    "updates of one document": (
        _bulk(_of("index", "ud"), PAGE, *[line for number in range(5) for line in (_of("update", "ud"), {"doc": {"title": f"t{number}"}})]),
        get("/INDEX/_doc/ud"),
    ),
    "a script": _bulk(_of("index", "sc"), PAGE, _of("update", "sc"), {"script": {"source": "ctx._source.number = 7"}}),
    "large": _bulk(*[line for number in range(300) for line in (_of("index", f"l{number}"), {**PAGE, "body": f"{number} {TEXT * 20}"})]),
    "Logstash": _bulk({"index": _NULLS}, _EVENT, {"create": _NULLS}, _EVENT, target=f"/_bulk?{_FILTER}", sent="gzip", **headers(Content_Type="application/json", User_Agent="Logstash/9.2.0", X_Elastic_Product_Origin="logstash-output-elasticsearch", Connection="Keep-Alive")),
    "Logstash, an update": _bulk({"update": {"_id": "ls", "_index": "INDEX", "routing": None, "retry_on_conflict": 1}}, {"doc": _EVENT, "doc_as_upsert": True}, {"delete": {**_NULLS, "_id": "ls"}}),
    "Logstash, a data stream": _bulk({"create": {**_NULLS, "_index": "INDEX-stream"}}, _EVENT, target=f"/_bulk?{_FILTER}", sent="gzip", **headers(Content_Type="application/json")),
    "Logstash looks who is there": (get("/"), get("/_license"), get("/_xpack"), Request("HEAD", "/_index_template/logstash"), Request("HEAD", "/_template/logstash")),
    "Fluent Bit": _bulk({"create": {"_index": "INDEX"}}, _EVENT, {"create": {"_index": "INDEX"}}, _EVENT, sent="gzip", **headers(User_Agent="Fluent-Bit")),
    "Fluent Bit, types": _bulk({"create": {"_index": "INDEX", "_type": "_doc"}}, _EVENT, **headers(User_Agent="Fluent-Bit")),
    "Fluent Bit, ids": _bulk(_of("create", "0a1b"), _EVENT, _of("create", "0a1b"), _EVENT, target="/_bulk/?pipeline=_none"),
    "Vector": _bulk({"index": {"_index": "INDEX"}}, _EVENT, target="/_bulk?timeout=60s", **headers(Accept_Encoding="zstd,gzip,deflate,br", User_Agent="Vector/0.51.1")),
    "Vector, a data stream": _bulk({"create": {"_index": "INDEX-stream"}}, _EVENT, target="/_bulk?timeout=60s", sent="gzip"),
    "Vector looks who is there": (get("/_cluster/health?filter_path=status"), get("/"),),
    "Data Prepper": _bulk({"create": {"_index": "INDEX"}}, _EVENT, _of("index", "dp"), _EVENT, target="/_bulk?filter_path=errors,took,items.*.error,items.*.status,items.*._index,items.*._id", **headers(Content_Type="application/json; charset=UTF-8", Accept="application/json; charset=UTF-8")),
    "Filebeat": _bulk({"create": {"_index": "INDEX"}}, _EVENT, {"index": {"_index": "INDEX"}}, _EVENT, target="/_bulk?filter_path=errors%2Citems.%2A.error%2Citems.%2A.status", sent="gzip", **headers(Content_Type="application/json; charset=UTF-8", X_Elastic_Product_Origin="beats")),
}  # fmt: skip

__all__ = ["BULKS", "DOCUMENTS", "PAGE", "TEXT"]
