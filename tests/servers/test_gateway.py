"""The gateway in front of real servers: requests of clients are folded, signed, or answered as they were."""

import asyncio
import contextlib
import gzip
import json
import re
import subprocess
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from support import drop_in
from support.clients import a_client, errors, helpers, lines, plain
from support.drop_in import BRIDGE, FIELD, FOLDED, MAPPINGS, OTHER, TEXT, unasked
from support.gateway import running_gateway
from support.servers.admin import send

import shinglefold
from shinglefold.examples import articles
from shinglefold.model.stored_fingerprint import without_fingerprint

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def places(server, engine, shared_index):
    """Indices to read, to write to, and without a recipe; and the open ones."""
    read, written, bare = (shared_index(MAPPINGS) for _ in range(3))
    sites = {}
    for name in (read, written):
        shinglefold.setup(server.url, name, text=["title", "body"], languages=[])
        sites[name] = shinglefold.open(server.url, name)
    yield SimpleNamespace(read=read, written=written, bare=bare, sites=sites)
    for site in sites.values():
        site.close()


@pytest.fixture(scope="module")
def gateway(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gateway")
    with running_gateway(folder / "log", server.url, options=("--workers", "2")) as gateway:
        yield gateway
        assert gateway.stop() == 0


@pytest.fixture(scope="module")
def kit(server, engine, places, gateway):
    """A client of the gateway and one of the server."""
    product = engine.info()["distribution"]
    client, direct = (a_client(product, url, awaited=False) for url in (gateway.url, server.url))
    # Written as an application does, by the client's own helper.
    actions = [{"_index": places.read, **article} for article in articles()]
    assert helpers(product).bulk(client, actions, refresh=True) == (len(actions), [])
    yield SimpleNamespace(
        client=client, plain=direct, product=product, errors=errors(product), engine=engine,
        lines=partial(lines, product), names=places, sites=places.sites, server=server,
    )  # fmt: skip
    client.close()
    direct.close()


@pytest.mark.parametrize("name", drop_in.SEARCHES)
def test_searches_are_those_of_an_open_index_or_the_engines_own(kit, name):
    drop_in.check_a_search(kit, name)


def test_cursors_lead_to_the_end(kit):
    seen: list[str] = []
    cursor: Any = True
    while cursor:
        body = {"query": {"match_all": {}}, "size": 30, "ext": {"dedup": {"cursor": cursor}}}
        page = plain(kit.client.search(index=kit.names.read, body=body))
        seen += [hit["_id"] for hit in page["hits"]["hits"]]
        cursor = page["dedup"]["cursor"]
    assert len(set(seen)) == len(seen)
    folded = kit.sites[kit.names.read].search({"query": {"match_all": {}}, "size": 1, "ext": {"dedup": {}}})
    assert len(seen) >= folded["dedup"]["groups_total"]["value"] > 30


def test_several_searches_at_once(kit):
    drop_in.check_several_searches(kit)


def test_errors_are_the_engines_own(kit):
    drop_in.check_errors(kit)
    with pytest.raises(kit.errors.broken, match="did you mean"):
        kit.client.search(index=kit.names.read, body={**BRIDGE, "ext": {"dedup": {"memberz": 1}}})


def test_writes_are_signed(kit):
    client, index = kit.client, kit.names.written

    def check(name: str, becomes: dict[str, Any]) -> None:
        kit.sites[index].index([{"_id": "of-index", **becomes}])
        expected = kit.engine.get(index, "of-index")["_source"]
        found = kit.engine.get(index, name)["_source"]
        assert without_fingerprint(found, FIELD) == becomes
        left = {key: value for key, value in found[FIELD].items() if value is not None}
        assert left == expected[FIELD]

    client.index(index=index, id="one", body={"title": TEXT, FIELD: {"digest": "forged"}})
    check("one", {"title": TEXT})
    client.create(index=index, id="two", body={"title": OTHER, "views": 1})
    check("two", {"title": OTHER, "views": 1})
    client.update(index=index, id="two", body={"doc": {"title": TEXT}})
    check("two", {"title": TEXT, "views": 1})
    bulk = [
        {"index": {"_index": index, "_id": "3"}}, {"title": TEXT},
        {"update": {"_index": index, "_id": "3"}}, {"doc": {"title": OTHER}},
        {"index": {"_index": index, "_id": "4"}}, {"title": TEXT, "views": "many"},
        {"delete": {"_index": index, "_id": "absent"}},
        {"index": {"_index": kit.names.bare, "_id": "5"}}, {"title": TEXT},
    ]  # fmt: skip
    answer = plain(client.bulk(**kit.lines("operations", bulk)))
    statuses = [item["status"] for one in answer["items"] for item in one.values()]
    assert statuses == [201, 200, 400, 404, 201]
    check("3", {"title": OTHER})
    assert FIELD not in kit.engine.get(kit.names.bare, "5")["_source"]


def test_the_helpers_of_an_awaited_client_work(kit, gateway):
    own, index = helpers(kit.product), kit.names.written
    actions = [{"_index": index, "_id": f"h{n}", "title": f"{n} {TEXT}"} for n in range(50)]
    query = {"query": {"ids": {"values": [action["_id"] for action in actions]}}}

    async def both() -> tuple[Any, list[Any]]:
        async with a_client(kit.product, gateway.url, awaited=True) as client:
            done = await own.async_bulk(client, actions, refresh=True, chunk_size=20)
            return done, [hit async for hit in own.async_scan(client, index=index, query=query)]

    done, hits = asyncio.run(both())
    assert done == (50, [])
    assert len(hits) == 50
    assert all(hit["_source"][FIELD]["signature"] for hit in hits)


def test_headers_say_what_became_of_a_request(kit, gateway):
    names = kit.names

    def search(index: str, body: Any = BRIDGE, **headers: str) -> tuple[str | None, bool]:
        status, got, answer = send(f"{gateway.url}/{index}/_search", "POST", body, **headers)
        assert status == 200
        assert ("x-elastic-product" in got) == (kit.product == "elasticsearch")
        return got.get("x-shinglefold"), "dedup" in json.loads(answer)

    assert search(names.read, FOLDED) == ("folded", True)
    assert search(names.read) == (None, False)
    assert search(names.read, x_shinglefold_fold="true") == ("folded", True)
    assert search(names.read, FOLDED, x_shinglefold_fold="false") == (None, False)
    assert search(names.bare, x_shinglefold_fold="true") == (None, False)
    outcome, told = search(names.bare, FOLDED)
    assert outcome is not None
    assert outcome.startswith("unfolded; reason=")
    assert outcome.isascii()
    assert told
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in ({"index": names.bare}, FOLDED))
    status, got, _ = send(f"{gateway.url}/_msearch", "POST", lines, content_type="application/x-ndjson")
    assert (status, got["x-shinglefold"].partition(";")[0]) == (200, "unfolded")
    # Not all servers that tests start have scripts, and what is refused leaves nothing unsigned.
    script = {"script": {"source": "ctx._source.views = 9"}}
    status, got, _ = send(f"{gateway.url}/{names.written}/_update_by_query", "POST", script)
    assert ('299 shinglefold "update by query writes' in got.get("warning", "")) == (status < 400)
    # Nothing else is marked.
    _, got, _ = send(f"{gateway.url}/{names.written}/_doc/w", "PUT", {"title": TEXT})
    assert got.keys().isdisjoint({"warning", "x-shinglefold"})


