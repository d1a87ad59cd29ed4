"""The gates of indices whose recipe has one: opened when a write needs one, and their answers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from threading import Lock, Thread

from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.errors import EngineError, EngineUnavailable, ShinglefoldError
from shinglefold.gateway.access import credentials
from shinglefold.gateway.indices import SignedIndex
from shinglefold.gateway.rest import (
    RestRequest,
    RestResponse,
    Steps,
    ask,
    failure,
    json_headers,
    log,
    objects_of,
    path_of,
    send,
    warn,
    write_value,
)
from shinglefold.grouping import Gate, Policy, Verdict
from shinglefold.grouping.gate.gate import document_id
from shinglefold.grouping.gate.protocol.pending_document import EXISTS
from shinglefold.ingest.pipeline.pipeline import Outcome

#: The most open gates of one client.
_MOST = 16
#: The parameters that a write through a gate accepts; others are refused by name.
_KNOWN = frozenset(
    (
        *("_index", "_id", "routing", "_routing", "refresh", "timeout", "op_type", "pretty", "human"),
        *("format", "error_trace", "filter_path", "_source", "_source_includes", "_source_excludes"),
    )
)
#: What an engine says of a document whose version is unknown.
_NO_VERSION = {"_version": -3, "_seq_no": -2, "_primary_term": 0}


@dataclass(frozen=True, slots=True)
class Admit:
    """Signed documents for the gate of an index; the answer is a ``Verdict`` for each.

    ``documents``: with ``_id``, optionally ``_routing`` and the ``_op_type`` ``"create"``. ``headers``: of
    the request, whose caller has its own gate.
    """

    index: SignedIndex
    documents: Sequence[Document]
    headers: Mapping[str, str]


class OpenGates:
    """Open gates, one for each index and caller; threads may share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        #: The least recently used gate comes first. A gate is closed in the context in which it was opened.
        self._gates: dict[object, tuple[Gate, Context]] = {}

    def admit(self, engine: Engine, request: Admit) -> list[Verdict]:
        """Return the verdicts on documents, which are stored if they are accepted.

        Args:
            engine: blocks, and sends what it is asked as the caller of the request.

        Raises:
            ConfigError: no gate can be opened for the index.
            EngineError: as the gate raises.
        """
        key = id(engine), request.index.stored_in, credentials(request.headers)
        while True:
            gate, opened = self._gate(key, engine, request.index)
            try:
                return gate.admit(request.documents)
            except EngineUnavailable:
                raise
            except EngineError:
                # Its index was replaced or set up again, or this process is a fork.
                with self._lock:
                    if self._gates.get(key, (None,))[0] is gate:
                        _close(*self._gates.pop(key))
                if opened:
                    raise

    def _gate(self, key: object, engine: Engine, index: SignedIndex) -> tuple[Gate, bool]:
        """Return the gate of an index, and whether it was opened just now."""
        with self._lock:
            found = self._gates.pop(key, None)
            if found is not None and found[0].recipe != index.recipe:
                _close(*found)
                found = None
            opened = found is None
            gate, context = found or (
                # All writers of an index need the same policy.
                Gate(engine, index.stored_in, Policy("refuse"), seal=index.seal),
                copy_context(),
            )
            self._gates[key] = gate, context
            if len(self._gates) > _MOST:
                _close(*self._gates.pop(next(iter(self._gates))))
        return gate, opened


def _close(gate: Gate, context: Context) -> None:
    """Close a gate without waiting for documents that are being decided."""

    def close() -> None:
        # If it fails, other gates remove its intents.
        with suppress(ShinglefoldError):
            gate.close()

    Thread(target=context.run, args=(close,), daemon=True).start()


def unkept(index: SignedIndex, *given: Mapping[str, object]) -> str:
    """Return why a gate does not support a request; "" if it does."""
    names = "routing", "_routing"
    own = next((str(one[name]) for one in given for name in names if one.get(name) is not None), None)
    if own is not None and index.routing not in (None, own):
        return (
            f"its routing is {own!r}, and the alias {index.name!r} has the index routing "
            f"{index.routing!r}: leave it out"
        )
    asked = ((name, value) for one in given for name, value in one.items() if name not in _KNOWN)
    name = next((name for name, value in asked if (name, value) != ("pipeline", "_none")), None)
    if name is None:
        return ""
    return (
        f"[{name}] can't be kept where a gate decides about documents: leave it out, or end the gate of "
        f"{index.name!r}: `shinglefold setup {index.name} --gate none`"
    )


