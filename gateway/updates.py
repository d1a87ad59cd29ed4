"""Partial updates: the fingerprint of the merged document goes with them, guarded by its version."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.documents import merge_update
from shinglefold.engines.http.errors import reason as error_reason
from shinglefold.errors import ConfigError, EngineError, PermissionDenied, UnsupportedQuery
from shinglefold.gateway.indices import KnownIndices, SignedIndex, alias_options
from shinglefold.gateway.rest import (
    RestRequest,
    Steps,
    Work,
    items_of,
    json_headers,
    log,
    path_of,
    send,
    stale,
    warn,
    warn_stale,
    write_value,
)
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.maintenance.reconcile import new_fingerprint, stored_fingerprint, update_action

#: Rounds of reading, merging and writing a document that others change meanwhile.
ROUNDS = 5
_CONFLICT, _MISSING = 409, 404
#: The results of an update that stored something.
WRITTEN = ("created", "updated")


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """A partial update of a document.

    Attributes:
        body: without a fingerprint that the client brought.
        needs_document: whether the stored document decides what is sent.
        script: whether a script updates it, so that its fingerprint is renewed afterwards.
    """

    index: SignedIndex
    id: str
    body: JSON
    needs_document: bool
    script: bool = False

    @classmethod
    def of(cls, index: SignedIndex, id_: str, body: Any) -> "UpdateRequest":  # noqa: ANN401 - JSON
        """Parse the body of an update; warn if its fingerprint can't be made."""
        if not isinstance(body, Mapping):
            return cls(index, id_, body, False)
        bare = {
            name: index.bare(value) if name in ("doc", "upsert") else value for name, value in body.items()
        }
        if "script" in bare:
            if index.gated:
                warn(f"a script updates {id_!r}{index.unchecked}")
            return cls(index, id_, bare, False, True)
        doc = bare.get("doc")
        inserts = bool(bare.get("doc_as_upsert")) or "upsert" in bare
        touches = isinstance(doc, Mapping) and index.touches(doc)
        if touches and index.gated:
            warn(f"an update of {id_!r} changes what its fingerprint is made of{index.unchecked}")
        return cls(index, id_, bare, touches or (inserts and isinstance(doc, Mapping)))

    def upsert_document(self) -> Any:  # noqa: ANN401 - JSON
        """Return the document that an update of a missing one stores; None if it stores none."""
        return self.body["doc"] if self.body.get("doc_as_upsert") else self.body.get("upsert")

    def merge_into(self, found: VersionedDocument) -> JSON:
        """Return the stored document after the update, without a fingerprint."""
        made: JSON = self.index.bare(merge_update(found.source, self.body["doc"]))
        return made

    def signed_body(self, found: VersionedDocument, outcome: Outcome) -> JSON:
        """Return the body that updates a stored document, given the merged one after the pipeline."""
        check_document(outcome, self.index.name, self.id)
        kept = {name: value for name, value in self.body.items() if name not in ("upsert", "doc_as_upsert")}
        field, made = self.index.recipe.field, outcome.document or {}
        doc = {name: made.get(name, value) for name, value in self.body["doc"].items()}
        # What the pipeline adds to documents, such as their language.
        top = field.partition(".")[0]
        doc |= {name: made[name] for name in made.keys() - found.source.keys() - {"_id", top}}
        new = new_fingerprint(outcome, field) or {}
        if new == stored_fingerprint(found.source, field):
            return {**kept, "doc": doc}
        action = update_action({"_index": "", "_id": self.id, "_source": found.source}, field, new)
        if "doc" not in action:
            warn(
                f"the fingerprint of {self.id!r} in {self.index.name!r} has dotted keys, which no partial "
                "update replaces, so it is that of the text before. Run "
                f"`shinglefold backfill {self.index.name}`"
            )
            return {**kept, "doc": doc}
        return {**kept, "doc": merge_update(doc, action["doc"])}


