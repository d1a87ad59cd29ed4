"""Run the interceptor's steps for a request: slow ones in threads, its requests as the caller."""

import asyncio
import contextvars
import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from shinglefold.api.index_options import IndexOptions
from shinglefold.contracts.engine import Engine
from shinglefold.errors import (
    AuthenticationFailed,
    ConfigError,
    EngineUnavailable,
    MissingExtra,
    ShinglefoldError,
    UnknownLanguage,
)
from shinglefold.gateway.gates import Admit, OpenGates
from shinglefold.gateway.http.caller_engine import CALLER, CallerEngine, Product, detect_product, target_of
from shinglefold.gateway.http.messages import (
    FOLD,
    Answer,
    GatewayRequest,
    Headers,
    HttpCaller,
    Reply,
    header,
    header_text,
    refusal,
    refusal_of,
)
from shinglefold.gateway.http.metrics import Metrics
from shinglefold.gateway.http.signers import Signers
from shinglefold.gateway.http.upstream import Upstream, UpstreamFailure
from shinglefold.gateway.indices import SignedIndex
from shinglefold.gateway.interceptor import Interceptor
from shinglefold.gateway.rest import (
    TAKES_TIME,
    Operation,
    RestRequest,
    RestResponse,
    Send,
    Steps,
    Tiebreaker,
    Work,
    causes,
    collect_warnings,
    refused_status,
    write_value,
)
from shinglefold.gateway.search_answers import mark_unfolded, with_folding
from shinglefold.rerank import AsyncFoldedSearch
from shinglefold.rerank.engine_calls import Call
from shinglefold.settings import Settings

_log = logging.getLogger("shinglefold.gateway")
#: The operations that fail open: the engine answers them as well.
SEARCHES = ("search", "msearch", "search_template", "msearch_template")
#: Up to these sizes bodies and answers are read in the event loop, which takes as long as another thread.
_SMALL, _SMALL_ANSWER = 16_384, 262_144
#: How many answers to a gate are kept, to find the one that refused.
_ANSWERS_OF_GATE = 16
#: Headers of upstream that hold for an answer of the gateway, too.
_KEPT = frozenset((b"x-opensearch-version", b"x-elastic-product", b"x-opaque-id"))


@dataclass(frozen=True, slots=True)
class Intercepted:
    """A request that may be folded or signed.

    ``query``: the parameters as they came. ``fold``: what the request's header says about folding.
    """

    operation: Operation
    request: RestRequest
    query: str
    caller: HttpCaller
    fold: bool | None = None


@dataclass(frozen=True, slots=True)
class _EngineAccess:
    """The engine behind the gateway, and two interceptors: one folds all searches, one only on request."""

    product: Product
    engine: CallerEngine
    always: Interceptor
    asked: Interceptor


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """What the parts of a gateway share.

    ``options``: as of ``shinglefold.open``. ``signers`` run what signs documents, ``searching`` what folds.
    """

    upstream: Upstream
    options: IndexOptions
    settings: Settings
    metrics: Metrics
    signers: Signers
    searching: Executor


