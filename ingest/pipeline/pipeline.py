"""Pipelines of processors, configured by the JSON of OpenSearch's and Elasticsearch's ingest pipelines."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, Document
from shinglefold.contracts.exclusive_writes import PreparedDocument
from shinglefold.documents import RAW_BUDGET, blocks, json_type, to_json, weight
from shinglefold.errors import ConfigError
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.pipeline.steps import (
    BUILT_IN,
    META,
    METADATA,
    DocumentRun,
    Factory,
    Failure,
    Step,
    Trace,
    Tracer,
    build_steps,
    check_handlers,
    makes_fingerprints,
    no_trace,
    run_handlers,
    target_field,
    text_fields,
)
from shinglefold.ingest.processors.context import Tools
from shinglefold.ingest.processors.texts import Supershingle
from shinglefold.model.recipe import FIELD, NO_STEPS, TEXTS, Recipe, check_field, comparable
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal, check_seal
from shinglefold.options.validation import check_known, check_object, check_strings, expected
from shinglefold.registry import make_scheme

#: The most text fields.
_MOST_FIELDS = 1_000
#: Metadata that documents of a simulation may have.
_METADATA = ("_index", "_id", "_routing", "_version", "_version_type", "_if_seq_no", "_if_primary_term")
_KEYS = ("processors", "on_failure", "description", "version", "_meta")


class Outcome(NamedTuple):
    """The result of a pipeline for one document: ``done``, ``dropped``, or ``failed`` with the failure.

    ``json``: the source as JSON, if requested; ``document`` then holds ``_id`` and ``_index`` only.
    ``prepared``: the document as the engine prepared it, if requested.
    """

    status: Literal["done", "dropped", "failed"]
    document: Document | None = None
    failure: Failure | None = None
    json: bytes | None = None
    prepared: PreparedDocument | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Processors in order, handlers for failures, and the tools they share."""

    steps: tuple[Step, ...]
    tools: Tools
    on_failure: tuple[Step, ...] = ()
    definition: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(
        cls,
        definition: Mapping[str, Any],
        scheme: Scheme | None = None,
        processors: Mapping[str, Factory] | None = None,
        seal: Seal | None = None,
    ) -> "Pipeline":
        """Build a pipeline.

        Args:
            definition: the body of ``PUT _ingest/pipeline``: ``processors``, ``on_failure``, ``description``,
                ``version``, ``_meta``.
            scheme: the default preset with all installed languages, if None.
            processors: factories of further processors by name.
            seal: seals the fingerprints; the recipe notes the id of its key.

        Raises:
            ConfigError: a key, a processor or an option is not valid; the message says where.
        """
        _check(definition)
        scheme = make_scheme() if scheme is None else checked_scheme(scheme)
        check_seal(seal)
        tools = Tools(scheme, Canonicalizer.of(scheme), seal=seal)
        known = {**BUILT_IN, **(processors or {})}
        failing = check_handlers(definition.get("on_failure"), "pipeline")
        return cls(
            build_steps(definition["processors"], tools, known, "processors"),
            tools,
            build_steps(failing, tools, known, "on_failure"),
            definition,
        )

    @property
    def scheme(self) -> Scheme:
        """The scheme of its fingerprints."""
        return self.tools.scheme

    def recipe(self, field: str | None = None) -> Recipe:
        """Return the recipe of an index for this pipeline.

        Args:
            field: the fingerprint field of the index; the pipeline's own if None.

        Raises:
            RecipeMismatch: the pipeline writes fingerprints to another field.
            ConfigError: ``field`` is None and the pipeline writes fingerprints to several fields.
        """
        target = target_field(self.steps, field)
        # A pipeline without fingerprints does not say how those of an index were made.
        kept = comparable(self.definition) if makes_fingerprints(self.steps) else NO_STEPS
        sealed = "" if self.tools.seal is None else self.tools.seal.id
        return Recipe(self.scheme, kept, target, text_fields(self.steps, target), sealed)

    def signing(self) -> "Pipeline":
        """Return the pipeline without the steps that change texts: it signs documents as they are stored."""
        steps = tuple(step for step in self.steps if step.processor.type == Supershingle.type)
        return replace(self, steps=steps)

    @property
    def meter(self) -> Meter:
        """The counters of its processors."""
        return self.tools.meter

    def run(self, documents: Iterable[Document]) -> Iterator[Outcome]:
        """Yield the outcome of each document, in order, computed in blocks."""
        if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
            raise expected("documents", "a list of documents, each an object of its fields", documents)
        for block in blocks(documents, weight, RAW_BUDGET):
            yield from self.run_block(block)

    def run_block(self, documents: Iterable[Document]) -> list[Outcome]:
        """Return the outcome of each document of a block, in order; the documents stay unchanged.

        No reference to a document is kept, so that an iterator's documents can be freed one by one.
        """
        stamp = {"timestamp": timestamp(datetime.now(UTC))}
        runs = [DocumentRun({**document, META: stamp}) for document in documents]
        self.run_steps(runs)
        return [_outcome(run) for run in runs]

    def run_steps(self, runs: Sequence[DocumentRun], trace: Tracer = no_trace) -> None:
        """Run all steps; a failed document goes to the pipeline's handlers and takes no further step."""
        for step in self.steps:
            step.apply(runs, trace)
            failed = [run for run in runs if run.failure is not None and not run.finished]
            run_handlers(failed, self.on_failure, trace)
            for run in failed:
                run.finished = True

    def simulate(
        self, documents: Sequence[Mapping[str, Any]], verbose: bool = False, now: datetime | None = None
    ) -> JSON:
        """Run the pipeline on ``{"_index", "_id", "_source"}`` objects and return the documents as JSON.

        The result has the shape of ``_ingest/pipeline/_simulate``; ``verbose`` includes every step.

        Raises:
            ConfigError: one of the documents has another shape.
        """
        stamp = timestamp(datetime.now(UTC) if now is None else now)
        runs = [DocumentRun(_unwrap_source(given, number, stamp)) for number, given in enumerate(documents)]
        if not verbose:
            self.run_steps(runs)
            return {"docs": [_result(run) for run in runs]}
        results: dict[int, list[JSON]] = {id(run): [] for run in runs}
        self.run_steps(runs, lambda trace: results[id(trace.run)].append(_step_result(trace)))
        return {"docs": [{"processor_results": results[id(run)]} for run in runs]}


