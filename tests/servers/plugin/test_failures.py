"""What goes wrong: the plugin answers as Python does, and fails no search that succeeds without it."""

import json
import threading
import time
from typing import Any
from urllib.error import HTTPError

import pytest
from support.hits import SCHEME
from support.plugin_trials import by_plugin, comparable, documents, indexed
from support.servers.admin import send
from support.servers.faulty import PARTIAL, relay

from shinglefold.contracts.engine import JSON
from shinglefold.engines import open_engine
from shinglefold.rerank import FoldedSearch, FoldOptions

_BODY: JSON = {"query": {"match": {"body": "a"}}, "size": 5, "_source": ["number"]}


def _stored(**changes: Any) -> list[JSON]:
    """Return documents with sound fingerprints, or all with the same change of them."""
    kept = [one for one in documents() if one["number"] % 40 > 7 and one["_dedup"].get("signature")]
    sound = [one for one in kept if one["_dedup"].get("digest", "").startswith(SCHEME.id)]
    return [{**one, "_dedup": {**one["_dedup"], **changes} if changes else one["_dedup"]} for one in sound]


FINGERPRINTS: dict[str, list[JSON]] = {
    "signatures are cut": _stored(signature="AAAA"),
    "signatures are no base64": _stored(signature="!"),
    "digests are cut": _stored(digest="sf9"),
    "another scheme": _stored(digest="sf9-0.ru.300.x"),
    "no signatures": _stored(signature=None),
    "no digests": _stored(digest=None),
    "no fingerprints": [{**one, "_dedup": None} for one in _stored()],
    "no documents": [],
}


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("case", FINGERPRINTS)
def test_fingerprints_that_can_not_be_compared(server, engine, case, shards):
    name = f"shinglefold-test-{case.replace(' ', '-')}"
    with indexed(engine, name, FINGERPRINTS[case], number_of_shards=shards):
        expected = FoldedSearch(engine, SCHEME).search(name, _BODY)
        found = by_plugin(server.url, name, {**_BODY, "ext": {"dedup": {}}})
        assert found["dedup"]["mode"] == "server"
        assert expected["dedup"]["mode"] in ("window", "unfolded")
        if expected["dedup"]["mode"] == "window":
            assert comparable(found) == comparable(expected)
        else:
            shown = [[hit["_id"] for hit in one["hits"]["hits"]] for one in (found, expected)]
            assert shown[0] == shown[1]


#: Settings of an index that refuse the window, or the fetch of its page, and not a plain search.
REFUSING = {
    "the window": {"max_docvalue_fields_search": 1},
    "the page": {"max_terms_count": 1},
}


@pytest.mark.parametrize("case", REFUSING)
def test_a_search_that_succeeds_without_the_plugin_succeeds_with_it(server, engine, case):
    name = f"shinglefold-test-refusing-{case[4:]}"
    with indexed(engine, name, _stored(), **REFUSING[case]):
        plain = engine.search(name, _BODY)
        found = by_plugin(server.url, name, {**_BODY, "ext": {"dedup": {}}})
        expected = FoldedSearch(engine, SCHEME).search(name, _BODY)
        assert found["dedup"]["mode"] == expected["dedup"]["mode"] == "unfolded"
        assert "could not be folded" in found["dedup"]["mode_reason"]
        assert [hit["_id"] for hit in found["hits"]["hits"]] == [hit["_id"] for hit in plain["hits"]["hits"]]
        assert found["hits"]["total"] == plain["hits"]["total"]


#: What makes the search of a page that one shard folds begin again, and the mode of the answer.
AGAIN: dict[str, tuple[JSON, str, str]] = {
    "ids can not be read": ({"scope": "_id"}, "", "unfolded"),
    "a processor takes hits away": ({"scope": "host"}, "truncate_hits", "server"),
}