def gate_document(
    index: SignedIndex, outcome: Outcome, id_: str | None, routing: object, *, create: bool
) -> Document:
    """Return a signed document for a gate, with a random id if it has none."""
    document = {name: value for name, value in (outcome.document or {}).items() if name != "_index"}
    document["_id"] = document_id({}) if id_ is None else id_
    routing = index.routing if routing is None else routing
    if routing is not None:
        document["_routing"] = str(routing)
    return {**document, "_op_type": "create"} if create else document


def admit(request: Admit) -> Steps[list[JSON]]:
    """Return an answer to each document, in the shape of an item of a bulk response."""
    verdicts: list[Verdict] = yield request
    stored = [
        {"_id": one["_id"], "_source": False} | ({"routing": one["_routing"]} if "_routing" in one else {})
        for one, verdict in zip(request.documents, verdicts, strict=True)
        if verdict.status == "accepted"
    ]
    versions = iter((yield from _versions(request, stored)))
    index = request.index.stored_in
    return [
        _accepted_answer(one, next(versions)) if one.status == "accepted" else _rejected_answer(index, one)
        for one in verdicts
    ]


def single(answer: JSON) -> RestResponse:
    """Return the response to a write of one document from an item of a bulk response."""
    if "error" not in answer:
        return RestResponse(answer["status"], {name: one for name, one in answer.items() if name != "status"})
    error = answer["error"]
    cause = {"type": error["type"], "reason": error["reason"]}
    body = {"error": {"root_cause": [cause], **error}, "status": answer["status"]}
    return RestResponse(answer["status"], body)


def _versions(request: Admit, documents: Sequence[JSON]) -> Steps[list[JSON]]:
    """Return the index and the version of stored documents, which verdicts lack."""
    unknown = {"_index": request.index.stored_in, **_NO_VERSION}
    if not documents:
        return []
    headers = json_headers(request.headers)
    body, path = write_value({"docs": documents}), path_of(request.index.stored_in, "_mget")
    try:
        answer = yield from send(RestRequest("POST", path, headers=headers, body=body))
        found = objects_of(answer, "docs", len(documents))
    except Exception as error:
        # An error would tell that they are not stored.
        log.warning("the versions of documents in %r can't be read: %s", request.index.name, error)
        return [unknown] * len(documents)
    return [{name: one.get(name, unknown[name]) for name in unknown} for one in found]


def refresh(request: RestRequest, index: SignedIndex) -> Steps[None]:
    """Refresh an index after a gate stored documents, if the request says so."""
    if str(request.parameters.get("refresh", "false")).lower() == "false":
        return
    try:
        answer = yield from ask("POST", path_of(index.stored_in, "_refresh"), request.headers)
    except Exception as error:
        # An error would tell that nothing was stored.
        why = str(error)
    else:
        why = _not_refreshed(answer)
    if why:
        warn(
            f"documents are stored in {index.name!r}, and searches may not show them yet: {why}. "
            f"Refresh it again: POST {path_of(index.stored_in, '_refresh')}"
        )


def _not_refreshed(answer: RestResponse) -> str:
    """Return why not all copies of an index were refreshed; "" if they were."""
    if answer.failed:
        return f"the engine refuses to refresh the index (status {answer.status})"
    shards = answer.body.get("_shards")
    if not isinstance(shards, Mapping):
        return "something else answers than the engine"
    if not shards.get("failed"):
        return ""
    return f"{shards['failed']} of {shards.get('total')} copies of its shards were not refreshed"


def _accepted_answer(verdict: Verdict, version: JSON) -> JSON:
    return {
        "_id": verdict.id,
        **version,
        "result": "updated" if verdict.replaced else "created",
        "_shards": {"total": 1, "successful": 1, "failed": 0},
        "status": 200 if verdict.replaced else 201,
    }


def _rejected_answer(index: str, verdict: Verdict) -> JSON:
    """Return the answer about a document that is not stored, with the one that it resembles."""
    if verdict.reason == EXISTS:
        reason = f"[{verdict.id}]: version conflict, document already exists"
        refusal = failure(reason, 409, "version_conflict_engine_exception")
    elif verdict.like is None:
        refusal = failure(verdict.reason)
    else:
        refusal = failure(verdict.reason, 409, "near_duplicate_exception")
        refusal["error"]["like"] = {"_index": index, **verdict.to_json()["like"]}
    del refusal["error"]["root_cause"]
    return {"_index": index, "_id": verdict.id, **refusal}
