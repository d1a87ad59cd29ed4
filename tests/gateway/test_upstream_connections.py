"""Connections of the gateway to an engine: used again, closed at either end, never with half a message."""

import asyncio
import socket
import struct
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.gateway import exchange, parts, reply, request, says

from shinglefold.errors import ConfigError

pytest.importorskip("uvicorn")

JSON = "content-type: application/json"


def test_connections_to_the_upstream_are_used_again(setting):
    of_head = reply(b"", JSON, length=2019)
    none = b"HTTP/1.1 204 No Content\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    for answer, method in ((reply(b"{}"), "POST"), (of_head, "HEAD"), (none, "DELETE"), (chunked, "GET")):
        setting.upstream.answers["/any/_path"] = says(answer)
        before = setting.upstream.connections
        for _ in range(5):
            exchange(setting.port, request(method, "/any/_path"))
        assert setting.upstream.connections <= before + 1, method


def test_an_idle_connection_that_is_closed_just_then_is_no_failure(setting):
    served = set()

    async def once(connection):
        if connection.writer in served:
            return False
        served.add(connection.writer)
        connection.writer.write(reply(b"{}", JSON))
        return True

    setting.upstream.answers["/any/_once"] = once
    assert [parts(exchange(setting.port, request("GET", "/any/_once")))[0] for _ in range(4)] == [200] * 4
    # What changes something may have run.
    assert parts(exchange(setting.port, request("POST", "/any/_once", b"{}", JSON)))[0] == 502


def test_an_early_answer_is_sent_on_before_the_body_was_read(setting):
    async def refuses(connection):
        connection.writer.write(reply(b'{"error":"too large"}', JSON, status="413 Too Large"))
        await connection.writer.drain()
        await asyncio.sleep(0.5)
        return False

    setting.upstream.answers["/idx/_large"] = refuses
    with socket.create_connection(("127.0.0.1", setting.port), timeout=10) as own:
        own.sendall(b"PUT /idx/_large HTTP/1.1\r\nhost: a\r\ncontent-length: 3000000\r\n\r\n" + b"x" * 1000)
        assert parts(own.recv(65_536))[0] == 413


def test_half_a_body_of_a_caller_who_leaves_never_looks_whole(setting):
    ended, came = threading.Event(), SimpleNamespace(body=b"")

    async def reads(connection):
        came.body = await connection.reader.read()
        ended.set()
        return False

    setting.upstream.answers["/idx/_half"] = reads
    with socket.create_connection(("127.0.0.1", setting.port)) as own:
        own.sendall(
            b"POST /idx/_half HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        time.sleep(0.2)
    assert ended.wait(2.5)
    assert came.body == b"5\r\nhello\r\n"


@pytest.mark.parametrize(("pause", "expected"), [(0.0, 502), (0.1, 200)])
def test_a_second_answer_to_one_request_reaches_nobody(setting, pause, expected):
    async def twice(connection):
        connection.writer.write(reply(b'{"a":1}', JSON) + (reply(b'{"b":2}', JSON) if not pause else b""))
        await connection.writer.drain()
        if pause:
            await asyncio.sleep(pause)
            connection.writer.write(reply(b'{"b":2}', JSON))
        return True

    setting.upstream.answers["/any/_twice"] = twice
    for _ in range(4):
        status, _, body = parts(exchange(setting.port, request("GET", "/any/_twice")))
        assert status == expected
        assert b'"b"' not in body
        time.sleep(2 * pause)


def test_an_answer_until_the_end_that_is_reset_never_looks_whole(setting):
    async def resets(connection):
        connection.writer.write(b"HTTP/1.1 200 OK\r\n\r\nonly this")
        await connection.writer.drain()
        await asyncio.sleep(0.2)
        own = connection.writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.writer.transport.abort()
        return False

    setting.upstream.answers["/any/_reset"] = resets
    answer = exchange(setting.port, request("GET", "/any/_reset"))
    assert b"only this" in answer
    assert not answer.endswith(b"0\r\n\r\n")


def test_a_missing_authority_is_an_error_before_the_first_request(tmp_path):
    from shinglefold.gateway.http import gateway_app
    from shinglefold.gateway.http.upstream import upstream_connection

    missing = str(tmp_path / "missing.pem")
    connection = replace(upstream_connection("https://localhost:9299"), ca_file=missing)
    with pytest.raises(ConfigError, match="missing"):
        gateway_app(connection, signers=0)