def timestamp(moment: datetime) -> str:
    """Return a time as servers write it: UTC, milliseconds, ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def default_definition(field: str = FIELD, fields: Sequence[str] = TEXTS, *, pages: bool = False) -> JSON:
    """Return the JSON of the default pipeline: it adds the fingerprint, and changes nothing else.

    Args:
        field: the fingerprint field.
        fields: the fields whose texts are fingerprinted; a ``title`` holds no markup.
        pages: the pipeline for files of HTML, which stores the text of a page instead of its markup.
    """
    # A single string would be a list of its letters.
    check_strings("fields", fields, _MOST_FIELDS)
    check_field("field", field, fields)
    name = "pages.json" if pages else "default.json"
    definition: JSON = json.loads(files("shinglefold.ingest").joinpath(name).read_text("utf-8"))
    *strip, supershingle = definition["processors"]
    supershingle["supershingle"] |= {"fields": list(fields), "target_field": field}
    if strip:
        html, plain = strip
        strip = [{"html_strip": {**html["html_strip"], "field": name}} for name in fields if name != "title"]
        strip.append(plain)
    definition["processors"] = [*strip, supershingle]
    return definition


def _check(definition: object) -> None:
    pipeline = check_object("pipeline", definition, "an object with a list 'processors'")
    check_known("key of a pipeline", pipeline, _KEYS)
    kinds = {"processors": list, "version": int, "_meta": Mapping, "description": str}
    for key, kind in kinds.items():
        value = pipeline.get(key)
        if not isinstance(value, kind) and (value is not None or key == "processors"):
            raise expected(f"pipeline: {key!r}", _KINDS[kind], value)


_KINDS = MappingProxyType({list: "a list", int: "a whole number", Mapping: "an object", str: "text"})


def _outcome(run: DocumentRun) -> Outcome:
    if run.failure is not None:
        return Outcome("failed", None, run.failure)
    if run.document is None:
        return Outcome("dropped")
    document = dict(run.document)
    document.pop(META, None)
    return Outcome("done", document)


def encode_document(outcome: Outcome) -> Outcome:
    """Return an outcome with its document as JSON; unchanged if the document holds values that JSON lacks."""
    if outcome.document is None:
        return outcome
    source = dict(outcome.document)
    metadata = {key: source.pop(key) for key in METADATA if key in source}
    try:
        return outcome._replace(document=metadata, json=to_json(source))
    except (TypeError, ValueError):
        # The engine's client may serialize more types.
        return outcome


def _unwrap_source(given: Mapping[str, Any], number: int, stamp: str) -> Document:
    source = given.get("_source") if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping) or not isinstance(source, Mapping):
        raise ConfigError(f"docs[{number}]: expected an object with '_source', found {json_type(source)}")
    for key in given:
        if key not in (*_METADATA, "_source"):
            raise ConfigError.unknown(f"key (in docs[{number}])", str(key), (*_METADATA, "_source"))
    metadata = {"_index": "_index", "_id": "_id", **{k: v for k, v in given.items() if k != "_source"}}
    return {**source, **metadata, META: {"timestamp": stamp}}


def _wrap_source(document: Document) -> JSON:
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
    return None if run.document is None else {"doc": _wrap_source(run.document)}


def _step_result(trace: Trace) -> JSON:
    step = trace.step
    result: JSON = {"processor_type": step.processor.type, "status": trace.status}
    if step.tag:
        result["tag"] = step.tag
    if step.description:
        result["description"] = step.description
    if step.condition is not None:
        # A condition that failed has no result.
        outcome: JSON = {} if trace.status == "error" else {"result": trace.status != "skipped"}
        result["if"] = {"condition": step.condition.source, **outcome}
    if trace.failure is not None:
        error = _error(trace.failure)
        result |= {"ignored_error": {"error": error}} if trace.status == "error_ignored" else {"error": error}
    if trace.status in ("success", "error_ignored") and trace.run.document is not None:
        result["doc"] = _wrap_source(trace.run.document)
    return result
