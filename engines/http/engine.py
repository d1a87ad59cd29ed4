"""The engines of both products: ``HttpEngine`` blocks, ``AsyncHttpEngine`` is awaited."""

import asyncio
import operator
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from shinglefold.contracts.engine import JSON, BulkResult, Parameters, Search, VersionedDocument, WriteResult
from shinglefold.engines.http.bulk import (
    BYTES,
    Bulk,
    Malformed,
    bulk_bodies,
    bulk_results,
)
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import MALFORMED, NoDocument
from shinglefold.engines.http.requests import HttpRequests, Steps
from shinglefold.engines.http.responses import (
    ITEMS,
    check_name,
    may_be_stored,
    read_answer,
)
from shinglefold.errors import EngineError, EngineUnavailable, PermissionDenied, UnsupportedQuery
from shinglefold.runtime.backoff import Backoff, retry_unavailable
from shinglefold.runtime.sans_io import run, run_async


class FairSemaphore:
    """Counts like ``threading.Semaphore``, which lets new threads overtake waiting ones.

    ``asyncio.Semaphore`` is fair by itself.
    """

    def __init__(self, value: int) -> None:
        self._value = value
        self._lock = threading.Lock()
        #: A lock for each waiting thread, which is released when its turn comes.
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        """Wait for a turn, and return whether it came within ``timeout`` seconds."""
        with self._lock:
            if self._value:
                self._value -= 1
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            if turn.acquire(timeout=timeout):
                return True
        except BaseException:
            if not self._withdraw(turn):
                self.release()
            raise
        return not self._withdraw(turn)

    def release(self) -> None:
        """Pass the turn to the thread that waits longest; if none waits, count up."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._value += 1

    def _withdraw(self, turn: threading.Lock) -> bool:
        """Stop waiting, and return False if the turn came meanwhile."""
        with self._lock:
            if turn not in self._waiting:
                return False
            self._waiting.remove(turn)
            return True


P = ParamSpec("P")
T = TypeVar("T")
#: Delays before the retries of requests and bulks. Half of each is random.
BACKOFF = Backoff(3, first=0.25, most=10.0, jitter=0.5)
S = TypeVar("S", bound="HttpEngine")


def retry_when_busy(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Retry a method, after waiting, while the server is too busy. Only for requests that may run twice.

    Searches are not retried: only their callers know how long an answer is worth waiting for.
    """

    @wraps(method)
    def call_with_retry(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def once() -> T:
            return method(self, *args, **kwargs)

        return retry_unavailable(once, self.backoff, until=self.client_errors.may_have_run)

    return call_with_retry


class HttpEngine(HttpRequests):
    """An engine behind a client. Threads may share one; a forked process needs its own.

    Args:
        connection: the addresses and the credentials.
        backoff: the waits before retries; by default as many as the connection's number of retries.
    """

    #: The client's own helper: the header of a bulk action, and the rest if it has any.
    expand_action: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        connection: Connection,
        backoff: Backoff | None = None,
        *,
        client: Any = None,  # noqa: ANN401 - the clients' own types
    ) -> None:
        super().__init__(connection, client=client)
        self._turns = FairSemaphore(connection.max_connections)
        self.backoff = backoff or replace(BACKOFF, retries=connection.retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def info(self) -> JSON:
        """Return the product's name and version."""

    @abstractmethod
    def tiebreaker(self) -> str | None:
        """Return the sort key that makes any order total under a point in time."""

    @abstractmethod
    def _create(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Create an index through the client, and return the answer."""

    def create_index(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Create an index.

        Raises:
            IndexExists: the index exists.
            UnsupportedQuery: the server does not support the name, a field type or a setting.
        """
        check_name(index)
        self._change(self._create, index=index, mappings=mappings, settings=settings)

    def delete_index(self, index: str) -> None:
        """Delete one index with all its documents; patterns and aliases are refused.

        Raises:
            IndexMissing: the index does not exist.
        """
        check_name(index)
        self._change(self._client.indices.delete, index=index)

    @retry_when_busy
    def index_exists(self, index: str) -> bool:
        """Return whether an index or alias exists."""
        check_name(index)
        try:
            with self._translate_errors():
                return bool(self._client.indices.exists(index=index))
        except PermissionDenied:
            # An answer to HEAD is empty. One to GET names the right that is missing.
            with self._translate_errors():
                self._client.indices.get(index=index)
            raise

    @retry_when_busy
    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index, or those of several (alias, pattern) combined."""
        return run(self._mapping_steps(index), operator.call)

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run actions in order and return refused ones as failures.

        An action that the server is too busy for (429, 503, timeout) is sent again after a wait. An action
        for a missing index fails with 404, so the server creates no index by itself.

        Raises:
            EngineError: the server can't be reached or refuses us, and nothing was done yet.
        """
        self._check_open()
        return Bulk(self._send, self.backoff, self._takes_writes).run(actions)

    @retry_when_busy
    def refresh(self, index: str) -> None:
        """Make everything written so far visible to searches.

        Raises:
            EngineUnavailable: some copies of the index were not refreshed, and still answer searches.
        """
        run(self._refresh_steps(index), operator.call)

    @retry_when_busy
    def get(self, index: str, id: str) -> JSON | None:  # noqa: A002 - the engines' own word
        """Return the current version of a document, refreshed or not; None if it does not exist."""
        check_name(index)
        if not may_be_stored(id):
            return None
        try:
            return self._request(self._client.get, "_index and _id", _document, index=index, id=id)
        except NoDocument:
            return None

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search.

        Raises:
            IndexMissing: the index does not exist.
            UnsupportedQuery: the server can't read the body.
            WindowTooLarge: the page is too far down.
            PitExpired: the point in time was closed or ran out.
        """
        return run(self._search_steps(index, body, parameters), operator.call)

    def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches in one request; see ``Engine.msearch``."""
        return run(self._msearch_steps(searches), operator.call)

    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        return run(self._open_pit_steps(index, keep_alive, parameters), operator.call)

    def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is not an error."""
        run(self._close_pit_steps(pit), operator.call)

    def identities(self, indices: Sequence[str]) -> dict[str, str]:
        """Return the UUID of each index; see ``GuardedWrites``."""
        return run(self._identities_steps(indices), operator.call)

    def ingest_pipelines(self, index: str) -> tuple[str, ...]:
        """Return the ingest pipelines of an index; see ``GuardedWrites``."""
        return run(self._ingest_pipelines_steps(index), operator.call)

    def write(self, actions: Sequence[Mapping[str, Any]]) -> list[WriteResult]:
        """Run bulk actions once and return the result of each; see ``GuardedWrites``."""
        return run(self._write_steps(actions), operator.call)

    def read(
        self,
        index: str,
        ids: Sequence[str],
        source: Sequence[str] = (),
        routings: Sequence[str | None] = (),
    ) -> list[VersionedDocument | None]:
        """Return the current versions of documents; see ``GuardedWrites``."""
        return run(self._read_steps(index, ids, source, routings), operator.call)

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            if self.owns_client:
                self._client.close()

    def _request(
        self, send: Callable[..., Any], expected: str, read: Callable[[JSON], T], /, **arguments: object
    ) -> T:
        """Wait for a turn, send a request by a method of the client, and return its parsed answer."""
        with self._translate_errors():
            return read_answer(send(**arguments), self.who, expected, read)

    def _change(self, send: Callable[..., Any], /, **arguments: object) -> None:
        """Send a request that changes something, and check that the server acknowledges it."""
        self._request(send, "acknowledged", operator.itemgetter("acknowledged"), **arguments)

    @contextmanager
    def _translate_errors(self, refine: Callable[[EngineError], EngineError] | None = None) -> Iterator[None]:
        """Wait for a turn to send the requests of the block, and translate what the client raises."""
        with self._turn(), super()._translate_errors(refine):
            yield

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(self.connection.timeout):
            raise self._all_busy()
        try:
            yield
        finally:
            self._turns.release()

    def _send(self, actions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
        with self._turn():
            try:
                for body, count in bulk_bodies(actions, BYTES, self.expand_action, self._dumps):
                    read = partial(bulk_results, count)
                    yield from read_answer(self._bulk_body(body), self.who, ITEMS, read)
            except self.client_errors.raised as error:
                translated = self.client_errors.translate(error, self.who)
                if self.client_errors.status(error) in MALFORMED:
                    raise Malformed(400, str(translated)) from error
                raise translated from error

    def _takes_writes(self, index: str) -> bool:
        """Return whether an index exists; if that can't be found out, the write reports it."""
        try:
            return self.index_exists(index)
        except UnsupportedQuery:
            return False
        except EngineError:
            return True


def _document(answer: JSON) -> JSON:
    # An index may keep no sources.
    return {"_index": answer["_index"], "_id": answer["_id"], "_source": answer.get("_source") or {}}


class AsyncHttpEngine(HttpRequests):
    """An engine behind an asynchronous client, for searches and gates. Open and close it in an event loop.

    Args:
        connection: the addresses and the credentials.
    """

    def __init__(self, connection: Connection, *, client: Any = None) -> None:  # noqa: ANN401
        super().__init__(connection, client=client)
        self._turns = asyncio.Semaphore(connection.max_connections)
        self.backoff = replace(BACKOFF, retries=connection.retries)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def mappings(self, index: str) -> JSON:
        """Return the mappings of an index, or those of several (alias, pattern) combined."""
        return await self._retry_when_busy(lambda: self._mapping_steps(index))

    async def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name, alias or pattern matches."""
        return await self._retry_when_busy(lambda: self._all_mappings_steps(pattern))

    async def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search; see ``HttpEngine.search``."""
        return await run_async(self._search_steps(index, body, parameters), self._send_in_turn)

    async def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches in one request; see ``Engine.msearch``."""
        return await run_async(self._msearch_steps(searches), self._send_in_turn)

    async def identities(self, indices: Sequence[str]) -> dict[str, str]:
        """Return the UUID of each index; see ``GuardedWrites``."""
        return await run_async(self._identities_steps(indices), self._send_in_turn)

    async def ingest_pipelines(self, index: str) -> tuple[str, ...]:
        """Return the ingest pipelines of an index; see ``GuardedWrites``."""
        return await run_async(self._ingest_pipelines_steps(index), self._send_in_turn)

    async def write(self, actions: Sequence[Mapping[str, Any]]) -> list[WriteResult]:
        """Run bulk actions once and return the result of each; see ``GuardedWrites``."""
        return await run_async(self._write_steps(actions), self._send_in_turn)

    async def read(
        self,
        index: str,
        ids: Sequence[str],
        source: Sequence[str] = (),
        routings: Sequence[str | None] = (),
    ) -> list[VersionedDocument | None]:
        """Return the current versions of documents; see ``GuardedWrites``."""
        return await run_async(self._read_steps(index, ids, source, routings), self._send_in_turn)

    async def get(self, index: str, id: str) -> JSON | None:  # noqa: A002 - the engines' own word
        """Return the current version of a document, refreshed or not; None if it does not exist."""
        check_name(index)
        ids = [id] if may_be_stored(id) else []
        (found,) = await self._retry_when_busy(lambda: self._read_steps(index, ids, (), ())) or [None]
        return None if found is None else {"_index": index, "_id": id, "_source": found.source}

    async def refresh(self, index: str) -> None:
        """Make everything written so far visible to searches; see ``HttpEngine.refresh``."""
        await self._retry_when_busy(lambda: self._refresh_steps(index))

    async def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        return await run_async(self._open_pit_steps(index, keep_alive, parameters), self._send_in_turn)

    async def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is not an error."""
        await run_async(self._close_pit_steps(pit), self._send_in_turn)

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            if self.owns_client:
                await self._client.close()

    async def _retry_when_busy(self, steps: Callable[[], Steps[T]]) -> T:
        """Run the steps of a request, like the blocking engine: see ``retry_when_busy``."""
        for retry in range(self.backoff.retries):
            try:
                return await run_async(steps(), self._send_in_turn)
            except EngineUnavailable as error:
                if self.client_errors.may_have_run(error):
                    raise
            await asyncio.sleep(self.backoff.delay(retry))
        return await run_async(steps(), self._send_in_turn)

    async def _send_in_turn(self, send: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.connection.timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise self._all_busy() from None
        try:
            return await send()
        finally:
            self._turns.release()
