"""A pipeline tried on documents, answered in the shape of ``_ingest/pipeline/_simulate``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import JSON, Document
from shinglefold.errors import ConfigError
from shinglefold.ingest.field_paths import said
from shinglefold.ingest.pipeline.steps import META, DocumentRun, Failure, Trace, Tracer

_METADATA = ("_index", "_id", "_routing", "_version", "_version_type", "_if_seq_no", "_if_primary_term")
_PassThrough = Callable[[Sequence[DocumentRun], Tracer], None]


def simulate(
    pass_through: _PassThrough, documents: Sequence[Mapping[str, Any]], verbose: bool, stamp: str
) -> JSON:
    """Return the answer of the servers' ``_simulate`` for documents ``{"_index", "_id", "_source"}``."""
    runs = [DocumentRun(_opened(given, number, stamp)) for number, given in enumerate(documents)]
    if not verbose:
        pass_through(runs, lambda _: None)
        return {"docs": [_result(run) for run in runs]}
    results: dict[int, list[JSON]] = {id(run): [] for run in runs}
    pass_through(runs, lambda trace: results[id(trace.run)].append(_step_result(trace)))
    return {"docs": [{"processor_results": results[id(run)]} for run in runs]}


def _opened(given: Mapping[str, Any], number: int, stamp: str) -> Document:
    source = given.get("_source") if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping) or not isinstance(source, Mapping):
        raise ConfigError(f"docs[{number}]: expected an object with '_source', found {said(source)}")
    for key in given:
        if key not in (*_METADATA, "_source"):
            raise ConfigError.unknown(f"key (in docs[{number}])", str(key), (*_METADATA, "_source"))
    metadata = {"_index": "_index", "_id": "_id", **{k: v for k, v in given.items() if k != "_source"}}
    return {**source, **metadata, META: {"timestamp": stamp}}


def _shown(document: Document) -> JSON:
    source = {key: value for key, value in document.items() if key not in (*_METADATA, META)}
    metadata = {key: document[key] for key in _METADATA if key in document}
    return {**metadata, "_source": source, META: document.get(META)}


def _error(failure: Failure) -> JSON:
    cause: JSON = {"type": "processor_error", "reason": failure.reason, "processor_type": failure.processor}
    if failure.tag:
        cause["processor_tag"] = failure.tag
    return {"root_cause": [cause], **cause}


def _result(run: DocumentRun) -> JSON | None:
    if run.failure is not None:
        return {"error": _error(run.failure)}
    return None if run.document is None else {"doc": _shown(run.document)}


def _step_result(trace: Trace) -> JSON:
    step = trace.step
    result: JSON = {"processor_type": step.processor.type, "status": trace.status}
    if step.tag:
        result["tag"] = step.tag
    if step.description:
        result["description"] = step.description
    if step.condition is not None:
        # A condition that could not be decided has no result.
        if trace.status != "error":
            result["if"] = {"condition": step.condition.source, "result": trace.status != "skipped"}
        else:
            result["if"] = {"condition": step.condition.source}
    if trace.failure is not None:
        error = _error(trace.failure)
        result |= {"ignored_error": {"error": error}} if trace.status == "error_ignored" else {"error": error}
    if trace.status in ("success", "error_ignored") and trace.run.document is not None:
        result["doc"] = _shown(trace.run.document)
    return result
