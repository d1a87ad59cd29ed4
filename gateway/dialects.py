"""How the transports of the two clients are called, and what they return and raise."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from shinglefold.errors import ShinglefoldError
from shinglefold.gateway.rest import RestRequest, RestResponse, causes

#: Headers that belong to a body, not to a caller.
_OF_BODY = ("content-type", "accept", "content-length")
#: Keywords of Elasticsearch's transport that say how a request is sent.
_HOW = ("max_retries", "request_timeout", "retry_backoff_base", "retry_backoff_cap")
_HOW_ELASTICSEARCH = (*_HOW, "retry_on_status", "retry_on_timeout", "client_meta")


@dataclass(slots=True)
class Caller:
    """The options of a request, such as headers and timeouts, which apply to all requests made for it.

    ``how``: keywords of the transport. ``ignored``: statuses that are no errors. ``meta``: of the last
    response.
    """

    headers: dict[str, Any]
    how: dict[str, Any] = field(default_factory=dict)
    ignored: Collection[int] = ()
    meta: Any = None

    @property
    def own_headers(self) -> dict[str, Any]:
        """Return the headers that identify the caller, without those of a body."""
        return {name: value for name, value in self.headers.items() if name.lower() not in _OF_BODY}


class OpenSearchDialect:
    """The calls of opensearch-py."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of a refused request."""
        from opensearchpy.exceptions import TransportError

        return (TransportError,)

    def read(
        self,
        transport: Any,  # noqa: ANN401 - the clients' own types
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        parsed: bool,
    ) -> tuple[RestRequest, Caller]:
        """Return the request that a call sends; its body as bytes, unless it is to be ``parsed``."""
        names = ("method", "url", "params", "body", "timeout", "ignore", "headers")
        given = dict(zip(names, args, strict=False)) | kwargs
        parameters: dict[str, Any] = {
            # The client has encoded texts.
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in (given.get("params") or {}).items()
        }
        # As the transport itself takes them out of the parameters.
        timeout = given.get("timeout")
        if not timeout:
            timeout = parameters.pop("request_timeout", None) or parameters.pop("timeout", None)
        ignored: Any = given.get("ignore") or parameters.pop("ignore", ())
        body = given.get("body")
        if body is not None and not (parsed and isinstance(body, Mapping)):
            body = encode_body(transport.serializer.dumps(body))
        headers = dict(given.get("headers") or {})
        path, _, query = given["url"].partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True)) | parameters
        request = RestRequest(given["method"], path, parameters, headers, body)
        ignored = (ignored,) if isinstance(ignored, int) else ignored
        return request, Caller(headers, {"timeout": timeout} if timeout else {}, ignored)

    def write(self, request: RestRequest, caller: Caller) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call that sends a request."""
        how = {**caller.how, "params": dict(request.parameters), "body": request.body}
        return (request.method, request.path), {**how, "headers": dict(request.headers) or None}

    def as_caller(self, kwargs: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Return the keywords of a call with those of a caller."""
        return {**kwargs, **caller.how, "headers": _with_own(kwargs, caller) or None}

    def response(self, answer: Any, caller: Caller) -> RestResponse:  # noqa: ANN401
        """Return what the transport returned as a response."""
        return RestResponse(200, answer)

    def refusal(self, error: Any) -> RestResponse:  # noqa: ANN401
        """Return what the transport raised as a response; raise it if the engine did not answer."""
        if not isinstance(error.status_code, int):
            raise error
        return RestResponse(error.status_code, error.info, error)

    def give(self, response: RestResponse, caller: Caller, transport: Any) -> Any:  # noqa: ANN401
        """Return or raise a response as the transport does."""
        if response.status < 400 or response.status in caller.ignored:
            return response.body
        if isinstance(response.native, Exception):
            raise response.native
        from opensearchpy.exceptions import HTTP_EXCEPTIONS, TransportError

        error = HTTP_EXCEPTIONS.get(response.status, TransportError)
        found = response.body.get("error") if isinstance(response.body, Mapping) else None
        kind = found.get("type", "") if isinstance(found, Mapping) else str(found or "")
        raise error(response.status, kind, response.body)

    def fail(self, error: ShinglefoldError, caller: Caller) -> Any:  # noqa: ANN401
        """Return or raise the client's own error that caused an error; else raise the error."""
        from opensearchpy.exceptions import OpenSearchException

        own = _cause(error, OpenSearchException)
        if own is None:
            raise error
        status = getattr(own, "status_code", None)
        if status in caller.ignored:
            return own.info
        raise own