@pytest.mark.newest
def test_curl_and_compressed_requests(kit, gateway):
    url = f"{gateway.url}/{kit.names.read}/_search"
    given = ["curl", "--silent", "--show-error", "--compressed", "--include", url]
    run = subprocess.run(
        [*given, "--json", json.dumps(FOLDED)], capture_output=True, text=True, check=True, timeout=30
    )
    head, _, body = run.stdout.replace("\r\n", "\n").partition("\n\n")
    assert "content-encoding: gzip" in head.lower()
    assert plain(json.loads(body)) == plain(kit.sites[kit.names.read].search(FOLDED))
    packed = gzip.compress(json.dumps(FOLDED).encode())
    _, headers, answer = send(url, "POST", packed, content_encoding="gzip")
    assert headers["x-shinglefold"] == "folded"
    assert json.loads(answer)["dedup"]["folded"]
    # The form of the answer is the one that was asked for.
    wanted = "application/vnd.elasticsearch+json; compatible-with=8"
    _, headers, answer = send(f"{url}?pretty", "POST", FOLDED, accept=wanted)
    assert b'\n  "took"' in answer
    if kit.product == "elasticsearch":
        assert headers["content-type"] == "application/vnd.elasticsearch+json;compatible-with=8"


@pytest.mark.newest
def test_a_search_in_the_address_is_folded(kit, gateway):
    path = f"{gateway.url}/{kit.names.read}/_search"
    for body in (FOLDED, {**BRIDGE, "ext": {"dedup": False}}, {**FOLDED, "size": 2, "from": 1}):
        given = urlencode({"source": json.dumps(body), "source_content_type": "application/json"})
        answers = [send(f"{path}?{given}"), send(path, "POST", body)]
        pages = [{**json.loads(text), "took": 0} for _, _, text in answers]
        assert pages[0] == pages[1]
        assert ("dedup" in pages[0]) is (body["ext"]["dedup"] is not False)
    assert send(f"{path}?{given}", "POST", FOLDED)[0] == 400


