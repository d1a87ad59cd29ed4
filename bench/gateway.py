"""What the gateway costs: untouched searches, folded pages, many connections, and bulks, beside a direct one.

A gateway of its own runs in front of the server at ``SHINGLEFOLD_TEST_URL``. All ways take turns. One
reader reads the JSON of all folded pages.
"""

import asyncio
import http.client
import json
import os
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import cycle
from urllib.parse import urlsplit

import aiohttp
import numpy as np

from bench.clock import COMMAND, awake, once, tree_memory
from bench.corpora import title_searches
from bench.server_callers import run
from bench.server_indices import PLAIN, STAGED, Site, actions, staged
from bench.table import URL, Row, percentiles
from shinglefold.contracts.engine import JSON
from shinglefold.engines import open_async_engine
from shinglefold.engines.http.bulk import CHUNK
from shinglefold.engines.http.responses import read_json
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch

_CORPUS = "libreoffice-ru"
#: Nobody compresses: the library's client does not ask for it.
_JSON = {"content-type": "application/json", "accept-encoding": "identity"}
_ROUNDS = 3
_MANY, _MANY_SEARCHES, _PAUSE = 200, 800, 2.0
_CROWD, _MINUTE, _SAMPLED = 500, 60.0, 2.0
_UNTOUCHED = "untouched search"
_FOLDED = "folded page"
_DIRECT, _GATEWAY, _LIBRARY = "direct", "through the gateway", "by the library"
_Ask = Callable[[JSON], object]
_Awaited = Callable[[JSON], Awaitable[object]]


def measure() -> list[Row]:
    """Return the figures; nothing where there is no corpus, or no server is named."""
    with staged(_CORPUS) as site:
        if site is None:
            return []
        site.bulk(PLAIN, site.stripped)
        with _gateway() as (process, address):
            bodies = title_searches(_CORPUS)
            _check(site, address, bodies)
            rows = [*_one_connection(site, address, bodies)]
            rows += asyncio.run(_many_connections(site, address, bodies))
            rows += asyncio.run(_crowd(process, address, bodies))
            return rows + _bulks(site, address)


