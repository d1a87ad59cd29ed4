"""A request that waits too long for a connection fails with the setting that allows more of them."""

import asyncio
from contextlib import closing

import pytest

from shinglefold.engines import Connection, open_async_engine, open_engine
from shinglefold.errors import ConfigError, EngineUnavailable

_PRODUCTS = ["opensearch", "elasticsearch"]
_BUSY = r"all 1 connections were busy for 0.05 s.*SHINGLEFOLD_ENGINE_MAX_CONNECTIONS"


def connection(product: str) -> Connection:
    # Nobody answers there, which would be another error.
    return Connection(("http://127.0.0.1:1",), product=product, timeout=0.05, max_connections=1)


@pytest.mark.parametrize("product", _PRODUCTS)
def test_a_thread_waits_for_a_connection(product):
    with closing(open_engine(connection(product))) as engine:
        with engine._turn():
            for request in (
                lambda: engine.search("pages", {}),
                lambda: engine.get("pages", "1"),
                lambda: list(engine._send([{"_index": "pages", "_source": {}}])),
            ):
                with pytest.raises(EngineUnavailable, match=_BUSY):
                    request()
        with pytest.raises(EngineUnavailable, match="does not answer"):
            engine.search("pages", {})


@pytest.mark.parametrize("product", _PRODUCTS)
def test_a_task_waits_for_a_connection(product):
    async def search() -> None:
        async with open_async_engine(connection(product)) as engine:
            await engine._turns.acquire()
            with pytest.raises(EngineUnavailable, match=_BUSY):
                await engine.search("pages", {})
            if product == "opensearch":
                with pytest.raises(EngineUnavailable, match=_BUSY):
                    await engine.search_pipeline("pages", None)
            engine._turns.release()
            with pytest.raises(EngineUnavailable, match="does not answer"):
                await engine.search("pages", {})

    asyncio.run(search())


def test_there_is_at_least_one():
    with pytest.raises(ConfigError, match=r"max_connections.*at least 1, got 0"):
        Connection(("http://127.0.0.1:1",), max_connections=0)