@contextmanager
def log_unrenewed(documents: Iterable[tuple[str, str | None]]) -> Iterator[None]:
    """Log the documents whose fingerprints may be stale after an update by scripts without an answer.

    The engine may have run the scripts, but the caller left, or gets an error.

    Args:
        documents: names of indices, and ids; read only then.
    """
    try:
        yield
    except BaseException as error:
        why = str(error) or "the caller left"
        for index, id_ in documents:
            log.warning("%s", stale(index, id_, f"{why}, and a script may have changed it"))
        raise


def read_documents(
    indices: KnownIndices,
    index: SignedIndex,
    documents: Sequence[tuple[str, str | None]],
    headers: Mapping[str, str],
    fields: Sequence[str] = (),
) -> Steps[tuple[SignedIndex, list[VersionedDocument | str | None]]]:
    """Return the index that writes go to now, and documents as ``SignedIndex.read`` does.

    Engines read no document by an alias of several indices. An alias may have got a second one since its
    mappings were read, so they are read again.

    Args:
        documents: their ids and routings.

    Returns:
        Instead of a document that can't be read, the reason; "" if its index has no recipe now.
    """
    ids, routings = zip(*documents, strict=True)
    try:
        return index, [*(yield from index.read(ids, routings, fields))]
    except PermissionDenied as error:
        return index, [f"the user may not read it: {error}"] * len(ids)
    except UnsupportedQuery:
        now = yield from indices.target_now(index.name, headers)
    if now is None:
        return index, [""] * len(ids)
    if now.stored_in != index.stored_in:
        return (yield from read_documents(indices, now, documents, headers, fields))
    found: list[VersionedDocument | str | None] = []
    for id_, routing in documents:
        # The engine may refuse only one of them, such as one without a routing.
        try:
            found += yield from now.read([id_], [routing], fields)
        except UnsupportedQuery as error:
            found.append(str(error))
    return now, found


def sign_again(
    indices: KnownIndices,
    index: SignedIndex,
    documents: Sequence[tuple[str, str | None]],
    request: RestRequest,
) -> Steps[list[JSON]]:
    """Renew the fingerprints of documents that scripts updated; warn about those that stay stale.

    Args:
        documents: their ids and routings.
        request: that of the updates, whose caller and ``refresh`` hold.

    Returns:
        The item of a bulk response for each that was renewed, {} for the others.
    """
    answers: list[JSON] = [{} for _ in documents]
    waiting = list(range(len(documents)))
    why = "others change it all the time"
    try:
        for _ in range(ROUNDS):
            if not waiting:
                break
            waiting = yield from _sign_once(indices, index, documents, request, waiting, answers=answers)
    except Exception as error:
        why = str(error)
    except BaseException:
        # The caller left, or the program ends: only the log can tell.
        for place in waiting:
            log.warning("%s", stale(index.name, documents[place][0], "the caller left"))
        raise
    for place in waiting:
        warn_stale(index.name, documents[place][0], why)
    return answers


def sign_if_switched(
    indices: KnownIndices,
    index: SignedIndex,
    stored_in: str,
    documents: Sequence[tuple[str, str | None]],
    request: RestRequest,
) -> Steps[list[JSON]]:
    """Sign documents again if an alias was switched to an index of another recipe; see ``sign_again``."""
    try:
        stored = yield from indices.other_target(index, stored_in, request.headers)
        options = {} if stored is None else (yield from alias_options(index.name, request.headers))
    except Exception as error:
        # The documents are stored, which an error would hide.
        for id_, _ in documents:
            warn_stale(stored_in, id_, str(error))
        return [{} for _ in documents]
    if stored is None:
        return [{} for _ in documents]
    if stored.gated:
        warn(f"{index.name!r} was switched to {stored_in!r}{stored.unchecked}")
    routing = (options or {}).get(stored_in, {}).get("index_routing")
    routed = [(id_, routing if own is None else own) for id_, own in documents]
    return (yield from sign_again(indices, stored, routed, request))


