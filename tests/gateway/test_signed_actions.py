"""``signed``: actions of ``helpers.bulk`` with fingerprints, whatever values clients send in them."""

import asyncio
import itertools
import json
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from uuid import UUID

import pytest
from support.clients import a_client, helpers
from support.drop_in import FIELD, OTHER, TEXT
from support.interceptor import with_note

import shinglefold
from shinglefold.errors import ConfigError, InputError, ShinglefoldError

PRODUCTS = ("opensearch", "elasticsearch")


@contextmanager
def answering(mappings):
    """Serve the mappings of indices, and keep the bulks that come; yield the address and the bulks."""
    bulks = []

    class Answers(BaseHTTPRequestHandler):
        def _send(self, found, status=200):
            body = json.dumps(found).encode()
            self.send_response(status)
            for name, value in (
                ("Content-Type", "application/json"),
                ("X-Elastic-Product", "Elasticsearch"),
                ("Content-Length", str(len(body))),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            name = self.path.split("/")[1].partition("?")[0]
            if name in mappings:
                self._send({name: {"mappings": mappings[name]}})
            else:
                self._send(
                    {"error": {"type": "index_not_found_exception", "reason": "no"}, "status": 404}, 404
                )

        def do_POST(self):
            text = self.rfile.read(int(self.headers["Content-Length"]))
            if "_bulk" in self.path:
                bulks.append([json.loads(line) for line in text.splitlines()])
                verbs = [verb for line in bulks[-1] for verb in line if verb in ("index", "update", "create")]
                self._send(
                    {"errors": False, "items": [{verb: {"_id": "1", "status": 200}} for verb in verbs]}
                )
            else:
                self._send({"template": {}})

        def do_PUT(self):
            self.do_POST()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", bulks=bulks)
        server.shutdown()


@pytest.fixture(scope="module")
def upstream(site):
    own = {"site": with_note(site), "gated": with_note(site, gate="refuse", groups=None), "bare": {}}
    own["later"] = with_note(site, gate="of a later version")
    with answering(own) as found:
        yield found


def clients(url):
    for product in PRODUCTS:
        yield product, shinglefold.fold(a_client(product, url, awaited=False))


#: Values that JSON lacks, and that both clients write.
ODD = {
    "day": date(2026, 11, 28),
    "at": datetime(2026, 11, 28, 23, 5),
    "price": Decimal("1.5"),
    "key": UUID(int=7),
    "pair": (1, 2),
}


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
def test_values_are_sent_as_the_client_sends_them(site, upstream):
    for product, client in clients(upstream.url):
        action = {"_index": "site", "_id": "1", "title": TEXT, **ODD}
        plain, own = shinglefold.unfold(client), helpers(product)
        own.bulk(plain, [action, {**action, "_op_type": "update", "doc": ODD}])
        (expected,) = upstream.bulks
        upstream.bulks.clear()
        made = shinglefold.signed(
            client, [action, {"_op_type": "update", "_index": "site", "_id": "1", "doc": ODD}]
        )
        own.bulk(plain, made)
        found = upstream.bulks.pop()
        assert found[1].pop(FIELD) == next(site.sign([{"title": TEXT}]))[FIELD]
        assert found[:2] == expected[:2]
        assert found[3]["doc"] == expected[3]["doc"]


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
def test_each_action_comes_as_it_is_given_but_for_its_fingerprint(site, upstream):
    given = [
        {"_index": "site", "_id": 1, "routing": "r", "title": TEXT, FIELD: {"digest": "forged"}},
        {"_op_type": "create", "_index": "site", "_id": "2", "_source": {"title": OTHER}},
        {"_op_type": "update", "_index": "site", "_id": "3", "doc": {"host": "x", FIELD: {"digest": "x"}}},
        {"_op_type": "update", "_index": "site", "_id": "3", "doc": {"host": "x"}},
        {"_op_type": "delete", "_index": "site", "_id": "4"},
        {"_index": "bare", "title": TEXT},
        {"_index": "site", "_source": []},
        json.dumps({"title": TEXT}, indent=1),
        {"title": TEXT},
    ]
    one, other = (next(site.sign([{"title": text}]))[FIELD] for text in (TEXT, OTHER))
    expected = [
        {
            "_op_type": "index",
            "_index": "site",
            "_id": 1,
            "routing": "r",
            "_source": {"title": TEXT, FIELD: one},
        },
        {"_op_type": "create", "_index": "site", "_id": "2", "_source": {"title": OTHER, FIELD: other}},
        {"_op_type": "update", "_index": "site", "_id": "3", "doc": {"host": "x"}},
        *given[3:7],
        *[{"_op_type": "index", "_index": "site", "_source": {"title": TEXT, FIELD: one}}] * 2,
    ]
    for _, client in clients(upstream.url):
        assert list(shinglefold.signed(client, iter(given), "site")) == expected


def collected(product, url, actions, *more):
    async def collect():
        client = shinglefold.fold(a_client(product, url, awaited=True))
        try:
            return [one async for one in shinglefold.signed(client, actions, *more)]
        finally:
            await client.close()

    return asyncio.run(collect())


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
@pytest.mark.parametrize("count", [0, 1, 199, 200, 201, 400])
def test_no_action_is_lost_between_blocks(upstream, count):
    actions = [{"_index": "bare", "_id": str(at)} for at in range(count)]

    async def awaited():
        for one in actions:
            yield one

    for product in PRODUCTS:
        client = shinglefold.fold(a_client(product, upstream.url, awaited=False))
        assert list(shinglefold.signed(client, iter(actions))) == actions
        for given in (iter(actions), awaited()):
            assert collected(product, upstream.url, given) == actions


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
def test_actions_are_read_as_they_are_needed(upstream):
    for _, client in clients(upstream.url):
        read = []
        endless = ({"_index": "bare", "_id": read.append(at) or at} for at in itertools.count())
        assert next(shinglefold.signed(client, endless))["_id"] == 0
        assert len(read) == 200


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"_index": "site", "_id": "b", "_source": {"_id": "b"}}, "'b' for 'site' can't be signed: Field"),
        ('{"title":', "None for 'site' can't be signed: it is not JSON"),
    ],
)
def test_actions_before_one_that_cannot_be_signed_are_yielded(upstream, action, why):
    for _, client in clients(upstream.url):
        made = shinglefold.signed(client, [{"_id": "1", "title": TEXT}, action, {"_id": "2"}], "site")
        assert next(made)["_id"] == "1"
        with pytest.raises(InputError, match=why):
            next(made)


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
def test_actions_that_need_more_than_a_fingerprint_are_told(upstream):
    updates = [{"doc": {"title": OTHER}}, {"script": "ctx._source.title = 'x'"}]
    for product, client in clients(upstream.url):
        for update in updates:
            action = {"_op_type": "update", "_index": "site", "_id": "1", **update}
            with pytest.warns(UserWarning, match="of '1' in 'site'.*send updates by the folded client"):
                assert list(shinglefold.signed(client, [action])) == [action]
        with pytest.warns(UserWarning, match="past its gate") as told:
            (made,) = shinglefold.signed(client, [{"_index": "gated", "_id": "1", "title": TEXT}])
        assert len([one for one in told if "past its gate" in str(one.message)]) == 1
        assert (made["_op_type"], made["_id"], made["_source"].keys()) == ("index", "1", {"title", FIELD})
        with pytest.raises(ConfigError, match=r"names no index: signed\(…, index=…\), or _index in"):
            list(shinglefold.signed(client, [{"_id": "1"}]))
        with pytest.raises(ConfigError, match="fold"):
            shinglefold.signed(a_client(product, upstream.url, awaited=False), [])


