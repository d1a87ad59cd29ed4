"""Folded clients of each kind, beside plain ones."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from support.clients import Blocking, a_client, errors, lines
from support.drop_in import MAPPINGS

import shinglefold
from shinglefold import fold
from shinglefold.examples import articles


@pytest.fixture(scope="module")
def places(server, engine, shared_index):
    """Three indices, with articles, to write to, and without a recipe; and the open ones."""
    names = [shared_index(MAPPINGS) for _ in range(3)]
    sites = {}
    for name in names[:2]:
        shinglefold.setup(server.url, name, text=["title", "body"], languages=[])
        sites[name] = shinglefold.open(server.url, name)
    sites[names[0]].index(articles())
    engine.refresh(names[0])
    yield SimpleNamespace(read=names[0], written=names[1], bare=names[2], sites=sites)
    for site in sites.values():
        site.close()


@pytest.fixture(scope="module", params=["blocking", "awaited"])
def kit(request, server, engine, places):
    """A folded client and the plain one, as blocking ones; ids of documents are of their own."""
    product = engine.info()["distribution"]
    loop = asyncio.new_event_loop()
    awaited = request.param == "awaited"

    async def make() -> Any:
        return a_client(product, server.url, awaited=awaited)

    given = loop.run_until_complete(make())

    def wrapped(client: Any) -> Any:
        return Blocking(client, loop) if awaited else client

    own = fold(given)
    yield SimpleNamespace(
        client=wrapped(own), plain=wrapped(given), folded=own, given=given, names=places, sites=places.sites,
        product=product, lines=partial(lines, product), errors=errors(product), awaited=awaited,
        engine=engine, loop=loop, wrapped=wrapped,
        of=lambda name: f"{request.param}-{name}",
    )  # fmt: skip
    wrapped(given).close()
    loop.close()
