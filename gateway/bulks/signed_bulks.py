"""Bulk requests on their way to the engine: documents get fingerprints, everything else keeps its bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.gateway.bulks.items import BulkItem, BulkSegment, read_items
from shinglefold.gateway.gates import Admit, admit, gate_document, refresh, unkept
from shinglefold.gateway.indices import KnownIndices
from shinglefold.gateway.rest import (
    Operation,
    RestRequest,
    RestResponse,
    Steps,
    Work,
    items_of,
    names_twice,
    read_value,
    refuses_retries,
    send,
    status_of,
    takes_all,
    warn,
    warn_stale,
    whole_number,
    write_value,
)
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
from shinglefold.gateway.writes import DROPPED, check_pipeline, process_upserts, source_of, warn_unread
from shinglefold.ingest.pipeline.pipeline import Outcome

_CONFLICT, _DONE = 409, 200


class SignedBulks:
    """Bulk requests with documents for an index with a recipe; others are sent unchanged."""

    def __init__(self, indices: KnownIndices) -> None:
        self._indices = indices

    def bulk(self, operation: Operation, request: RestRequest) -> Steps[RestResponse | None]:
        """Send a bulk request with fingerprints, and return the response to it, in its order.

        Raises:
            MissingExtra, SchemeMismatch, ConfigError: documents of an index can't be signed here.
            EngineError: a document that is updated can't be read.
        """
        items = read_items(operation, request)
        if items is None:
            warn("a bulk request can't be read: if the engine takes it, its documents have no fingerprints")
            return None
        yield from self._find_indices(items, request)
        if all(item.index is None for item in items):
            return None
        if operation.name == "bulk_stream":
            warn(
                "a streamed bulk is not signed, so its documents are stored without fingerprints: send it by "
                "_bulk, or run `shinglefold backfill`"
            )
            return None
        yield from self._sign(items, request.parameters)
        if not any(item.answer or item.update or item.gate or item.script for item in items):
            answer = yield from send(replace(request, body=_body(items)))
            return (yield from self._finish(items, request, answer))
        # An answer can't be put together of filtered ones.
        whole = {name: value for name, value in request.parameters.items() if name != "filter_path"}
        return (yield from self._send_segments(replace(request, parameters=whole), items))

    def _find_indices(self, items: Sequence[BulkItem], request: RestRequest) -> Steps[None]:
        for group in _group_by_key(items, lambda item: item.name):
            name = group[0].name
            index = yield from self._indices.target(name, request.headers)
            if index is not None:
                check_pipeline(request.parameters, name)
            for item in group:
                item.index = index

    def _find_indices_again(self, items: Sequence[BulkItem], request: RestRequest) -> Steps[None]:
        """Find the indices of updates that met a conflict, as their aliases may write to others now."""
        for group in _group_by_key(items, lambda item: item.name):
            index = yield from self._indices.target_again(group[0].signer, request.headers)
            for item in group:
                assert item.update is not None
                item.index, item.update = index, replace(item.update, index=index)

    def _send_segments(self, request: RestRequest, items: Sequence[BulkItem]) -> Steps[RestResponse]:
        """Send actions one segment after the other, and return the answers to all in order."""
        segments: list[BulkSegment] = []
        for item in items:
            if not segments or not segments[-1].takes(item):
                segments.append(BulkSegment(item.gate))
            segments[-1].add(item)
        answers: list[RestResponse] = []
        with log_unrenewed((item.name, item.id) for item in items if _ran_script(item)):
            for segment in segments:
                deliver = self._send if segment.gate is None else self._admit
                answers.append((yield from deliver(request, segment.items, begun=bool(answers))))
                if answers[0].failed:
                    return answers[0]
        yield from self._sign_again(request, list(filter(_ran_script, items)))
        bodies = [answer.body for answer in answers if not answer.failed]
        body = {
            **bodies[0],
            "took": sum(whole_number(one.get("took")) for one in bodies),
            "errors": any("error" in next(iter(item.answer.values())) for item in items if item.answer),
            "items": [item.answer for item in items],
        }
        joined = replace(answers[0], status=200, body=body)
        return (yield from self._finish(items, request, joined))

    def _finish(
        self, items: Sequence[BulkItem], request: RestRequest, answer: RestResponse
    ) -> Steps[RestResponse]:
        """Return an answer after documents were signed again whose alias was switched meanwhile.

        Warn of documents that only the engine could read.

        Raises:
            EngineUnavailable: something else answers than the engine.
        """
        if answer.refused or (answer.failed and not takes_all(request)):
            return answer
        filtered = "filter_path" in request.parameters
        told = [{} for _ in items] if filtered else items_of(answer, len(items))
        switched: dict[tuple[int, str], list[int]] = {}
        for place, (item, one) in enumerate(zip(items, told, strict=True)):
            index, stored_in = item.index, one.get("_index")
            if index is None:
                continue
            if item.unread and "error" not in one:
                warn_unread(index)
            if item.stale and "error" not in one:
                warn_stale(item.name, item.id, item.stale)
            signed = item.gate is None and one.get("result") in WRITTEN and "_id" in one
            if signed and stored_in not in (None, index.name):
                switched.setdefault((id(index), stored_in), []).append(place)
        for (_, stored_in), places in switched.items():
            index = items[places[0]].signer
            documents = [(told[place]["_id"], items[place].route) for place in places]
            renewed = yield from sign_if_switched(self._indices, index, stored_in, documents, request)
            if any(renewed):
                for place, one in zip(places, renewed, strict=True):
                    told[place] = with_version(told[place], one)
                made = [{item.verb: one} for item, one in zip(items, told, strict=True)]
                answer = replace(answer, body={**answer.body, "items": made})
        return answer

    def prepare(self, items: Sequence[BulkItem], request: RestRequest) -> Steps[None]:
        """Sign the documents of ``index`` and ``create``, and find the updates that need stored ones."""
        yield from self._find_indices(items, request)
        yield from self._sign(items, request.parameters)

    def _sign(self, items: Sequence[BulkItem], parameters: Mapping[str, Any]) -> Steps[None]:
        yield Work(partial(_prepare, items))
        stored = [item for item in items if item.index is not None and item.verb in ("index", "create")]
        for group in _group_by_key(stored, lambda item: id(item.index)):
            index = group[0].signer
            read = [(item, document) for item in group if (document := _source(item)) is not None]
            # The engine refuses these, and a gate would not.
            documents = [one for one in read if not (index.gated and names_twice(one[0].lines[1]))]
            outcomes = yield Work(partial(index.sign, [(item.id, document) for item, document in documents]))
            for (item, document), outcome in zip(documents, outcomes, strict=True):
                if _is_final(item, outcome):
                    continue
                assert isinstance(outcome, Outcome)
                check_document(outcome, item.name, item.id)
                if not index.gated:
                    item.lines = [item.lines[0], source_of(outcome, item.lines[1], document)]
                elif why := unkept(index, item.metadata, parameters):
                    item.refuse(why)
                else:
                    create = item.verb == "create" or item.metadata.get("op_type") == "create"
                    item.admitted = gate_document(index, outcome, item.id, item.route, create=create)

    def _send(self, request: RestRequest, items: Sequence[BulkItem], *, begun: bool) -> Steps[RestResponse]:
        """Send actions, those that met a conflict again; return the response to the first request.

        If other actions of the bulk were sent before (``begun``), each item gets the error.
        """
        nothing = RestResponse(200, {"took": 0, "items": []})
        first: RestResponse | None = None
        waiting = [item for item in items if item.answer is None]
        rounds = 0
        while waiting:
            try:
                if rounds:
                    yield from self._find_indices_again(waiting, request)
                answer = yield from self._send_once(request, waiting)
            except Exception as error:
                if first is None and not begun:
                    raise
                # An error would make clients send the whole bulk again, and store its documents twice.
                for item in waiting:
                    item.answer = {item.verb: _failed_item(item, error)}
                return first or nothing
            first = first or answer
            if answer.failed:
                return first
            rounds += 1
            waiting = [item for item in waiting if _met_conflict(item) and rounds < item.rounds]
        for item in items:
            if item.missing and item.answer_value("status") == _DONE:
                warn_stale(item.name, item.id, "it is stored, and can't be found")
        return first or nothing

    def _sign_again(self, request: RestRequest, items: Sequence[BulkItem]) -> Steps[None]:
        """Renew the fingerprints of documents that scripts have updated."""
        for group in _group_by_key(items, lambda item: id(item.index)):
            # Several scripts may update one document.
            last = {(str(item.id), item.route): item for item in group}
            renewed = yield from sign_again(self._indices, group[0].signer, list(last), request)
            for item, answer in zip(last.values(), renewed, strict=True):
                assert item.answer is not None
                item.answer = {item.verb: with_version(item.answer[item.verb], answer)}

    def _admit(self, request: RestRequest, items: Sequence[BulkItem], *, begun: bool) -> Steps[RestResponse]:
        """Let a gate decide about documents, and store the answer to each; see ``_send``."""
        waiting = [item for item in items if item.admitted is not None]
        index = waiting[0].signer
        documents = [item.admitted for item in waiting if item.admitted is not None]
        try:
            found = yield from admit(Admit(index, documents, request.headers))
            yield from refresh(request, index)
        except Exception as error:
            if not begun:
                raise
            found = [_failed_item(item, error) for item in waiting]
        for item, answer in zip(waiting, found, strict=True):
            item.answer = {item.verb: answer}
        return RestResponse(200, {"took": 0, "items": []})

    def _send_once(self, request: RestRequest, items: Sequence[BulkItem]) -> Steps[RestResponse]:
        """Merge updates, send actions, and store the answer to each."""
        yield from self._merge([item for item in items if item.update is not None], request.headers)
        sent = [item for item in items if item.answer is None]
        if not sent:
            return RestResponse(200, {"took": 0, "items": []})
        with log_unrenewed((item.name, item.id) for item in sent if item.script):
            answer: RestResponse = yield from send(replace(request, body=_body(sent)))
        if answer.refused:
            error = answer.body.get("error") if isinstance(answer.body, Mapping) else None
            for item in sent:
                item.reply(answer.status, {"error": error or answer.body})
            return answer
        for item, found in zip(sent, items_of(answer, len(sent)), strict=True):
            item.answer = {item.verb: found}
        return answer

    def _merge(self, items: Sequence[BulkItem], headers: Mapping[str, str]) -> Steps[None]:
        """Read the documents to update, and sign the merged ones."""
        for group in _group_by_key(items, lambda item: item.name):
            documents = [(str(item.id), item.route) for item in group]
            index, found = yield from read_documents(self._indices, group[0].signer, documents, headers)
            for item in group:
                assert item.update is not None
                item.answer, item.index, item.update = None, index, replace(item.update, index=index)
            yield from self._merge_found(list(zip(group, found, strict=True)))

    def _merge_found(self, pairs: Sequence[tuple[BulkItem, VersionedDocument | str | None]]) -> Steps[None]:
        chosen: list[tuple[BulkItem, VersionedDocument | None, Any]] = []
        for item, found in pairs:
            assert item.update is not None
            if isinstance(found, str):
                item.lines = [item.lines[0], write_value(item.update.body)]
                item.update, item.stale = None, found
                continue
            document = item.update.upsert_document() if found is None else item.update.merge_into(found)
            item.missing = document is None
            if document is not None:
                chosen.append((item, found, document))
        if not chosen:
            return
        index = chosen[0][0].signer
        new = [(item.id, document) for item, found, document in chosen if found is None]
        old = [(item.id, document) for item, found, document in chosen if found is not None]
        made = iter((yield Work(partial(process_upserts, index, new))) if new else ())
        merged = iter((yield Work(partial(index.sign, old))) if old else ())
        for item, found, _ in chosen:
            outcome = next(made if found is None else merged)
            if _is_final(item, outcome):
                continue
            assert item.update is not None
            metadata = {name: value for name, value in item.metadata.items() if name != "retry_on_conflict"}
            if found is None:
                check_document(outcome, item.name, item.id)
                item.send("create", metadata, source_of(outcome))
                continue
            if "if_seq_no" not in metadata:
                metadata |= {"if_seq_no": found.guard.seq_no, "if_primary_term": found.guard.primary_term}
            item.send("update", metadata, write_value(item.update.signed_body(found, outcome)))


def _prepare(items: Sequence[BulkItem]) -> None:
    """Remove clients' fingerprints from partial updates; find those that need the stored document."""
    for item in items:
        if item.index is None or item.verb == "delete":
            continue
        # Warn of documents that can't be signed before anything is sent.
        _ = item.index.pipeline
        check_pipeline(item.metadata, item.name)
        if item.verb != "update" or item.id is None or (body := _source(item)) is None:
            continue
        if names_twice(item.lines[1]) or refuses_retries(item.metadata):
            # The engine refuses it.
            continue
        update = UpdateRequest.of(item.index, item.id, body)
        item.script = update.script
        if update.needs_document:
            item.update = update
            own_guard = "if_seq_no" in item.metadata
            wanted = whole_number(item.metadata.get("retry_on_conflict"))
            item.rounds = 1 if own_guard else max(ROUNDS, wanted)
        elif update.body != body:
            item.lines = [item.lines[0], write_value(update.body)]