@contextmanager
def _gateway() -> Iterator[tuple[int, str]]:
    """Run a gateway: its process, and its address."""
    command = [COMMAND, "gateway", "--listen", "127.0.0.1:0"]
    command += ["--upstream", os.environ[URL]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("gateway at "), line
        try:
            yield process.pid, line.split()[2]
        finally:
            process.terminate()


def _check(site: Site, address: str, bodies: Sequence[JSON]) -> None:
    """Compare the answers of all ways before any is timed, which also warms them."""
    folded = FoldedSearch(site.engine, site.pipeline.scheme)
    direct, gateway = _Connection(os.environ[URL]), _Connection(address)
    for body in bodies[:100]:
        ours, theirs = (json.loads(one.search(PLAIN, body)) for one in (gateway, direct))
        assert ours["hits"] == theirs["hits"]
        page, own = json.loads(gateway.search(STAGED, _fold(body))), folded.search(STAGED, body)
        assert page["hits"] == own["hits"]
        assert page["dedup"] == own["dedup"]


class _Connection:
    """One connection that stays open, and answers with bytes."""

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def search(self, index: str, body: JSON) -> bytes:
        """Return the answer to a search."""
        self._http.request("POST", f"/{index}/_search", json.dumps(body).encode(), _JSON)
        answer = self._http.getresponse()
        read = answer.read()
        assert answer.status == 200, read
        return read


def _fold(body: JSON) -> JSON:
    return {**body, "ext": {"dedup": {}}}


def _one_connection(site: Site, address: str, bodies: Sequence[JSON]) -> Iterator[Row]:
    direct, gateway = _Connection(os.environ[URL]), _Connection(address)
    folded = FoldedSearch(site.engine, site.pipeline.scheme)
    ways: dict[str, _Ask] = {
        f"{_UNTOUCHED}, {_DIRECT}": lambda body: direct.search(PLAIN, body),
        f"{_UNTOUCHED}, {_GATEWAY}": lambda body: gateway.search(PLAIN, body),
        f"{_FOLDED}, {_LIBRARY}": lambda body: folded.search(STAGED, body),
        f"{_FOLDED}, {_GATEWAY}": lambda body: read_json(gateway.search(STAGED, _fold(body))),
    }
    for state, cores in (("kept awake", awake()), ("asleep in between", nullcontext())):
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        with cores:
            for body in (body for _ in range(_ROUNDS) for body in bodies):
                for name, search in ways.items():
                    seconds[name].append(once(lambda search=search, body=body: search(body))[0])  # type: ignore[misc]
        note = f"{_ROUNDS * len(bodies)} searches a way, cores {state}"
        yield from _comparison_rows(f"1 connection, cores {state}", seconds, note)


async def _many_connections(site: Site, address: str, bodies: Sequence[JSON]) -> list[Row]:
    """200 callers who each search once in two seconds, and 200 who never wait."""
    rows: list[Row] = []
    async with _session() as session, open_async_engine(os.environ[URL]) as engine:
        folded = AsyncFoldedSearch(engine, site.pipeline.scheme)
        direct, gateway = _post_async(session, os.environ[URL]), _post_async(session, address)

        async def page(body: JSON) -> object:
            return read_json(await gateway(STAGED, _fold(body)))

        ways: dict[str, _Awaited] = {
            f"{_UNTOUCHED}, {_DIRECT}": lambda body: direct(PLAIN, body),
            f"{_UNTOUCHED}, {_GATEWAY}": lambda body: gateway(PLAIN, body),
            f"{_FOLDED}, {_LIBRARY}": lambda body: folded.search(STAGED, body),
            f"{_FOLDED}, {_GATEWAY}": page,
        }
        for name, search in ways.items():
            assert await search(bodies[0]), name
        # Folded pages take the server four times as long, so that they come half as often.
        pauses = {name: _PAUSE * (1 if name.startswith(_UNTOUCHED) else 2) for name in ways}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_ROUNDS):
            for name, search in ways.items():
                seconds[name] += await _time_paced(search, bodies, pauses[name])
        note = f"each caller searches once in {_PAUSE:g} s, or {2 * _PAUSE:g} s for folded pages"
        rows += _comparison_rows(f"{_MANY} connections", seconds, note)
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_ROUNDS):
            for name, search in ways.items():
                rates[name].append((await run(search, bodies, _MANY, _MANY_SEARCHES)).rate)
        for kind, base in ((_UNTOUCHED, _DIRECT), (_FOLDED, _LIBRARY)):
            ours, theirs = rates[f"{kind}, {_GATEWAY}"], rates[f"{kind}, {base}"]
            share = [one / other for one, other in zip(ours, theirs, strict=True)]
            note = f"{_MANY} callers who never wait; rounds {', '.join(f'{one:.2f}' for one in share)}"
            name = f"{_MANY} connections: {kind}, rate {_GATEWAY} ÷ {base}"
            rows.append(Row(name, float(np.median(share)), "", note))
    return rows


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(120), auto_decompress=False
    )


def _post_async(session: aiohttp.ClientSession, url: str) -> Callable[[str, JSON], Awaitable[bytes]]:
    async def search(index: str, body: JSON) -> bytes:
        sent = json.dumps(body).encode()
        async with session.post(f"{url}/{index}/_search", data=sent, headers=_JSON) as answer:
            read = await answer.read()
            assert answer.status == 200, read
            return read

    return search


async def _time_paced(search: _Awaited, bodies: Sequence[JSON], pause: float) -> list[float]:
    """Return the seconds of each search of many callers who begin at even distances."""
    seconds: list[float] = []
    clock = asyncio.get_running_loop().time
    begin = clock()

    async def call(number: int) -> None:
        for turn in range(3):
            due = begin + (turn + number / _MANY) * pause
            await asyncio.sleep(max(0.0, due - clock()))
            start = time.perf_counter()
            await search(bodies[(number + turn * _MANY) % len(bodies)])
            # The first turn opens the connections.
            if turn:
                seconds.append(time.perf_counter() - start)

    await asyncio.gather(*(call(number) for number in range(_MANY)))
    return seconds