#: Requests whose body may be in the address, too: its lines.
IN_THE_ADDRESS: dict[str, tuple[Any, ...]] = {
    "_search": (FOLDED,),
    "_search/template": ({"source": FOLDED},),
    "_msearch": ({}, FOLDED, {}, BRIDGE, {}, {**FOLDED, "size": 1}),
    "_msearch/template": ({}, {"source": FOLDED}, {}, {"source": BRIDGE}),
}


@pytest.mark.newest
@pytest.mark.parametrize("end", IN_THE_ADDRESS)
def test_a_body_in_the_address_is_read_as_any_other(kit, gateway, end):
    own, several = IN_THE_ADDRESS[end], end.startswith("_msearch")
    body = b"".join(json.dumps(one).encode() + b"\n" for one in own)
    path, kind = f"/{kit.names.read}/{end}", f"application/{'x-ndjson' if several else 'json'}"
    given = urlencode({"source": body.decode(), "source_content_type": kind})
    bare = b"".join(json.dumps({}).encode() + b"\n" for _ in own)
    if "template" in end and b"no handler" in send(f"{kit.server.url}{path}", "POST", bare)[2]:
        pytest.skip("this server has no templates")
    for wish, outcome in ((None, "folded"), ("false", None)):
        sent = {} if wish is None else {"x_shinglefold_fold": wish}
        answers = [
            send(f"{gateway.url}{path}?{given}", **sent),
            send(f"{gateway.url}{path}", "POST", body, content_type=kind, **sent),
        ]
        assert [(*one[:1], one[1].get("x-shinglefold")) for one in answers] == [(200, outcome)] * 2
        pages = [json.loads(re.sub(rb'"took":\d+', b'"took":0', text)) for _, _, text in answers]
        assert pages[0] == pages[1]
    # Engines refuse both, and what names no type.
    for more, method, sent_body in (
        (given, "POST", body),
        (urlencode({"source": body.decode()}), "GET", None),
    ):
        told = [send(f"{url}{path}?{more}", method, sent_body) for url in (gateway.url, kit.server.url)]
        assert told[0][0] == told[1][0] >= 400
        assert told[0][2] == told[1][2]


def test_always_and_the_prefix_of_the_gateway(kit, tmp_path):
    options = ("--always", "--workers", "1", "--admin-token", "a-token-of-the-tests")
    # The gateway has no credentials, whatever its environment says.
    env = {
        "PATH": "/usr/bin:/bin",
        "SHINGLEFOLD_ENGINE_USER": "someone",
        "SHINGLEFOLD_ENGINE_PASSWORD": "secret",
    }
    with running_gateway(tmp_path / "log", kit.server.url, options=options, env=env) as gateway:
        client = a_client(kit.product, gateway.url, awaited=False)
        found, names = plain(client.search(index=kit.names.read, body=BRIDGE)), kit.names
        assert found == unasked(plain(kit.sites[names.read].search(BRIDGE)))
        for body, more in (
            ({**BRIDGE, "ext": {"dedup": False}}, {}),
            (BRIDGE, {"filter_path": "hits.hits._id"}),
        ):
            assert "dedup" not in plain(client.search(index=names.read, body=body, **more))
        _, headers, _ = send(
            f"{gateway.url}/{names.read}/_search", "POST", BRIDGE, x_shinglefold_fold="false"
        )
        assert "x-shinglefold" not in headers
        sign, texts = f"{gateway.url}/_shinglefold/sign?index={names.read}", {"documents": [{"title": TEXT}]}
        assert send(sign, "POST", texts)[0] == 403
        assert send(f"{gateway.url}/_shinglefold/metrics", authorization="Bearer another")[0] == 403
        status, _, answer = send(sign, "POST", texts, authorization="Bearer a-token-of-the-tests")
        kit.sites[names.written].index([{"_id": "sign", "title": TEXT}])
        stored = kit.engine.get(names.written, "sign")["_source"][FIELD]
        assert (status, json.loads(answer)["documents"]) == (200, [{"fingerprint": stored}])
        for absent in ("shinglefold-absent", names.bare):
            sign = f"{gateway.url}/_shinglefold/sign?index={absent}"
            assert send(sign, "POST", texts, authorization="Bearer a-token-of-the-tests")[0] == 400
        client.close()
        assert gateway.stop() == 0
        assert "secret" not in gateway.log.read_text()


