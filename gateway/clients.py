"""``fold``: a client of opensearch-py or elasticsearch-py that folds searches and signs writes."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from shinglefold.api.index_options import IndexOptions
from shinglefold.engines import open_async_engine, open_blocking_twin, open_engine
from shinglefold.engines.http.connection import is_async_client, plain_client, product_of_client
from shinglefold.errors import ShinglefoldError
from shinglefold.gateway.dialects import Caller, Dialect, ElasticsearchDialect, OpenSearchDialect
from shinglefold.gateway.gates import Admit, OpenGates
from shinglefold.gateway.interceptor import Interceptor
from shinglefold.gateway.rest import Send, Steps, Tiebreaker, Work, operation_of
from shinglefold.options.validation import expected
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions
from shinglefold.rerank.engine_calls import Call
from shinglefold.rerank.request.fold_options import OnTrouble
from shinglefold.runtime.sans_io import run, run_async
from shinglefold.settings import load_settings

Client = TypeVar("Client")
#: Operations whose bodies are read in the type that the client was given.
_SEARCHES = ("search", "search_template")


def fold(
    client: Client,
    *,
    always: bool = False,
    similarity: float | None = None,
    dedup: FoldOptions | Mapping[str, Any] | None = None,
    seal_key: str | None = None,
    cursor_key: bytes | str | None = None,
    on_trouble: OnTrouble = "unfolded",
) -> Client:
    """Return a client of the same class whose searches are folded and whose writes are signed.

    Searches with ``ext.dedup`` in the body are folded, as by ``shinglefold.open(client, index).search``.
    Documents written to an index that was set up get fingerprints. Other requests are sent unchanged. The
    given client is not changed; both share its connections.

    Args:
        client: of opensearch-py 3, elasticsearch 8 or 9, blocking or asynchronous.
        always: fold searches of indices that were set up, also without ``ext.dedup``.
        similarity, dedup, seal_key, cursor_key: as of ``shinglefold.open``.
        on_trouble: what a search does where hits can't be folded: ``"unfolded"`` returns the engine's own
            page and says why in ``dedup``, ``"raise"`` raises an error.

    Raises:
        ConfigError: it is no client, or an option is not valid.
    """
    if not product_of_client(client):
        raise expected("client", "a client of opensearch-py or elasticsearch-py", type(client).__name__)
    given: Any = plain_client(client)
    kind = _AsyncFoldingTransport if is_async_client(given) else _SyncFoldingTransport
    options = IndexOptions.parse(
        similarity=similarity, dedup=dedup, seal_key=seal_key, cursor_key=cursor_key, on_trouble=on_trouble
    )
    made: Client = kind(given, options, always=always).client
    return made


def unfold(client: Client) -> Client:
    """Return the original client of one that ``fold`` made; other clients unchanged."""
    found: Client = plain_client(client)
    return found


#: The caller for whom requests of the engine are sent.
_caller: ContextVar[Caller] = ContextVar("shinglefold_caller")


@contextmanager
def _sent_as(caller: Caller) -> Iterator[None]:
    """Send the requests of a block for a caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


class _Unchanged(NamedTuple):
    """Send a request as it came; the answer is what the transport returns."""

    send: Callable[[], Any]

    def on(self, _: object) -> Any:  # noqa: ANN401 - as the transport
        """Send it by the transport, which needs no engine."""
        return self.send()


#: The subclasses of transports, each made once.
_classes: dict[type, type] = {}