async def _crowd(process: int, address: str, bodies: Sequence[JSON]) -> list[Row]:
    """500 connections for a minute, every fourth search folded; an answer other than 200 ends the run.

    The half minute before opens them, and lets buffers grow to what so many need.
    """
    async with _session() as session:
        gateway = _post_async(session, address)
        clock = asyncio.get_running_loop().time
        done, memory = 0, list[float]()

        async def sample() -> None:
            while True:
                await asyncio.sleep(_SAMPLED)
                memory.append(await asyncio.to_thread(tree_memory, process))

        async def call(number: int, end: float) -> None:
            nonlocal done
            for body in cycle(bodies[number % len(bodies) :]):
                if clock() >= end:
                    return
                await (gateway(STAGED, _fold(body)) if done % 4 == 0 else gateway(PLAIN, body))
                done += 1

        sampling = asyncio.ensure_future(sample())
        for seconds in (_MINUTE / 2, _MINUTE):
            done, memory[:] = 0, []
            end = clock() + seconds
            await asyncio.gather(*(call(number, end) for number in range(_CROWD)))
        sampling.cancel()
    half = len(memory) // 2
    before, after = float(np.median(memory[:half])), float(np.median(memory[half:]))
    name = f"{_CROWD} connections for a minute"
    note = f"after half a minute of the same; medians of both halves {before:.0f} and {after:.0f} MB"
    return [
        Row(f"{name}: searches, all answered", done, "", "every fourth folded; no caller waits"),
        Row(f"{name}: most memory", max(memory), "MB", note),
        Row(f"{name}: memory, second half ÷ first", after / before, "", "target: flat"),
    ]


def _bulks(site: Site, address: str) -> list[Row]:
    """Documents a second: signed by ``shinglefold index``, and by the gateway from plain bulks."""
    parts = [
        list(actions(STAGED, site.stripped[at : at + CHUNK])) for at in range(0, len(site.stripped), CHUNK)
    ]
    bulks = [b"".join(_lines(part)) for part in parts]

    def send(bulk: bytes) -> None:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)
        connection.request("POST", "/_bulk", bulk, {"content-type": "application/x-ndjson"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        assert (answer.status, told["errors"]) == (200, False)

    def through_gateway() -> None:
        # Emptied, with its recipe.
        site.engine.delete_index(STAGED)
        site.stage(site.stripped[:1])
        with ThreadPoolExecutor(site.engine.can.bulks_at_once) as pool:
            list(pool.map(send, bulks))
        site.engine.refresh(STAGED)

    def signed() -> Mapping[str, object]:
        found = site.engine.search(STAGED, {"size": 10_000, "_source": ["dedup"], "track_total_hits": True})
        return {hit["_id"]: hit["_source"].get("dedup") for hit in found["hits"]["hits"]}

    rates: dict[str, list[float]] = {_LIBRARY: [], _GATEWAY: []}
    for _ in range(_ROUNDS + 1):
        rates[_LIBRARY].append(len(site.stripped) / once(lambda: site.stage(site.stripped))[0])
        own = signed()
        rates[_GATEWAY].append(len(site.stripped) / once(through_gateway)[0])
        assert signed() == own
    # The first round loads dictionaries.
    share = [ours / own for ours, own in zip(rates[_GATEWAY][1:], rates[_LIBRARY][1:], strict=True)]
    note = (
        f"{len(site.stripped):,} pages, two processes sign; rounds {', '.join(f'{one:.2f}' for one in share)}"
    )
    return [
        *(
            Row(f"bulk, {way}", float(np.median(each[1:])), "documents / s", note)
            for way, each in rates.items()
        ),
        Row(f"bulk, rate {_GATEWAY} ÷ {_LIBRARY}", float(np.median(share)), "", "target: at least .8"),
    ]


def _lines(part: Sequence[JSON]) -> Iterator[bytes]:
    for action in part:
        yield json.dumps({"index": {"_index": action["_index"], "_id": action["_id"]}}).encode() + b"\n"
        yield json.dumps(action["_source"]).encode() + b"\n"


def _comparison_rows(name: str, seconds: Mapping[str, Sequence[float]], note: str) -> Iterator[Row]:
    middle = {way: float(np.median(each)) * 1e3 for way, each in seconds.items()}
    for way, each in seconds.items():
        yield from percentiles(f"{name}: {way}", each, (50, 99), note)
    added = middle[f"{_UNTOUCHED}, {_GATEWAY}"] - middle[f"{_UNTOUCHED}, {_DIRECT}"]
    yield Row(f"{name}: {_UNTOUCHED}, p50 added", added, "ms", "target: at most 1")
    ratio = middle[f"{_FOLDED}, {_GATEWAY}"] / middle[f"{_FOLDED}, {_LIBRARY}"]
    yield Row(f"{name}: {_FOLDED}, {_GATEWAY} ÷ {_LIBRARY}, p50", ratio, "", "target: at most 1.2")