class Interception:
    """Answers requests by the steps of an interceptor.

    Args:
        always: fold every search, unless a request says otherwise.
    """

    def __init__(self, parts: GatewayParts, *, always: bool) -> None:
        self._upstream, self._options, self._settings = parts.upstream, parts.options, parts.settings
        self._metrics, self._signers, self._searching = parts.metrics, parts.signers, parts.searching
        self._always = always
        self._access: _EngineAccess | None = None
        self._gates = OpenGates()

    @property
    def product(self) -> str:
        """The product behind the gateway; "" until it is known."""
        return self._access.product.name if self._access else self._upstream.connection.product

    async def answer(self, given: Intercepted) -> Answer | None:
        """Return the answer to a request; None if it is to be forwarded unchanged."""
        token = CALLER.set(given.caller)
        try:
            with collect_warnings(given.caller.warnings):
                response = await self._respond(given)
        except Exception as error:
            return await self._answer_to_error(error, given)
        finally:
            CALLER.reset(token)
        return None if response is None else self._complete(response, given)

    async def _answer_to_error(self, error: Exception, given: Intercepted) -> Answer:
        """Return the refusal for an error, or the engine's own page where only folding failed."""
        operation = given.operation.name
        if isinstance(error, UpstreamFailure):
            return self._count_failure(operation, "upstream", refusal(error.status, str(error)))
        refused, reason = None, str(error)
        if isinstance(error, ShinglefoldError):
            refused = _engines_own(error, given.caller)
            if refused is None and not _fails_open(operation, error):
                refused = refusal_of(error)
        else:
            _log.error("a fault in the gateway", exc_info=error, extra={"fields": {"operation": operation}})
            reason = f"a fault in the gateway ({type(error).__name__}), which its log shows"
        if refused is None and operation in SEARCHES:
            return await self._answer_unfolded(given, reason)
        return self._count_failure(operation, type(error).__name__, refused or refusal(500, reason))

    async def signed_index(self, name: str, caller: HttpCaller) -> SignedIndex | Answer:
        """Return the signer of an index, or the answer that refuses; raise if it has no recipe."""
        request = RestRequest("POST", "/", headers=caller.headers)
        given = Intercepted(Operation("sign", name), request, "", caller)
        token = CALLER.set(caller)
        try:
            access = await self._find_access(caller)
            if isinstance(access, RestResponse):
                return self._complete(access, given)
            steps = access.asked.indices.target(name, caller.headers)
            found: SignedIndex | None = await self._run(steps, given)
        except UpstreamFailure as failure:
            return refusal(failure.status, str(failure))
        except ShinglefoldError as error:
            return _engines_own(error, caller) or refusal_of(error)
        finally:
            CALLER.reset(token)
        if found is None:
            if denied := _last_reply(403, caller):
                return denied
            raise ConfigError(
                f"index {name!r} was not set up, or does not exist: run `shinglefold setup {name}`"
            )
        return found

    async def blocking_engine(self, caller: HttpCaller) -> Engine:
        """Return the engine for threads; it sends as the caller in whose context it is used."""
        try:
            access = await self._find_access(caller)
        except UpstreamFailure as failure:
            raise EngineUnavailable(f"{failure}.") from failure
        if isinstance(access, RestResponse):
            raise AuthenticationFailed(f"the engine answers {access.status}: give its user and password")
        made: Engine = access.engine.blocking(asyncio.get_running_loop())
        return made

    async def _respond(self, given: Intercepted) -> RestResponse | None:
        access = await self._find_access(given.caller)
        if isinstance(access, RestResponse):
            return access
        request, always = given.request, self._always
        if given.operation.name in SEARCHES:
            always = self._always if given.fold is None else given.fold
            if given.fold is False:
                request = with_folding(given.operation.name, request, fold=False)
        interceptor = access.always if always else access.asked
        response: RestResponse | None = await self._run(interceptor.steps(request), given)
        return response

    async def _find_access(self, caller: HttpCaller) -> "_EngineAccess | RestResponse":
        if self._access is not None:
            return self._access
        found = await detect_product(self._upstream, caller)
        if isinstance(found, RestResponse):
            return found
        caller.replies.clear()
        if self._access is None:
            engine = CallerEngine(self._upstream, found.name)
            always, asked = (
                Interceptor(engine.awaited, AsyncFoldedSearch, self._options, self._settings, always=always)
                for always in (True, False)
            )
            self._access = _EngineAccess(found, engine, always, asked)
        return self._access

    async def _run(self, steps: Steps[Any], given: Intercepted) -> Any:  # noqa: ANN401 - of the steps
        """Run steps to their end and return the response."""
        writes = given.operation.name not in SEARCHES
        executor = self._signers.threads if writes else self._searching
        body = given.request.body
        replies = given.caller.replies
        inline = small = not isinstance(body, bytes) or len(body) <= _SMALL
        answer, error = None, None
        while True:
            try:
                with self._metrics.stage("parse" if writes else "fold"):
                    if inline:
                        ended, value = _advance(steps, answer, error)
                    else:
                        ended, value = await _in_thread(executor, partial(_advance, steps, answer, error))
            except asyncio.CancelledError as gone:
                # The steps close what they opened, such as a point in time.
                if inspect.getgeneratorstate(steps) == inspect.GEN_RUNNING:
                    raise
                ended, value = _advance(steps, None, gone)
            if ended:
                return value
            answer, error = None, None
            if value is TAKES_TIME:
                inline = small = False
                continue
            before = len(replies)
            try:
                answer = await self._perform(value, given)
            except BaseException as failure:
                error = failure
            inline = small and sum(len(one.content) for one in replies[before:]) <= _SMALL_ANSWER

    async def _perform(self, request: Any, given: Intercepted) -> Any:  # noqa: ANN401 - what steps yield
        assert self._access is not None
        if isinstance(request, Tiebreaker):
            return await self._tiebreaker(given.caller)
        if isinstance(request, Work):
            with self._metrics.stage("sign"):
                return await self._signers.run(request.function)
        with self._metrics.stage("engine"):
            if isinstance(request, Call):
                return await request.on(self._access.engine.awaited)
            if isinstance(request, Admit):
                return await self._admit(request, given.caller)
            assert isinstance(request, Send)
            return await self._send(request.request, given)

    async def _tiebreaker(self, caller: HttpCaller) -> str | None:
        """Return the sort key that breaks ties; ask again if the caller before could not read the version."""
        assert self._access is not None
        if not self._access.product.is_exact:
            found = await detect_product(self._upstream, caller)
            caller.replies.clear()
            if isinstance(found, Product) and found.is_exact:
                self._access = replace(self._access, product=found)
        return self._access.product.tiebreaker

    async def _admit(self, request: Admit, caller: HttpCaller) -> Any:  # noqa: ANN401 - verdicts
        assert self._access is not None
        # Later requests of a gate have the credentials of its first caller, and answer no request.
        of_gate = HttpCaller(caller.headers, deque(maxlen=_ANSWERS_OF_GATE))
        token = CALLER.set(of_gate)
        try:
            twin = self._access.engine.blocking(asyncio.get_running_loop())
            return await _in_thread(self._signers.threads, partial(self._gates.admit, twin, request))
        finally:
            CALLER.reset(token)
            caller.replies.extend(of_gate.replies)

    async def _send(self, request: RestRequest, given: Intercepted) -> RestResponse:
        target = target_of(request)
        if request.path == given.request.path and request.parameters == given.request.parameters:
            target = f"{request.path}?{given.query}" if given.query else request.path
        body = _encode_body(request.body)
        reply = await self._upstream.ask(request.method, target, given.caller, request.headers, body)
        return RestResponse(reply.status, reply.value, reply)

    def _complete(self, response: RestResponse, given: Intercepted) -> Answer:
        """Return the answer for a response; an answer of the engine keeps its bytes."""
        caller, operation = given.caller, given.operation.name
        reply = response.native
        warnings = [*dict.fromkeys(caller.warnings)]
        if isinstance(reply, Reply) and reply.value is response.body and reply.status == response.status:
            answer = Answer(reply.status, reply.content, _whole(reply), warnings)
        else:
            kept, strict = _kept_headers(caller.replies), all(one.strict for one in caller.replies)
            answer = Answer(response.status, response.body, kept, warnings, strict=strict)
        if operation not in SEARCHES:
            self._metrics.count(operation, "intercepted")
            return answer
        reason, folded = _folding_of(response.body)
        if reason is not None:
            self._metrics.count(operation, "unfolded")
            return replace(answer, outcome=f"unfolded; reason={header_text(reason)}")
        if folded is not None:
            self._metrics.count(operation, "folded", folded)
            return replace(answer, outcome="folded")
        return answer

    async def _answer_unfolded(self, given: Intercepted, reason: str) -> Answer:
        """Return the engine's own answer to a search that the gateway could not fold."""
        operation = given.operation.name
        plain = with_folding(operation, given.request, fold=None)
        try:
            response = await self._send(plain, given)
        except UpstreamFailure as failure:
            return self._count_failure(operation, "upstream", refusal(failure.status, f"{failure}"))
        self._metrics.count(operation, "unfolded")
        self._metrics.count_failure("unfolded")
        body = response.native.content
        if not response.failed:
            body = mark_unfolded(operation, given.request, response.body, reason)
        outcome = f"unfolded; reason={header_text(reason)}"
        return Answer(response.status, body, _whole(response.native), given.caller.warnings, outcome)

    def _count_failure(self, operation: str, kind: str, answer: Answer) -> Answer:
        self._metrics.count_failure(kind)
        _log.warning(
            "a request was refused",
            extra={"fields": {"operation": operation, "kind": kind, "status": answer.status}},
        )
        return answer


