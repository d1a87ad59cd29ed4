"""Steps of the gateway whose caller leaves, and searches with an ``ext`` that is no object."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

pytest.importorskip("aiohttp")

from support.interceptor import intercept

from shinglefold.gateway.http.folding_wish import with_folding
from shinglefold.gateway.http.interception import Interception
from shinglefold.gateway.rest import Operation, RestRequest


def test_steps_close_what_they_opened_if_the_caller_leaves_while_they_run_in_a_thread():
    entered, release, asked = threading.Event(), threading.Event(), []

    def steps():
        try:
            yield "open"
            entered.set()
            release.wait(10)
            yield "never sent"
        finally:
            yield "close"

    async def perform(request, _given):
        asked.append(request)

    async def leave():
        with ThreadPoolExecutor(1) as threads:
            gateway = SimpleNamespace(
                _perform=perform,
                _searching=threads,
                _metrics=SimpleNamespace(stage=lambda _: nullcontext()),
            )
            given = SimpleNamespace(operation=Operation("search"), request=RestRequest("GET", "/_search"))
            task = asyncio.ensure_future(Interception._run(gateway, steps(), given))
            await asyncio.to_thread(entered.wait, 10)
            task.cancel()
            await asyncio.sleep(0)
            release.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(leave())

    assert asked == ["open", "close"]


@pytest.mark.parametrize("ext", [b"5", b'"dedup"', b'["dedup"]'])
def test_an_ext_that_is_no_object_passes(site, ext):
    body = b'{"ext": %s}' % ext
    request = RestRequest("POST", "/site/_search", body=body)

    for fold in (False, None):
        with_folding("search", request, fold=fold)
    assert intercept(site, None, "/site/_search", body, always=True) is None