def _sign_once(
    indices: KnownIndices,
    index: SignedIndex,
    documents: Sequence[tuple[str, str | None]],
    request: RestRequest,
    places: Sequence[int],
    *,
    answers: list[JSON],
) -> Steps[list[int]]:
    """Renew fingerprints once, and return the positions of documents that changed in the meantime."""
    there, renewed = yield from _renew_documents(indices, index, documents, request, places)
    lines: list[JSON] = []
    sent: list[int] = []
    for (place, one), action in zip(there, renewed, strict=True):
        if isinstance(action, str):
            warn_stale(index.name, one.id, action)
        elif action is not None:
            verb = action.pop("_op_type")
            body = action.pop("_source", None) if verb == "index" else {"doc": action.pop("doc")}
            lines += [{verb: action}, body]
            sent.append(place)
    if not sent:
        return []
    headers = json_headers(request.headers, lines=True)
    kept = {name: request.parameters[name] for name in ("refresh", "timeout") if name in request.parameters}
    body = b"".join(write_value(line) + b"\n" for line in lines)
    answer = yield from send(RestRequest("POST", path_of("_bulk"), kept, headers, body))
    if answer.refused:
        raise EngineError(f"the engine refuses the update of the fingerprint (status {answer.status})")
    again = []
    for place, told in zip(sent, items_of(answer, len(sent)), strict=True):
        status, error = told.get("status"), told.get("error")
        if status == _CONFLICT:
            again.append(place)
        elif error is None:
            # Nothing is left to be signed of a document that was deleted meanwhile.
            answers[place] = told if status != _MISSING else {}
        elif status != _MISSING:
            warn_stale(index.name, documents[place][0], error_reason({"error": error}))
    return again


def _renew_documents(
    indices: KnownIndices,
    index: SignedIndex,
    documents: Sequence[tuple[str, str | None]],
    request: RestRequest,
    places: Sequence[int],
) -> Steps[tuple[list[tuple[int, VersionedDocument]], list[JSON | str | None]]]:
    """Return the stored documents by position, and what ``renew`` returns for each."""
    chosen = [documents[place] for place in places]
    # Elasticsearch leaves out vectors unless a pattern includes them; what is written whole needs them.
    for fields in ((), ("*",)):
        index, found = yield from read_documents(indices, index, chosen, request.headers, fields)
        read = zip(places, found, strict=True)
        there = [(place, one) for place, one in read if isinstance(one, VersionedDocument)]
        renewed = yield Work(partial(index.renew, [_hit(index, one, documents[at][1]) for at, one in there]))
        if not any(isinstance(one, dict) and one["_op_type"] == "index" for one in renewed):
            break
    for (id_, _), why in zip(chosen, found, strict=True):
        if isinstance(why, str) and why:
            warn_stale(index.name, id_, why)
    return there, renewed


def _hit(index: SignedIndex, found: VersionedDocument, routing: str | None) -> JSON:
    hit: JSON = {"_index": index.stored_in, "_id": found.id, "_source": found.source}
    hit |= {"_seq_no": found.guard.seq_no, "_primary_term": found.guard.primary_term}
    routing = index.routing if routing is None else routing
    return hit if routing is None else {**hit, "_routing": routing}


def with_version(answer: JSON, renewed: JSON) -> JSON:
    """Return the answer to an update with the version that its fingerprint was renewed as."""
    names = ("_version", "_seq_no", "_primary_term")
    return answer | {name: renewed[name] for name in names if name in renewed}


def check_document(outcome: Outcome, name: str, id_: str | None) -> None:
    """Raise ``ConfigError`` if a pipeline changed the index or the id of a document."""
    document = outcome.document or {}
    if document.get("_index", name) != name or document.get("_id", id_) != id_ or "_routing" in document:
        raise ConfigError(
            f"the pipeline of {name!r} sets the index, the id or the routing of documents, which a request "
            "has set already: write them with shinglefold.open(…).index"
        )
