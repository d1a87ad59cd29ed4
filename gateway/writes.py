"""Writes of one document on their way to the engine: each gets the fingerprint of its text."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.gateway.gates import Admit, admit, gate_document, refresh, single, unkept
from shinglefold.gateway.indices import KnownIndices, SignedIndex
from shinglefold.gateway.rest import (
    Operation,
    RestRequest,
    RestResponse,
    Steps,
    Work,
    failure,
    names_twice,
    path_of,
    read_object,
    read_value,
    refuses_retries,
    send,
    warn,
    warn_stale,
    whole_number,
    write_value,
)
from shinglefold.gateway.search_answers import with_body
from shinglefold.gateway.updates import (
    ROUNDS,
    WRITTEN,
    UpdateRequest,
    check_document,
    log_unrenewed,
    read_documents,
    sign_again,
    sign_if_switched,
    with_version,
)
from shinglefold.ingest.pipeline.pipeline import Outcome

#: What an engine answers to a document that a pipeline drops.
DROPPED = {"_version": -3, "result": "noop", "_shards": {"total": 0, "successful": 0, "failed": 0}}
_CONFLICT = 409


def check_pipeline(parameters: Mapping[str, Any], index: str) -> None:
    """Warn if a write names a pipeline of the server, which may change texts after they are signed."""
    if parameters.get("pipeline", "_none") != "_none":
        warn(
            f"the pipeline {parameters['pipeline']!r} of the server may change documents of {index!r} after "
            f"they are signed. If it changes their texts, run `shinglefold backfill {index}`"
        )


class SignedWrites:
    """Writes of one document to an index with a recipe; writes to other indices are sent unchanged."""

    def __init__(self, indices: KnownIndices) -> None:
        self._indices = indices

    def write(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Store a document with its fingerprint, and return the engine's response.

        Raises:
            MissingExtra, SchemeMismatch, ConfigError: no document of the index can be signed here.
        """
        name, id_ = str(operation.target), operation.id
        index = yield from self._indices.target(name, request.headers)
        if index is None:
            return None
        try:
            document = read_value(request.body)
        except ValueError:
            warn_unread(index)
            return None
        if not isinstance(document, Mapping) or (index.gated and names_twice(request.body)):
            # The engine refuses it in its own words.
            return None
        check_pipeline(request.parameters, name)
        (outcome,) = yield Work(partial(index.sign, [(id_, document)]))
        answer = _refusal_answer(outcome, name, id_)
        if answer is None:
            assert isinstance(outcome, Outcome)
            check_document(outcome, name, id_)
            if index.gated:
                answer = yield from _admit(index, operation, request, outcome)
            else:
                answer = yield from send(replace(request, body=source_of(outcome, request.body, document)))
                answer = yield from self._follow_alias(index, request, answer)
        return answer

    def update(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Update a document with the fingerprint of the merged one, and return the engine's response.

        Raises:
            As ``write``. EngineError: the document can't be read.
        """
        name, id_ = str(operation.target), str(operation.id)
        index = yield from self._indices.target(name, request.headers)
        if index is None:
            return None
        try:
            body = read_value(request.body)
        except ValueError:
            warn(f"an update of {name!r} is not JSON: if the engine takes it, the fingerprint is not renewed")
            return None
        if names_twice(request.body):
            return None
        update = yield Work(partial(UpdateRequest.of, index, id_, body))
        if not update.script and not update.needs_document and update.body == body:
            return None
        return (yield from self._send_update(update, request))

    def _follow_alias(
        self, index: SignedIndex, request: RestRequest, answer: RestResponse
    ) -> Steps[RestResponse]:
        """Return an answer after its document was signed again, if an alias was switched meanwhile."""
        told = answer.body
        if answer.failed or told.get("result") not in WRITTEN or not {"_index", "_id"} <= told.keys():
            return answer
        routing = request.parameters.get("routing")
        documents = [(told["_id"], None if routing is None else str(routing))]
        (renewed,) = yield from sign_if_switched(self._indices, index, told["_index"], documents, request)
        return replace(answer, body=with_version(told, renewed)) if renewed else answer

    def _send_update(self, update: UpdateRequest, request: RestRequest) -> Steps[RestResponse]:
        """Send an update, again while others change its document, and return the engine's response."""
        name, id_ = update.index.name, update.id
        if update.script:
            answer = yield from _update_by_script(self._indices, update, request)
            return (yield from self._follow_alias(update.index, request, answer))
        if not update.needs_document or refuses_retries(request.parameters):
            answer = yield from send(replace(request, body=write_value(update.body)))
            return (yield from self._follow_alias(update.index, request, answer))
        own_guard, routing = "if_seq_no" in request.parameters, request.parameters.get("routing")
        answer, again = RestResponse(_CONFLICT, None), True
        rounds = max(ROUNDS, whole_number(request.parameters.get("retry_on_conflict")))
        for _ in range(1 if own_guard else rounds):
            index, (found,) = yield from read_documents(
                self._indices, update.index, [(id_, routing)], request.headers
            )
            if isinstance(found, str):
                answer, again = (yield from send(replace(request, body=write_value(update.body)))), False
                if found and not answer.failed:
                    warn_stale(name, id_, found)
                break
            update = replace(update, index=index)
            answer, again = yield from _update_once(update, found, request, own_guard=own_guard)
            if not again:
                break
            index = yield from self._indices.target_again(update.index, request.headers)
            update = replace(update, index=index)
        if again and not answer.failed:
            warn_stale(name, id_, "it is stored, and can't be found")
        return (yield from self._follow_alias(update.index, request, answer))

    def warn_unsigned(self, operation: Operation, request: RestRequest) -> Steps[None]:
        """Warn that a request writes documents that can't be signed; it is sent unchanged."""
        body = read_object(with_body(request).body)
        if body is None:
            return
        name = operation.target
        if operation.name == "reindex":
            to = body.get("dest")
            named = str(to.get("index") or "") if isinstance(to, Mapping) else ""
            # Half of a surrogate pair is in no path.
            name = "" if any("\ud800" <= one <= "\udfff" for one in named) else named
        elif "script" not in body and "pipeline" not in request.parameters:
            # It writes the documents again as they are.
            return
        index = (yield from self._indices.target(name, request.headers)) if name else None
        if index is not None:
            warn(
                f"{operation.name.replace('_', ' ')} writes documents to {name!r} whose fingerprints may be "
                f"stale or missing{index.unchecked}. Run `shinglefold backfill {name}`"
            )


def _update_once(
    update: UpdateRequest, found: VersionedDocument | None, request: RestRequest, *, own_guard: bool
) -> Steps[tuple[RestResponse, bool]]:
    """Return the response, and whether the document has to be merged again.

    Args:
        found: the stored document, None if it is missing.
    """
    index, id_ = update.index, update.id
    kept = {name: value for name, value in request.parameters.items() if name != "retry_on_conflict"}
    if found is None:
        document = update.upsert_document()
        if document is None:
            answer = yield from send(replace(request, body=write_value(update.body)))
            # Another writer stored the document meanwhile, and its fingerprint is to be renewed.
            return answer, not answer.failed
        (outcome,) = yield Work(partial(process_upserts, index, [(id_, document)]))
        refused = _refusal_answer(outcome, index.name, id_)
        if refused is not None:
            return refused, False
        check_document(outcome, index.name, id_)
        for name in ("_source", "_source_includes", "_source_excludes", "lang"):
            kept.pop(name, None)
        path = path_of(index.name, "_create", id_)
        made = replace(request, path=path, parameters=kept, body=source_of(outcome))
        return (yield from _send_once(made))
    (outcome,) = yield Work(partial(index.sign, [(id_, update.merge_into(found))]))
    refused = _refusal_answer(outcome, index.name, id_)
    if refused is not None:
        return refused, False
    if not own_guard:
        kept |= {"if_seq_no": found.guard.seq_no, "if_primary_term": found.guard.primary_term}
    body = write_value(update.signed_body(found, outcome))
    return (yield from _send_once(replace(request, parameters=kept, body=body)))


def _update_by_script(
    indices: KnownIndices, update: UpdateRequest, request: RestRequest
) -> Steps[RestResponse]:
    """Send an update by a script, and renew the fingerprint of the updated document."""
    with log_unrenewed([(update.index.name, update.id)]):
        answer = yield from send(replace(request, body=write_value(update.body)))
    if answer.failed or answer.body.get("result", "updated") not in WRITTEN:
        return answer
    routing = request.parameters.get("routing")
    documents = [(update.id, None if routing is None else str(routing))]
    renewed = yield from sign_again(indices, update.index, documents, request)
    return replace(answer, body=with_version(answer.body, renewed[0])) if renewed[0] else answer


def warn_unread(index: SignedIndex) -> None:
    """Warn that a document can't be signed; the engine may accept it, as it reads comments in JSON."""
    warn(
        f"a document for {index.name!r} is not JSON: if the engine takes it, it has no fingerprint"
        f"{index.unchecked}"
    )


def process_upserts(index: SignedIndex, documents: Sequence[tuple[str | None, Any]]) -> list[Outcome | str]:
    """Return the documents that updates insert after the pipeline, or the reason why they are refused."""
    if not index.gated:
        return index.sign(documents)
    why = (
        f"the gate of {index.name!r} does not decide about upserts: store new documents by index or create, "
        f"or end the gate: `shinglefold setup {index.name} --gate none`"
    )
    return [why] * len(documents)


def _admit(
    index: SignedIndex, operation: Operation, request: RestRequest, outcome: Outcome
) -> Steps[RestResponse]:
    """Let the gate of an index store a document or refuse it."""
    parameters = request.parameters
    if why := unkept(index, parameters):
        return RestResponse(400, failure(why))
    create = operation.name == "create" or parameters.get("op_type") == "create"
    document = gate_document(index, outcome, operation.id, parameters.get("routing"), create=create)
    answers = yield from admit(Admit(index, [document], request.headers))
    yield from refresh(request, index)
    return single(answers[0])


def _send_once(request: RestRequest) -> Steps[tuple[RestResponse, bool]]:
    answer = yield from send(request)
    return answer, answer.status == _CONFLICT


def source_of(outcome: Outcome, given: Any = None, parsed: Any = None) -> bytes:  # noqa: ANN401 - JSON
    """Return the source of a signed document as JSON.

    A document to which only the fingerprint was added keeps its bytes. So the engine sees what a parser
    loses: keys that are there twice, which it refuses, and how numbers are written. One with such keys that
    the pipeline changes is returned as it came.

    Args:
        given, parsed: the document as it came, and what was read of it.
    """
    document = outcome.document or {}
    source = {name: value for name, value in document.items() if name not in ("_id", "_index")}
    if isinstance(given, bytes) and isinstance(parsed, Mapping) and parsed:
        added = {name: value for name, value in source.items() if name not in parsed}
        # Python takes 1, 1.0 and true for equal.
        kept = len(source) == len(parsed) + len(added) and all(
            source[name] is parsed[name] or write_value(source[name]) == write_value(parsed[name])
            for name in parsed
        )
        text = given.strip()
        # Others are in UTF-16, or begin with a byte order mark.
        if added and kept and text[:1] + text[-1:] == b"{}" and b"\0" not in text:
            return text[:-1] + b"," + write_value(added)[1:]
        if names_twice(given):
            return given
    return write_value(source)


def _refusal_answer(outcome: Outcome | str, index: str, id_: str | None) -> RestResponse | None:
    """Return the response for a document that is not sent; None for one that is."""
    if isinstance(outcome, str):
        return RestResponse(400, failure(outcome))
    if outcome.status == "dropped":
        return RestResponse(200, {"_index": index, "_id": id_, **DROPPED})
    return None
