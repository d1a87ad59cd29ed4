"""The gateway's own answers under ``/_shinglefold/``: health, metrics, and fingerprints of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from shinglefold.errors import ShinglefoldError
from shinglefold.gateway.access import AccessToken, host_name, is_loopback
from shinglefold.gateway.http.interception import GatewayParts, Interception
from shinglefold.gateway.http.messages import (
    Answer,
    BodyTooLarge,
    GatewayRequest,
    Headers,
    HttpCaller,
    Receive,
    caller_headers,
    header,
    read_body,
    refusal,
    refusal_of,
)
from shinglefold.gateway.http.metrics import CONTENT_TYPE
from shinglefold.gateway.http.upstream import UpstreamFailure
from shinglefold.gateway.indices import SignedIndex
from shinglefold.gateway.rest import read_value
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.maintenance.reconcile import new_fingerprint
from shinglefold.model.recipe import FIELD
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_known, expected
from shinglefold.registry import codes_with_any, make_scheme

PREFIX = "/_shinglefold"
_METHODS = {"/health": ("GET", "HEAD"), "/metrics": ("GET", "HEAD"), "/sign": ("POST",)}
_KEYS = ("documents", "text", "preset", "languages")


@dataclass(eq=False, frozen=True)
class Admin:
    """Answers requests under the gateway's own prefix.

    Args:
        most_bytes: of a body.
        token: lets those who send it read metrics and sign texts.
        is_open: requests to a name of this machine need no token. Other host names do: a foreign page could
            point its own name at this machine and read the answers.
    """

    parts: GatewayParts
    interception: Interception
    most_bytes: int
    token: AccessToken
    is_open: bool

    async def answer(self, request: GatewayRequest, receive: Receive) -> Answer:
        """Answer a request for a path below the prefix."""
        method, path = request.method, request.path.removeprefix(PREFIX)
        wanted = _METHODS.get(path)
        if wanted is None:
            return refusal(404, "the gateway has /_shinglefold/health, /metrics and /sign")
        if path != "/health" and (reason := self._refusal_reason(request.headers)):
            return refusal(403, f"{PREFIX}{path} {reason}")
        if method not in wanted:
            answer = refusal(405, f"use {wanted[0]}")
            return Answer(answer.status, answer.body, [(b"allow", ", ".join(wanted).encode())])
        if path == "/health":
            return await self._health(request.headers)
        if path == "/metrics":
            return Answer(200, self.parts.metrics.text(), [(b"content-type", CONTENT_TYPE)])
        return await self._sign(request, receive)

    def _refusal_reason(self, headers: Headers) -> str:
        """Return why a request is refused; "" if it is allowed."""
        asked = header(headers, b"host")
        if self.is_open and not self.token.is_needed and not is_loopback(host_name(asked)):
            return f"is not at {asked!r}: ask 127.0.0.1 or localhost, or start the gateway with --admin-token"
        may = self.token.is_given(caller_headers(headers)) if self.token.is_needed else self.is_open
        return "" if may else "needs the token of --admin-token as Authorization: Bearer"

    async def _health(self, headers: Headers) -> Answer:
        caller = self._caller(headers)
        try:
            reply = await self.parts.upstream.ask("GET", "/", caller, caller.headers, safe=True)
        except UpstreamFailure as failure:
            return Answer(
                503, {"status": "unavailable", "upstream": {"reachable": False, "reason": str(failure)}}
            )
        return Answer(200, {"status": "ok", "upstream": {"reachable": True, "status": reply.status}})

    async def _sign(self, request: GatewayRequest, receive: Receive) -> Answer:
        name, headers = request.parameters.get("index"), request.headers
        try:
            body = read_value(await read_body(receive, headers, self.most_bytes))
            documents = self._documents(body, with_index=name is not None)
            if name is None:
                index = self._index_of(body)
            else:
                found = await self.interception.signed_index(name, self._caller(headers))
                if isinstance(found, Answer):
                    return found
                index = found
            outcomes = await self.parts.signers.run(partial(index.sign, [(None, one) for one in documents]))
        except BodyTooLarge:
            return refusal(
                413, f"the body has more than {self.most_bytes} bytes: send fewer documents at once"
            )
        except (ValueError, RecursionError):
            return refusal(400, "the body is not JSON, or nested too deeply", "illegal_argument_exception")
        except ShinglefoldError as error:
            return refusal_of(error)
        field = index.recipe.field
        return Answer(
            200,
            {
                "field": field,
                "scheme": index.recipe.scheme.id,
                "documents": [_fingerprint_answer(outcome, field) for outcome in outcomes],
            },
        )

    def _documents(self, body: Any, *, with_index: bool) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 - JSON
        if not isinstance(body, Mapping) or not isinstance(body.get("documents"), list):
            raise expected("the body", 'an object such as {"documents": [{"title": "…"}]}', body)
        check_known("key", body, _KEYS[:1] if with_index else _KEYS)
        documents: list[Mapping[str, Any]] = body["documents"]
        return documents

    def _index_of(self, body: Mapping[str, Any]) -> SignedIndex:
        """Return the signer for the scheme and the fields that a body names, without an index."""
        settings = self.parts.settings
        scheme = make_scheme(
            body.get("preset", settings.preset),
            codes_with_any(body.get("languages", settings.languages or None)),
            settings.canon_options(),
            dict(settings.language),
        )
        key = self.parts.options.seal_key or settings.seal_key
        seal = Seal.parse(key) if key else None
        fields = body.get("text", ("title", "body"))
        pipeline = Pipeline.from_json(default_definition(FIELD, fields), scheme, seal=seal)
        return SignedIndex("", pipeline.recipe(FIELD), seal, "")

    def _caller(self, headers: Headers) -> HttpCaller:
        """Return the caller, without the gateway's own token."""
        own = dict(caller_headers(headers))
        own.pop("content-type", None)
        return HttpCaller(self.token.remove_from(own))


def _fingerprint_answer(outcome: Outcome | str, field: str) -> Mapping[str, Any]:
    """Return the answer for a document: its fingerprint, or why it has none."""
    if isinstance(outcome, str):
        return {"error": {"type": "illegal_argument_exception", "reason": outcome}}
    if outcome.status == "dropped":
        return {"dropped": True}
    return {"fingerprint": new_fingerprint(outcome, field)}
