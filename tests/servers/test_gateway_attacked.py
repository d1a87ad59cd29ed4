"""Hostile requests to a gateway: it answers or closes, tells nobody what is another's, and stays well."""

import time

import pytest
from support.fuzz.gateway import hostile_requests
from support.fuzz.run import throw
from support.gateway import running_gateway
from support.rest.raw import Request, ask

#: Others are thrown by `make fuzz ARGS="--only gateway"`.
SEED = 20261127


@pytest.mark.newest
def test_no_hostile_request_breaks_the_gateway_or_sees_what_is_anothers(server, tmp_path):
    with hostile_requests(server.url, tmp_path / "log") as target:
        (told,) = throw({"gateway": target.throw}, 150, SEED)
    assert told.broken == ()


#: Heads longer than the engines' limits, which they answer, and then read nothing more on that connection.
LONG = {
    "line": Request("GET", f"/_cat/count?h={'x' * 5_000}"),
    "path": Request("GET", f"/{'x' * 5_000}/_doc/1"),
    "method": Request("X" * 5_000, "/"),
    "header": Request("GET", "/_cat/count", headers={"X-Long": "x" * 30_000}),
    "headers": Request("GET", "/_cat/count", headers={f"X-{number}": "x" * 90 for number in range(300)}),
    "header of a search": Request("POST", "/_search", {"size": 0}, {"X-Long": "x" * 30_000}),
}


@pytest.mark.newest
def test_a_head_that_the_engine_refuses_holds_up_nobody_else(server, tmp_path):
    with running_gateway(tmp_path / "log", server.url, options=("--workers", "1")) as gateway:
        for name, request in LONG.items():
            assert ask(gateway.url, request).status >= 400, name
            begun = time.monotonic()
            for _ in range(3):
                assert ask(gateway.url, Request("GET", "/_cat/count?h=count")).status == 200
            assert time.monotonic() - begun < 5, name
