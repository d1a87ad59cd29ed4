"""Compare stored fingerprints with those a pipeline makes now, and build the update that stores a new one."""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, Document
from shinglefold.ingest.field_paths import MISSING, get, put, split_path, without_path
from shinglefold.ingest.index_mapping import BOOKKEEPING_PARTS, foreign_content
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.worker_pool import process_blocks
from shinglefold.maintenance.scan import Page, Scan, ScanPosition
from shinglefold.model.stored_fingerprint import placeholder_query, stored_parts, without_fingerprint
from shinglefold.model.values import UNDETERMINED

Action = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """What names a document: an id is unique in an index and under a routing only."""

    index: str
    id: str
    routing: str | None = None


def key_of(hit: Mapping[str, Any]) -> DocumentKey:
    """Return what names the document of a hit."""
    return DocumentKey(hit["_index"], hit["_id"], hit.get("_routing"))


def key_of_action(action: Mapping[str, Any]) -> DocumentKey:
    """Return what names the document of an update."""
    return DocumentKey(action["_index"], action["_id"], action.get("routing"))


def ids_query(routing: str | None, ids: Sequence[str]) -> JSON:
    """Return the query for documents by their ids, all under one routing or all without."""
    if routing is None:
        clause = {"must_not": [{"exists": {"field": "_routing"}}]}
        return {"bool": {"filter": [{"ids": {"values": list(ids)}}], **clause}}
    return {"bool": {"filter": [{"ids": {"values": list(ids)}}, {"term": {"_routing": routing}}]}}


def document_of(hit: Mapping[str, Any], field: str) -> Document:
    """Return a hit as the document a pipeline takes, without its fingerprint."""
    return {"_id": hit["_id"], **without_fingerprint(hit["_source"], field)}


def stored_fingerprint(source: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the stored fingerprint without its empty parts and without the group; {} where there is none."""
    return {name: part for name, part in stored_parts(source, field).items() if name not in BOOKKEEPING_PARTS}


def has_group(source: Mapping[str, Any], field: str) -> bool:
    """Tell whether a document has the number of its group."""
    return isinstance(stored_parts(source, field).get("group"), int)


def unrecognized_content(source: Mapping[str, Any], field: str) -> str:
    """Return, in words, what a document has in the place of its fingerprint that is none; mostly nothing."""
    if told := foreign_content(source, field):
        return told
    held = stored_parts(source, field)
    schemes = held.get("scheme", "")
    several = schemes if isinstance(schemes, list) else [schemes]
    if held and not any(isinstance(one, str) and one.startswith("sf") for one in several):
        return f"[{field}] is an object of no scheme, no fingerprint"
    return ""


def new_fingerprint(outcome: Outcome, field: str) -> JSON | None:
    """Return the fingerprint a pipeline wrote, or None where it wrote none."""
    found = MISSING if outcome.document is None else get(outcome.document, field)
    return dict(found) if isinstance(found, Mapping) and "scheme" in found else None


def is_empty(fingerprint: Mapping[str, Any]) -> bool:
    """Tell whether a fingerprint is of no text at all, or is none."""
    return str(fingerprint.get("lang", UNDETERMINED)) == UNDETERMINED


def missing_query(field: str, scheme: str) -> JSON:
    """Return the query for documents without a fingerprint of a scheme; places that a gate keeps are none."""
    return {"bool": {"must_not": [{"term": {f"{field}.scheme": scheme}}, placeholder_query(field)]}}


def update_action(hit: Mapping[str, Any], field: str, new: Mapping[str, Any]) -> Action:
    """Return the write that stores a fingerprint, guarded by the version read where there is one.

    A partial update merges objects, so parts the new fingerprint lacks are set to null: a text that became
    too short for a signature must not keep that of the text it was, and another text leaves its group.
    Where the field also stands in another
    form (``{"dedup.digest": …}``), which no update takes away, the document is written anew.
    """
    action: Action = {**_body(hit["_source"], field, new), "_index": hit["_index"], "_id": hit["_id"]}
    if "_seq_no" in hit:
        action |= {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        if action["_op_type"] == "index":
            # It went through the index's own pipeline when it came.
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
    place: ScanPosition,
    pipeline: Pipeline,
    field: str,
    *,
    workers: int,
    without: Collection[DocumentKey] = (),
) -> Generator[tuple[Page, list[Outcome]], None, None]:
    """Yield each page behind a place with what the pipeline makes of its documents, in order.

    Args:
        field: where fingerprints are; the pipeline sees documents that have none yet.
        without: documents to leave out.

    Raises:
        PitExpired: the point in time was closed or ran out.
        EngineError: the engine can't go on.
    """
    waiting: list[Page] = []
    with (
        closing(_documents(scan, place, field, without, waiting)) as documents,
        closing(process_blocks(pipeline, documents, workers)) as answers,
    ):
        for answer in answers:
            yield waiting.pop(0), answer.outcomes


def _documents(
    scan: Scan, place: ScanPosition, field: str, without: Collection[DocumentKey], waiting: list[Page]
) -> Generator[list[Document], None, None]:
    """Yield the documents of each page and keep its hits until the pipeline has answered."""
    for page in scan.pages(place):
        hits = [hit for hit in page.hits if key_of(hit) not in without]
        waiting.append(Page(hits, page.place))
        yield [document_of(hit, field) for hit in hits]