@pytest.mark.parametrize("case", AGAIN)
def test_what_one_shard_can_not_fold_is_folded_by_the_coordinating_node(server, engine, case):
    options, processor, mode = AGAIN[case]
    setting = "indices.id_field_data.enabled"
    first = [{processor: {"target_size": 3}}] if processor else []
    pipeline = {"request_processors": [{"dedup": options}], "response_processors": [*first, {"dedup": {}}]}
    server.ask("PUT", "/_search/pipeline/folds-again", pipeline)
    server.ask("PUT", "/_cluster/settings", {"transient": {setting: False}})
    try:
        with indexed(engine, "shinglefold-test-again", _stored(), number_of_shards=1) as name:
            body = {**_BODY, "ext": {"dedup": options}}
            found = server.ask("POST", f"/{name}/_search?search_pipeline=folds-again", _BODY)
            assert found["dedup"]["mode"] == mode
            expected = FoldedSearch(engine, SCHEME).search(name, body if mode == "server" else _BODY)
            if mode == "server":
                assert comparable(found) == comparable(expected)
            else:
                assert "could not be folded" in found["dedup"]["mode_reason"]
                assert found["hits"]["total"] == expected["hits"]["total"]
    finally:
        server.ask("PUT", "/_cluster/settings", {"transient": {setting: None}})
        server.ask("DELETE", "/_search/pipeline/folds-again")


#: A breaker is tripped by what a request aggregates, with the plugin and without.
_HEAVY = {"aggs": {"numbers": {"terms": {"field": "number", "size": 5000}}}}


def test_a_circuit_breaker_is_told_as_without_the_plugin(server, index):
    setting = "indices.breaker.request.limit"
    server.ask("PUT", "/_cluster/settings", {"transient": {setting: "1b"}})
    try:
        told = []
        for more in ({}, {"ext": {"dedup": {}}}):
            try:
                found = by_plugin(server.url, index, {**_BODY, **_HEAVY, **more})
                told.append(found["_shards"]["failed"])
            except HTTPError as error:
                told.append(error.code)
        assert told[0] == told[1] != 0
        assert by_plugin(server.url, index, {**_BODY, "ext": {"dedup": {}}})["dedup"]["mode"] == "server"
    finally:
        server.ask("PUT", "/_cluster/settings", {"transient": {setting: None}})


@pytest.mark.parametrize("fault", [500, 429])
def test_a_search_whose_request_fails_is_folded_by_the_client(server, engine, fault):
    auto = FoldOptions(mode="auto")
    with (
        indexed(engine, "shinglefold-test-spoilt", _stored()) as name,
        relay(server.url, "/_search") as between,
        open_engine(between.url) as spoilt,
    ):
        expected = FoldedSearch(engine, SCHEME).search(name, _BODY)
        folded = FoldedSearch(spoilt, SCHEME)
        for faults, mode in (([], "server"), ([fault], "window"), ([], "server")):
            between.faults = list(faults)
            found = folded.search(name, _BODY, auto)
            assert (found["dedup"]["mode"], comparable(found)) == (mode, comparable(expected))
            assert all(str(one) in found["dedup"]["mode_reason"] for one in faults)
        between.faults = [PARTIAL]
        assert folded.search(name, _BODY, auto)["_shards"]["failed"] == 1


@pytest.mark.parametrize("most", [3, 20, 50])
def test_members_are_fetched_in_requests_that_an_index_allows(server, engine, most):
    with indexed(engine, "shinglefold-test-narrow", documents(), max_result_window=most) as name:
        dedup = {"members": 1000, "window": min(40, most - 1), "max_window": most - 1}
        body = {**_BODY, "size": 20 if most > 20 else 1, "ext": {"dedup": dedup}}
        found = by_plugin(server.url, name, body)
        assert found["dedup"]["mode"] == "server", found["dedup"]["mode_reason"]
        assert comparable(found) == comparable(FoldedSearch(engine, SCHEME).search(name, body))


def test_a_page_beyond_the_windows_of_an_index_is_read_by_the_client(engine):
    with indexed(engine, "shinglefold-test-beyond", documents(), max_result_window=50) as name:
        body = {"size": 10, "from": 39, "sort": [{"rank": "asc"}]}
        folded = FoldedSearch(engine, SCHEME)
        found = folded.search(name, body, FoldOptions(mode="auto"))
        assert comparable(found) == comparable(folded.search(name, body))
        assert "reads 49 hits" in found["dedup"]["mode_reason"]


#: Scripts that fail for hits that only the window has, and for hits of the folded page.
SCRIPTS = {"the window": "rank > 60", "the page": "rank % 5 == 3"}