#: Headers of an answer that hold for other bytes than those sent.
_REPLACED = frozenset(
    (b"content-length", b"content-encoding", b"transfer-encoding", b"connection", b"keep-alive", b"vary")
)


def request_of_message(
    operation: Operation, request: GatewayRequest, caller: HttpCaller, body: bytes
) -> Intercepted:
    """Return a request in the form that the interceptor reads."""
    wish = header(request.headers, FOLD).strip().lower()
    read = RestRequest(request.method, request.path, request.parameters, caller.headers, body or None)
    fold = {"true": True, "false": False}.get(wish)
    return Intercepted(operation, read, request.query, caller, fold)


def _advance(
    steps: Steps[Any],
    answer: Any,  # noqa: ANN401 - what steps are sent
    error: BaseException | None,
) -> tuple[bool, Any]:
    """Run steps to their next request, or their end; an error is raised in them."""
    try:
        return False, steps.send(answer) if error is None else steps.throw(error)
    except StopIteration as end:
        return True, end.value


async def _in_thread(executor: Executor, function: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Run a function in a thread; wait for it even if the caller disconnects."""
    context = contextvars.copy_context()
    future = asyncio.get_running_loop().run_in_executor(executor, context.run, function)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


def _encode_body(body: Any) -> bytes | None:  # noqa: ANN401 - JSON, or bytes of it
    return body if body is None or isinstance(body, bytes) else write_value(body)


def _kept_headers(replies: Sequence[Reply]) -> Headers:
    """Return the headers of upstream that apply to an answer made of several answers."""
    if not replies:
        return ()
    kept = [pair for pair in replies[-1].headers if pair[0] in _KEPT]
    warnings = {value for reply in replies for name, value in reply.headers if name == b"warning"}
    return [*kept, *((b"warning", value) for value in sorted(warnings))]


def _folding_of(body: Any) -> tuple[str | None, int | None]:  # noqa: ANN401 - JSON
    """Return why an answer is not folded, and the number of folded hits; both None if it is plain."""
    pages = body.get("responses", [body]) if isinstance(body, Mapping) else ()
    found = [
        page["dedup"]
        for page in pages
        if isinstance(page, Mapping) and isinstance(page.get("dedup"), Mapping)
    ]
    reasons = [str(one.get("mode_reason")) for one in found if one.get("mode") == "unfolded"]
    if reasons:
        return reasons[0], None
    return None, sum(int(one.get("folded") or 0) for one in found) if found else None


def _whole(reply: Reply) -> Headers:
    """Return the headers of upstream for an answer that is forwarded whole."""
    return [pair for pair in reply.headers if pair[0] not in _REPLACED]


def _fails_open(operation: str, error: ShinglefoldError) -> bool:
    """Return whether the engine answers a request: a valid search that can't be folded."""
    if operation not in SEARCHES or isinstance(error, EngineUnavailable):
        return False
    return not isinstance(error, ConfigError) or isinstance(error, MissingExtra | UnknownLanguage)


def _engines_own(error: ShinglefoldError, caller: HttpCaller) -> Answer | None:
    """Return the engine's refusal that caused an error, if there is one."""
    for cause in causes(error):
        if isinstance(cause, UpstreamFailure):
            return refusal(cause.status, str(cause))
        if (status := refused_status(cause)) and (own := _last_reply(status, caller)):
            return own
    return None


def _last_reply(status: int, caller: HttpCaller) -> Answer | None:
    """Return the last answer of the engine with a status; None without one."""
    found = next((reply for reply in reversed(caller.replies) if reply.status == status), None)
    return found and Answer(status, found.content, _whole(found))
