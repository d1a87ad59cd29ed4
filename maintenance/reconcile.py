"""Compare stored fingerprints with those that a pipeline computes, and build updates that store new ones."""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, Document
from shinglefold.documents import MISSING, get, put, split_path, without_path
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.worker_pool import process_block, process_blocks
from shinglefold.maintenance.scan import Page, Scan, ScanPosition
from shinglefold.model.stored_fingerprint import (
    BOOKKEEPING_PARTS,
    foreign_content,
    placeholder_query,
    stored_parts,
    without_fingerprint,
)
from shinglefold.model.values import UNDETERMINED

Action = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """The identity of a document: ids are unique per index and routing only."""

    index: str
    id: str
    routing: str | None = None


def key_of(hit: Mapping[str, Any]) -> DocumentKey:
    """Return the key of a hit's document."""
    return DocumentKey(hit["_index"], hit["_id"], hit.get("_routing"))


def key_of_action(action: Mapping[str, Any]) -> DocumentKey:
    """Return the key of an action's document."""
    return DocumentKey(action["_index"], action["_id"], action.get("routing"))


def ids_query(routing: str | None, ids: Sequence[str]) -> JSON:
    """Return a query for documents by ids, all of one routing, or all without routing."""
    query = {"ids": {"values": list(ids)}}
    if routing is None:
        return {"bool": {"filter": [query], "must_not": [{"exists": {"field": "_routing"}}]}}
    return {"bool": {"filter": [query, {"term": {"_routing": routing}}]}}


def document_of(hit: Mapping[str, Any], field: str) -> Document:
    """Return a hit as a document for a pipeline, without its fingerprint."""
    return {"_id": hit["_id"], **without_fingerprint(hit["_source"], field)}


def stored_fingerprint(source: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the stored fingerprint without empty parts and group; {} if there is none."""
    return {name: part for name, part in stored_parts(source, field).items() if name not in BOOKKEEPING_PARTS}


def has_group(source: Mapping[str, Any], field: str) -> bool:
    """Return whether a document has a group number."""
    return isinstance(stored_parts(source, field).get("group"), int)


def unrecognized_content(source: Mapping[str, Any], field: str) -> str:
    """Describe content of the fingerprint field that is not a fingerprint; return "" if there is none."""
    if content := foreign_content(source, field):
        return content
    parts = stored_parts(source, field)
    schemes = parts.get("scheme", "")
    ids = schemes if isinstance(schemes, list) else [schemes]
    if parts and not any(isinstance(one, str) and one.startswith("sf") for one in ids):
        return f"[{field}] is an object of no scheme, no fingerprint"
    return ""


def new_fingerprint(outcome: Outcome, field: str) -> JSON | None:
    """Return the fingerprint that a pipeline wrote, or None."""
    found = MISSING if outcome.document is None else get(outcome.document, field)
    return dict(found) if isinstance(found, Mapping) and "scheme" in found else None


def as_stored(
    pipeline: Pipeline, hits: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome], field: str
) -> list[Outcome]:
    """Return the outcomes of stored documents; a stored fingerprint wins if it is that of the stored text.

    A pipeline may change what it wrote before: ``html_strip`` makes ``<x>`` of ``&lt;x&gt;``, and the second
    time takes that for markup.
    """
    settled, signing = list(outcomes), pipeline.signing()
    if len(signing.steps) == len(pipeline.steps):
        return settled
    differing = []
    for place, (hit, outcome) in enumerate(zip(hits, outcomes, strict=True)):
        stored, new = stored_fingerprint(hit["_source"], field), new_fingerprint(outcome, field)
        if new is not None and stored != new and stored.get("scheme") == pipeline.scheme.id:
            differing.append(place)
    again = process_block(signing, [document_of(hits[place], field) for place in differing]).outcomes
    for place, outcome in zip(differing, again, strict=True):
        if new_fingerprint(outcome, field) == stored_fingerprint(hits[place]["_source"], field):
            settled[place] = outcome
    return settled


def is_empty(fingerprint: Mapping[str, Any]) -> bool:
    """Return whether a fingerprint is that of an empty text, or is missing."""
    return str(fingerprint.get("lang", UNDETERMINED)) == UNDETERMINED


def is_poorer(stored: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether a fingerprint is of far less text than the stored one: less than a third of it."""
    if stored.get("signature") and not new.get("signature"):
        return True
    before, now = (one.get("shingles") for one in (stored, new))
    return isinstance(before, int) and isinstance(now, int) and 3 * now < before


def missing_query(field: str, scheme: str) -> JSON:
    """Return a query for documents without a fingerprint of a scheme, except placeholders of a gate."""
    return {"bool": {"must_not": [{"term": {f"{field}.scheme": scheme}}, placeholder_query(field)]}}


def update_action(hit: Mapping[str, Any], field: str, new: Mapping[str, Any]) -> Action:
    """Return the bulk action that stores a fingerprint, guarded by the hit's version if there is one.

    A partial update merges objects, so that parts which the new fingerprint lacks are set to null: a text
    that became too short must lose its signature, and a changed text its group. If the field also has dotted
    keys (``{"_dedup.digest": …}``), which no partial update removes, the document is indexed again.
    """
    return guarded_action(_body(hit["_source"], field, new), hit)


def guarded_action(action: Action, hit: Mapping[str, Any]) -> Action:
    """Return a bulk action on the document of a hit, which fails if the document changed since."""
    action = {**action, "_index": hit["_index"], "_id": hit["_id"]}
    if "_seq_no" in hit:
        action |= {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        if action["_op_type"] == "index":
            # The index's own pipeline processed the document already.
            action["pipeline"] = "_none"
    if "_routing" in hit:
        action["routing"] = hit["_routing"]
    return action


def _body(source: Mapping[str, Any], field: str, new: Mapping[str, Any]) -> Action:
    bare = without_fingerprint(source, field)
    if bare != without_path(source, field):
        return {"_op_type": "index", "_source": put(bare, field, dict(new))}
    old = get(source, field)
    names = old.keys() if isinstance(old, Mapping) else ()
    value: Any = {**dict.fromkeys(names), **new}
    for name in reversed(split_path(field)):
        value = {name: value}
    return {"_op_type": "update", "doc": value}


def scan_with_pipeline(
    scan: Scan,
    position: ScanPosition,
    pipeline: Pipeline,
    field: str,
    *,
    workers: int,
    without: Collection[DocumentKey] = (),
) -> Generator[tuple[Page, list[Outcome]], None, None]:
    """Yield each page after a position with the pipeline's outcomes of its documents, in order.

    Args:
        field: the fingerprint field, which is removed before the pipeline runs.
        without: documents to leave out.

    Raises:
        PitExpired: the point in time was closed or ran out.
        EngineError: the engine fails.
    """
    waiting: list[Page] = []
    with (
        closing(_documents(scan, position, field, without, waiting)) as documents,
        closing(process_blocks(pipeline, documents, workers)) as answers,
    ):
        for answer in answers:
            page = waiting.pop(0)
            yield page, as_stored(pipeline, page.hits, answer.outcomes, field)


def _documents(
    scan: Scan, position: ScanPosition, field: str, without: Collection[DocumentKey], waiting: list[Page]
) -> Generator[list[Document], None, None]:
    """Yield the documents of each page, and append the page to ``waiting``."""
    for page in scan.pages(position):
        hits = [hit for hit in page.hits if key_of(hit) not in without]
        waiting.append(Page(hits, page.place))
        yield [document_of(hit, field) for hit in hits]