def test_the_gate_of_an_index_and_its_wish_to_be_folded_hold(kit, gateway, new_index):
    index = new_index(MAPPINGS)
    shinglefold.setup(kit.server.url, index, text=["title", "body"], languages=[], gate="refuse", fold=True)
    url = f"{gateway.url}/{index}"
    status, _, answer = send(f"{url}/_doc/1?refresh=true", "PUT", {"title": TEXT})
    assert (status, json.loads(answer)["result"]) == (201, "created")
    status, _, answer = send(f"{url}/_doc", "POST", {"title": f"{TEXT} Heute."})
    error = json.loads(answer)["error"]
    assert (status, error["type"], error["like"]["_id"]) == (409, "near_duplicate_exception", "1")
    lines = [{"index": {}}, {"title": f"{TEXT} Ja."}, {"create": {"_id": "2"}}, {"title": OTHER}]
    bulk = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    _, _, answer = send(f"{url}/_bulk?refresh=true", "POST", bulk)
    items = [next(iter(item.values())) for item in json.loads(answer)["items"]]
    assert [item["status"] for item in items] == [409, 201]
    _, headers, answer = send(f"{url}/_search", "POST", {"query": {"match_all": {}}})
    assert (headers["x-shinglefold"], json.loads(answer)["dedup"]["groups"]) == ("folded", 2)
    _, headers, answer = send(f"{url}/_search", "POST", {"size": 1}, x_shinglefold_fold="false")
    assert "x-shinglefold" not in headers
    assert "dedup" not in json.loads(answer)


@pytest.mark.newest
def test_callers_at_the_same_time_get_their_own_answers(kit, gateway):
    words = ["мост", "город", "школа", "музей"]
    site, wrong = kit.sites[kit.names.read], []

    def search(word: str) -> None:
        body = {"query": {"match": {"title": word}}, "ext": {"dedup": {}}}
        expected = plain(site.search(body))
        for _ in range(10):
            _, _, answer = send(f"{gateway.url}/{kit.names.read}/_search", "POST", body)
            if plain(json.loads(answer)) != expected:
                wrong.append(word)

    threads = [threading.Thread(target=search, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for number in range(5):
        lines = b'{"index":{"_index":"%s","_id":"c%d"}}\n{"title":"%s"}\n'
        bulk = b"".join(
            lines % (kit.names.written.encode(), n, b"text " * n) for n in range(number, number + 50)
        )
        status, _, answer = send(f"{gateway.url}/_bulk", "POST", bulk)
        assert (status, json.loads(answer)["errors"]) == (200, False)
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.newest
def test_an_upstream_that_is_gone(tmp_path, kit):
    with running_gateway(tmp_path / "log", "http://127.0.0.1:9", options=("--workers", "1")) as gateway:
        for method, path, body in (
            ("GET", "/", None), ("POST", "/a/_search", FOLDED), ("POST", "/a/_search", {}),
            ("PUT", "/a/_doc/1", {"title": TEXT}), ("POST", "/_bulk", b'{"index":{"_index":"a"}}\n{}\n'),
        ):  # fmt: skip
            status, _, answer = send(gateway.url + path, method, body)
            assert (status, json.loads(answer)["status"]) == (502, 502)
        status, _, answer = send(f"{gateway.url}/_shinglefold/health")
        assert (status, json.loads(answer)["upstream"]["reachable"]) == (503, False)
        with contextlib.suppress(Exception):
            a_client(kit.product, gateway.url, awaited=False).info()