class ElasticsearchDialect:
    """The calls of elasticsearch-py 8 and 9: its transport raises no refusals, its client does."""

    errors: tuple[type[Exception], ...] = ()

    def read(
        self,
        transport: Any,  # noqa: ANN401 - the clients' own types
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        parsed: bool,
    ) -> tuple[RestRequest, Caller]:
        """Return the request that a call sends; see ``OpenSearchDialect``."""
        given = dict(zip(("method", "target"), args, strict=False)) | kwargs
        path, _, query = given["target"].partition("?")
        headers = dict(given.get("headers") or {})
        body = given.get("body")
        if body is not None and not (parsed and isinstance(body, Mapping)):
            kind = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
            body = encode_body(transport.serializers.dumps(body, mimetype=kind))
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        how = {name: given[name] for name in _HOW_ELASTICSEARCH if name in given}
        return RestRequest(given["method"], path, parameters, headers, body), Caller(headers, how)

    def write(self, request: RestRequest, caller: Caller) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call that sends a request."""
        query = urlencode(request.parameters)
        target = f"{request.path}?{query}" if query else request.path
        how = {**caller.how, "headers": dict(request.headers)}
        return (request.method, target), how if request.body is None else {**how, "body": request.body}

    def as_caller(self, kwargs: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Return the keywords of a call with those of a caller."""
        return {**kwargs, **caller.how, "headers": _with_own(kwargs, caller)}

    def response(self, answer: Any, caller: Caller) -> RestResponse:  # noqa: ANN401
        """Return what the transport returned as a response."""
        caller.meta = answer.meta
        return RestResponse(answer.meta.status, answer.body, answer)

    def refusal(self, error: Any) -> RestResponse:  # noqa: ANN401
        """Raise what the transport raised: the engine did not answer."""
        raise error

    def give(self, response: RestResponse, caller: Caller, transport: Any) -> Any:  # noqa: ANN401
        """Return a response as the transport does."""
        from elastic_transport import ApiResponseMeta, HttpHeaders, TransportApiResponse

        native = response.native
        if native is not None and native.body is response.body and native.meta.status == response.status:
            return native
        meta = caller.meta
        if meta is None:
            node = transport.node_pool.all()[0].config
            headers = HttpHeaders({"x-elastic-product": "Elasticsearch", "content-type": "application/json"})
            meta = ApiResponseMeta(response.status, "1.1", headers, 0.0, node)
        return TransportApiResponse(replace(meta, status=response.status), response.body)

    def fail(self, error: ShinglefoldError, caller: Caller) -> Any:  # noqa: ANN401
        """Return the response that caused an error, for the client to raise; else raise the error."""
        from elastic_transport import TransportApiResponse, TransportError
        from elasticsearch import ApiError

        own = _cause(error, ApiError, TransportError)
        if own is None:
            raise error
        if isinstance(own, ApiError):
            return TransportApiResponse(own.meta, own.body)
        raise own


#: The calls of one client's transport.
Dialect = OpenSearchDialect | ElasticsearchDialect


def _with_own(kwargs: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """Return the headers of a call, replaced by those of a caller with the same names."""
    own = {name.lower(): value for name, value in caller.own_headers.items()}
    kept = {name: value for name, value in (kwargs.get("headers") or {}).items() if name.lower() not in own}
    return {**kept, **own}


def encode_body(body: str | bytes) -> bytes:
    """Return what a client's serializer made as bytes."""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body


def _cause(error: BaseException, *kinds: type[Exception]) -> Any:  # noqa: ANN401 - the clients' own types
    return next((one for one in causes(error) if isinstance(one, kinds)), None)
