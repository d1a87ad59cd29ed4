"""The example site, and a gateway in front of an upstream of the tests, both once a module."""

import socket
from contextlib import closing
from types import SimpleNamespace

import pytest
from support.gateway import RawUpstream, running_gateway

import shinglefold
from shinglefold.examples import temporary_index


@pytest.fixture(scope="module")
def site():
    folder = temporary_index("site")
    with closing(shinglefold.open(folder, "site")) as opened:
        yield opened


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A gateway with short limits in front of an upstream of the tests, and of an address that is down."""
    folder = tmp_path_factory.mktemp("gateway")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        down = taken.getsockname()[1]
    upstream = RawUpstream()
    options = ("--read-timeout", "3", "--connect-timeout", "1", "--max-body", "1", "--workers", "1")
    with running_gateway(
        folder / "log", f"http://127.0.0.1:{down}", upstream.url, options=options
    ) as gateway:
        yield SimpleNamespace(upstream=upstream, gateway=gateway, port=gateway.port)
    upstream.close()