def _transport_class(kind: type) -> type:
    """Return a subclass of a transport whose requests go through a function.

    Its objects share all state with the transport they are made of: pool, sniffing, dead nodes.
    """

    def perform_request(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self.shinglefold_perform(*args, **kwargs)

    members = {
        "__slots__": ("shinglefold_door", "shinglefold_perform"),
        "__module__": kind.__module__,
        "perform_request": perform_request,
    }
    return _classes.setdefault(kind, type(kind.__name__, (kind,), members))


def through_function(given: Any, door: Any, perform: Any) -> Any:  # noqa: ANN401 - the clients' own types
    """Return a transport that sends by ``perform`` and shares everything else with the given one."""
    made: Any = object.__new__(_transport_class(type(given)))
    made.__dict__ = given.__dict__
    made.shinglefold_door, made.shinglefold_perform = door, perform
    return made


def _copy(part: Any, replaced: dict[int, Any]) -> Any:  # noqa: ANN401 - the clients' own types
    """Return a copy of a client or of a part of it, with copies of the parts that refer to it.

    Args:
        replaced: the replacements of objects, by their id.
    """
    made = replaced[id(part)] = object.__new__(type(part))
    for name, value in vars(part).items():
        if id(value) not in replaced and type(value).__module__.partition(".")[0] in (
            "opensearchpy",
            "elasticsearch",
        ):
            own = getattr(value, "__dict__", {})
            if any(id(one) in replaced for one in own.values()):
                _copy(value, replaced)
        made.__dict__[name] = replaced.get(id(value), value)
    return made


def with_transport(client: Any, transport: Any) -> Any:  # noqa: ANN401 - the clients' own types
    """Return a copy of a client that sends through another transport."""
    return _copy(client, {id(client.transport): transport})


class _FoldingTransport:
    """The base of both transports below: the folded client, and how requests are read and answered."""

    kind: Any
    opened: Any
    perform: Any
    _perform_for_caller: Any

    def __init__(self, given: Any, options: IndexOptions, *, always: bool) -> None:  # noqa: ANN401
        self.given, self._transport = given, given.transport
        opensearch = product_of_client(given) == "opensearch"
        self._dialect: Dialect = OpenSearchDialect() if opensearch else ElasticsearchDialect()
        self._beneath = with_transport(
            given, through_function(self._transport, None, self._perform_for_caller)
        )
        if hasattr(self._beneath, "_ignore_status"):
            self._beneath._ignore_status = ()  # noqa: SLF001 - the engine wants to see errors
        self.engine = type(self).opened(self._beneath)
        self._gates = OpenGates()
        self.interceptor = Interceptor(self.engine, self.kind, options, load_settings(), always=always)
        self.client = with_transport(given, through_function(self._transport, self, self.perform))

    @property
    def awaited(self) -> bool:
        """Whether the client is asynchronous."""
        return self.kind is AsyncFoldedSearch

    @staticmethod
    def headers(client: Any) -> dict[str, Any]:  # noqa: ANN401 - the clients' own types
        """Return the headers that a client sends with all requests, such as its credentials."""
        return dict(getattr(client, "_headers", None) or {})

    def plain(self, client: Any) -> Any:  # noqa: ANN401 - the clients' own types
        """Return the plain client behind a folded one, or behind one with other options."""
        return self.given if client is self.client else with_transport(client, self._transport)

    def _respond(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Steps[Any]:
        """Return what the transport returns to a request, or raise what it raises."""
        named = (kwargs[name] for name in ("method", "url", "target") if name in kwargs)
        method, target = (*args, *named)[:2]
        operation = operation_of(method, target.partition("?")[0])
        if operation is not None:
            request, caller = self._dialect.read(
                self._transport, args, kwargs, parsed=operation.name in _SEARCHES
            )
            if isinstance(request.body, bytes) and not isinstance(
                kwargs.get("body"), None | str | bytes | dict
            ):
                # It may be one that can be read only once.
                kwargs["body"] = request.body
            with _sent_as(caller):
                try:
                    answer = yield from self.interceptor.steps(request)
                except ShinglefoldError as error:
                    return self._dialect.fail(error, caller)
            if answer is not None:
                return self._dialect.give(answer, caller, self._transport)
        return (yield _Unchanged(partial(self._transport.perform_request, *args, **kwargs)))

    def _drive(self, client: Any, steps: Steps[Any]) -> Steps[Any]:  # noqa: ANN401 - the clients' own types
        with _sent_as(Caller(self.headers(client))):
            return (yield from steps)


class _SyncFoldingTransport(_FoldingTransport):
    """Intercepts the requests of a blocking client."""

    kind = FoldedSearch
    opened = staticmethod(open_engine)

    def perform(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the clients' own types
        """Answer a request in place of the transport."""
        return run(self._respond(args, kwargs), self._answer)

    def drive(self, client: Any, steps: Steps[Any]) -> Any:  # noqa: ANN401 - the clients' own types
        """Run steps for a client, not for a request."""
        return run(self._drive(client, steps), self._answer)

    def _answer(self, request: Any) -> Any:  # noqa: ANN401 - what steps yield
        if isinstance(request, Work):
            return request.function()
        if isinstance(request, Tiebreaker):
            return self.engine.tiebreaker()
        if isinstance(request, Admit):
            return self._gates.admit(self.engine, request)
        if isinstance(request, Call | _Unchanged):
            return request.on(self.engine)
        assert isinstance(request, Send)
        caller = _caller.get()
        args, kwargs = self._dialect.write(request.request, caller)
        try:
            return self._dialect.response(self._transport.perform_request(*args, **kwargs), caller)
        except self._dialect.errors as error:
            return self._dialect.refusal(error)

    def _perform_for_caller(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the clients' own types
        caller = _caller.get()
        answer = self._transport.perform_request(*args, **self._dialect.as_caller(kwargs, caller))
        self._dialect.response(answer, caller)
        return answer


class _AsyncFoldingTransport(_FoldingTransport):
    """Intercepts the requests of an asynchronous client."""

    kind = AsyncFoldedSearch
    opened = staticmethod(open_async_engine)

    @cached_property
    def _twin(self) -> Callable[[asyncio.AbstractEventLoop], Any]:
        """Return the blocking engine of threads, by the event loop in which it sends."""
        return lru_cache(1)(partial(open_blocking_twin, self._beneath))

    async def perform(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the clients' own types
        """Answer a request in place of the transport."""
        return await run_async(self._respond(args, kwargs), self._answer)

    async def drive(self, client: Any, steps: Steps[Any]) -> Any:  # noqa: ANN401 - the clients' own types
        """Run steps for a client, not for a request."""
        return await run_async(self._drive(client, steps), self._answer)

    async def _answer(self, request: Any) -> Any:  # noqa: ANN401 - what steps yield
        if isinstance(request, Work):
            # Dictionaries and long texts would stop the event loop.
            return await asyncio.to_thread(request.function)
        if isinstance(request, Tiebreaker):
            return await asyncio.to_thread(self._twin(asyncio.get_running_loop()).tiebreaker)
        if isinstance(request, Admit):
            # A gate has its own thread, so it continues when its caller is cancelled.
            twin = self._twin(asyncio.get_running_loop())
            return await asyncio.to_thread(self._gates.admit, twin, request)
        if isinstance(request, Call | _Unchanged):
            return await request.on(self.engine)
        assert isinstance(request, Send)
        caller = _caller.get()
        args, kwargs = self._dialect.write(request.request, caller)
        try:
            return self._dialect.response(await self._transport.perform_request(*args, **kwargs), caller)
        except self._dialect.errors as error:
            return self._dialect.refusal(error)

    async def _perform_for_caller(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        caller = _caller.get()
        answer = await self._transport.perform_request(*args, **self._dialect.as_caller(kwargs, caller))
        self._dialect.response(answer, caller)
        return answer