def _group_by_key(items: Sequence[BulkItem], key: Callable[[BulkItem], object]) -> list[list[BulkItem]]:
    """Return the items of each key, in the order of their first ones."""
    groups: dict[object, list[BulkItem]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _ran_script(item: BulkItem) -> bool:
    """Return whether a script has updated a document."""
    return item.script and item.answer_value("result") in WRITTEN


def _source(item: BulkItem) -> Any:  # noqa: ANN401 - JSON
    """Return the source of an action; None if it is not a JSON object, which the engine then refuses."""
    try:
        found = read_value(item.lines[1])
    except ValueError:
        item.unread = True
        return None
    return found if isinstance(found, Mapping) else None


def _failed_item(item: BulkItem, error: Exception) -> JSON:
    """Return the answer to an action that may or may not have been done."""
    cause = {"type": type(error).__name__, "reason": str(error)}
    return {"_index": item.name, "_id": item.id, "status": status_of(error), "error": cause}


def _is_final(item: BulkItem, outcome: Outcome | str) -> bool:
    """Return whether an action is answered without the engine, and answer it."""
    if isinstance(outcome, str):
        item.refuse(outcome)
    elif outcome.status == "dropped":
        item.reply(200, dict(DROPPED))
    return item.answer is not None


def _met_conflict(item: BulkItem) -> bool:
    """Return whether to merge an update again, because its document was changed or created since."""
    status = item.answer_value("status")
    return item.update is not None and (status == _CONFLICT or (item.missing and status == _DONE))


def _body(items: Sequence[BulkItem]) -> bytes:
    return b"".join(line.rstrip(b"\r\n") + b"\n" for item in items for line in item.lines)