class Unwritable:
    pass


LOOP = {}
LOOP["own"] = LOOP
DEEP = {}
for _ in range(20_000):
    DEEP = {"in": DEEP}


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"tags": {"a"}}, r"document 'b' .*the set in \[tags\]"),
        ({"_source": {"a": {"b": [1, Unwritable()]}}}, r"document 'b' .*the Unwritable in \[a\.b\.1\]"),
        ({"_op_type": "update", "doc": {"a": 1j}}, r"document 'b' .*the complex in \[doc\.a\]"),
        ({"a": {(1, 2): 1}}, r"document 'b' .*the dict in \[a\]"),
        ({(1, 2): 1}, "document 'b' .*can't write this dict"),
        ({"a": LOOP}, r"document 'b' .*the dict in \[a\.own\.own"),
        ({"a": DEEP}, r"document 'b' .*the dict in \[a\.in\.in"),
        ({"a": 10**5000}, r"document 'b' .*the int in \[a\]"),
        (None, "an action must be an object or a text"),
        (7, "an action must be an object or a text"),
        ([], "an action must be an object or a text"),
    ],
)
def test_an_action_that_cannot_be_written_is_told_and_those_before_it_are_yielded(upstream, action, why):
    given = {"_index": "site", "_id": "b", **action} if isinstance(action, dict) else action
    others = [{"_index": "bare", "_id": str(at)} for at in range(3)]
    for product, client in clients(upstream.url):
        made = shinglefold.signed(client, [*others, given, *others])
        assert [next(made) for _ in others] == others
        with pytest.raises(InputError, match=why) as told:
            next(made)
        assert "yielded all actions before this one, and none after it" in told.value.__notes__[0]
        with pytest.raises(InputError, match=why):
            collected(product, upstream.url, iter([*others, given]))


@pytest.mark.filterwarnings("ignore:'site' numbers groups")
def test_actions_before_one_of_an_index_that_cannot_be_signed_are_yielded(upstream):
    for _, client in clients(upstream.url):
        for last in ({"_id": "2"}, {"_index": "later", "_id": "2", "title": TEXT}):
            made = shinglefold.signed(client, [{"_index": "site", "_id": "1", "title": TEXT}, last])
            assert next(made)["_id"] == "1"
            with pytest.raises(ShinglefoldError) as told:
                next(made)
            assert told.value.__notes__