@pytest.mark.parametrize("case", SCRIPTS)
@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("more", [{}, {"highlight": {"fields": {"body": {}}}}])
def test_a_script_that_fails_for_hits_that_are_not_shown_loses_none(server, engine, case, shards, more):
    rank = "long rank = doc['rank'].size() == 0 ? 0 : doc['rank'].value;"
    script = f"{rank} if ({SCRIPTS[case]}) {{ throw new IllegalArgumentException('no') }} return 1"
    body = {"sort": [{"rank": "asc"}], "size": 3, "script_fields": {"one": {"script": script}}, **more}
    with indexed(engine, "shinglefold-test-scripts", documents(), number_of_shards=shards) as name:
        plain = engine.search(name, body)
        assert (plain["_shards"]["failed"], len(plain["hits"]["hits"])) == (0, 3)
        for found in (
            by_plugin(server.url, name, {**body, "ext": {"dedup": {}}}),
            FoldedSearch(engine, SCHEME).search(name, body),
        ):
            told = found["dedup"]
            assert (found["_shards"]["failed"], told["vanished"], "partial" in told) == (0, 0, False)
            assert len(found["hits"]["hits"]) == 3
            if told["mode"] == "unfolded":
                assert "no" in told["mode_reason"].split(": ")[-1]
                assert [one["_id"] for one in found["hits"]["hits"]] == [
                    one["_id"] for one in plain["hits"]["hits"]
                ]
            else:
                assert (case, told["folded"] > 0) == ("the window", True)


FIELDS = ("knn", "match", "template", "wrapper", "random_score", "hybrid")


@pytest.mark.parametrize("field", FIELDS)
def test_fields_may_have_the_names_of_queries(server, index, field):
    match = {"match": {field: {"query": "a"}}}
    query = {"function_score": {"query": {"bool": {"should": [{"match": {"body": "a"}}, match]}}}}
    found = by_plugin(server.url, index, {**_BODY, "query": query, "ext": {"dedup": {}}})
    assert found["dedup"]["mode"] == "server"


_RANDOM = {"function_score": {"functions": [{"random_score": {}}]}}
WITHIN: dict[str, JSON] = {
    "bool": {"bool": {"must_not": [_RANDOM]}},
    "constant_score": {"constant_score": {"filter": _RANDOM}},
    "dis_max": {"dis_max": {"queries": [{"match_all": {}}, _RANDOM]}},
    "boosting": {"boosting": {"positive": {"match_all": {}}, "negative": _RANDOM, "negative_boost": 0.5}},
    "script_score": {"script_score": {"query": _RANDOM, "script": {"source": "1"}}},
    "functions": {"function_score": {"functions": [{"filter": _RANDOM, "weight": 2}]}},
    "scored": {"function_score": {"query": _RANDOM}},
}


@pytest.mark.parametrize("part", [None, *WITHIN])
@pytest.mark.parametrize("place", ["query", "post_filter"])
def test_random_order_is_refused_wherever_it_stands(server, index, part, place):
    query = _RANDOM if part is None else WITHIN[part]
    with pytest.raises(HTTPError) as error:
        by_plugin(server.url, index, {place: query, "ext": {"dedup": {}}})
    assert "random_score" in str(error.value)


def _tasks(server: Any, mark: str) -> list[JSON]:
    found = server.ask("GET", "/_tasks?actions=indices:data/read/search&detailed")
    tasks = [task for node in found["nodes"].values() for task in node["tasks"].values()]
    return [task for task in tasks if task.get("headers", {}).get("X-Opaque-Id") == mark]


def test_who_cancels_a_search_cancels_its_further_searches(server, engine):
    """A window of copies grows from 10 hits to all, and each search takes a while."""
    copies = [{**_stored()[0], "number": number} for number in range(150)]
    slow = "long n = 0; for (int at = 0; at < 300000; at++) { n += at % 7 } return n > 0"
    body = {"query": {"script": {"script": {"source": slow}}}, "ext": {"dedup": {"window": 10}}}
    told: list[object] = []

    def search(index: str) -> None:
        status, _, text = send(f"{server.url}/{index}/_search", "POST", body, x_opaque_id="cancelled")
        told.append(json.loads(text) if status == 200 else text.decode())

    with indexed(engine, "shinglefold-test-cancelled", copies) as name:
        thread = threading.Thread(target=search, args=(name,))
        thread.start()
        children: list[JSON] = []
        while thread.is_alive() and not children:
            children = [task for task in _tasks(server, "cancelled") if task.get("parent_task_id")]
            time.sleep(0.02)
        assert children, "no further search has a parent"
        server.ask("POST", f"/_tasks/{children[0]['parent_task_id']}/_cancel")
        thread.join(60)
        assert "cancel" in str(told)
        assert not _tasks(server, "cancelled")
