"""A pipeline: processors in order, configured by the engines' own JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from shinglefold.canon import Canonicalizer, check_canonicalizer
from shinglefold.contracts.engine import JSON, Document
from shinglefold.contracts.exclusive_writes import PreparedDocument
from shinglefold.documents import to_json
from shinglefold.errors import ConfigError
from shinglefold.ingest.batching import RAW_BUDGET, blocks, weight
from shinglefold.ingest.field_paths import json_type
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.pipeline.field_usage import makes_fingerprints, target_field, text_fields
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
    handlers,
    no_trace,
    run_handlers,
)
from shinglefold.ingest.processors.context import Tools
from shinglefold.model.recipe import FIELD, NO_STEPS, TEXTS, Recipe, check_field, comparable
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal, check_seal
from shinglefold.options.validation import check_known, check_object, check_strings, expected
from shinglefold.registry import make_scheme

#: Fields that fingerprints are of, at most.
_MOST_FIELDS = 1_000
_KEYS = ("processors", "on_failure", "description", "version", "_meta")


class Outcome(NamedTuple):
    """What became of one document: it is ``done``, was ``dropped``, or ``failed`` and why.

    ``json`` is its source as JSON where that was asked for; ``document`` is then only what stands beside it.
    ``ready`` is what the engine wants of it, where that was asked for.
    """

    status: Literal["done", "dropped", "failed"]
    document: Document | None = None
    failure: Failure | None = None
    json: bytes | None = None
    ready: PreparedDocument | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Processors in order, handlers for what fails, and the tools they share."""

    steps: tuple[Step, ...]
    tools: Tools
    on_failure: tuple[Step, ...] = ()
    description: str = ""
    version: int | None = None
    meta: Mapping[str, Any] | None = None
    definition: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(
        cls,
        definition: Mapping[str, Any],
        scheme: Scheme | None = None,
        canonicalizer: Canonicalizer | None = None,
        processors: Mapping[str, Factory] | None = None,
        seal: Seal | None = None,
    ) -> "Pipeline":
        """Build a pipeline.

        Args:
            definition: ``description``, ``version``, ``_meta``, ``processors``, ``on_failure``, as for
                ``PUT _ingest/pipeline``.
            scheme: by default the default preset with all installed languages.
            canonicalizer: of that scheme, to share its lexicon.
            processors: makers of further processors by name.
            seal: seals the fingerprints, and is noted in the recipe by its key's id.

        Raises:
            ConfigError: a key, a processor or an option is not valid; says where.
        """
        _check(definition)
        scheme = make_scheme() if scheme is None else checked_scheme(scheme)
        check_canonicalizer(canonicalizer)
        check_seal(seal)
        tools = Tools(scheme, canonicalizer or Canonicalizer.of(scheme), seal=seal)
        known = {**BUILT_IN, **(processors or {})}
        failing = handlers(definition["on_failure"], "pipeline") if "on_failure" in definition else []
        return cls(
            build_steps(definition["processors"], tools, known, "processors"),
            tools,
            build_steps(failing, tools, known, "on_failure"),
            definition.get("description") or "",
            definition.get("version"),
            definition.get("_meta"),
            definition,
        )

    @property
    def scheme(self) -> Scheme:
        """The scheme its fingerprints are made with."""
        return self.tools.scheme

    def recipe(self, field: str | None = None) -> Recipe:
        """Return the recipe of an index that this pipeline feeds.

        Args:
            field: where the index keeps fingerprints; by default where this pipeline writes them.

        Raises:
            RecipeMismatch: the pipeline writes its fingerprints elsewhere.
            ConfigError: it writes them into several fields and none is named.
        """
        target = target_field(self.steps, field)
        # What makes no fingerprints says nothing of how an index's are made.
        kept = comparable(self.definition) if makes_fingerprints(self.steps) else NO_STEPS
        sealed = "" if self.tools.seal is None else self.tools.seal.id
        return Recipe(self.scheme, kept, target, text_fields(self.steps, target), sealed)

    @property
    def meter(self) -> Meter:
        """What its processors counted and timed."""
        return self.tools.meter

    def run(self, documents: Iterable[Document]) -> Iterator[Outcome]:
        """Yield what becomes of each document, in order, working block by block."""
        if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
            raise expected("documents", "a list of documents, each an object of its fields", documents)
        for block in blocks(documents, weight, RAW_BUDGET):
            yield from self.run_block(block)

    def run_block(self, documents: Iterable[Document]) -> list[Outcome]:
        """Return what becomes of each document of a block, in order; the documents given stay as they are.

        It holds none of them, so that those of an iterator go as they are worked on.
        """
        stamp = {"timestamp": timestamp(datetime.now(UTC))}
        runs = [DocumentRun({**document, META: stamp}) for document in documents]
        self.run_steps(runs)
        return [_outcome(run) for run in runs]

    def run_steps(self, runs: Sequence[DocumentRun], trace: Tracer = no_trace) -> None:
        """Take all steps; documents that fail and that the pipeline's handlers save take no more of them."""
        for step in self.steps:
            step.apply(runs, trace)
            failed = [run for run in runs if run.failure is not None and not run.finished]
            for run in failed:
                run.finished = not self.on_failure
            run_handlers([run for run in failed if not run.finished], self.on_failure, trace)
            for run in failed:
                run.finished = True

    def simulate(
        self, documents: Sequence[Mapping[str, Any]], verbose: bool = False, now: datetime | None = None
    ) -> JSON:
        """Return what the pipeline makes of ``{"_index", "_id", "_source"}`` objects.

        The answer has the shape of ``_ingest/pipeline/_simulate``; ``verbose`` shows every step.

        Raises:
            ConfigError: one of the documents has another shape.
        """
        stamp = timestamp(datetime.now(UTC) if now is None else now)
        return simulate(self.run_steps, documents, verbose, stamp)


def timestamp(moment: datetime) -> str:
    """Return a moment as the engines write it: UTC, milliseconds, ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def default_definition(field: str = FIELD, fields: Sequence[str] = TEXTS) -> JSON:
    """Return the JSON of the pipeline for pages: markup out, fingerprint, language.

    Args:
        field: where fingerprints go.
        fields: whose texts they are of; a ``title`` holds no markup.
    """
    # One name would be taken for its letters.
    check_strings("fields", fields, _MOST_FIELDS)
    check_field("field", field, fields)
    text = files("shinglefold.ingest").joinpath("pages.json").read_text("utf-8")
    definition: JSON = json.loads(text)
    strip, plain, supershingle, language = definition["processors"]
    strips = [{"html_strip": {**strip["html_strip"], "field": name}} for name in fields if name != "title"]
    supershingle["supershingle"] |= {"fields": list(fields), "target_field": field}
    language["set"]["copy_from"] = f"{field}.lang"
    definition["processors"] = [*strips, plain, supershingle, language]
    return definition


def _check(definition: object) -> None:
    pipeline = check_object("pipeline", definition, "an object with a list 'processors'")
    check_known("key of a pipeline", pipeline, _KEYS)
    kinds = {"processors": list, "version": int, "_meta": Mapping, "description": str}
    for key, kind in kinds.items():
        value = pipeline.get(key)
        if not isinstance(value, kind) and (value is not None or key == "processors"):
            raise expected(f"pipeline: {key!r}", _SAID[kind], value)


_SAID = MappingProxyType({list: "a list", int: "a whole number", Mapping: "an object", str: "text"})


def _outcome(run: DocumentRun) -> Outcome:
    if run.failure is not None:
        return Outcome("failed", None, run.failure)
    if run.document is None:
        return Outcome("dropped")
    made = dict(run.document)
    made.pop(META, None)
    return Outcome("done", made)


def encode_document(outcome: Outcome) -> Outcome:
    """Return an outcome with its document as JSON; as it is where the document holds what JSON has not."""
    if outcome.document is None:
        return outcome
    source = dict(outcome.document)
    beside = {key: source.pop(key) for key in METADATA if key in source}
    try:
        return outcome._replace(document=beside, json=to_json(source))
    except (TypeError, ValueError):
        # The engine's client may know more types than these.
        return outcome


_METADATA = ("_index", "_id", "_routing", "_version", "_version_type", "_if_seq_no", "_if_primary_term")
_PassThrough = Callable[[Sequence[DocumentRun], Tracer], None]


def simulate(
    run_steps: _PassThrough, documents: Sequence[Mapping[str, Any]], verbose: bool, stamp: str
) -> JSON:
    """Return the answer of the servers' ``_simulate`` for documents ``{"_index", "_id", "_source"}``."""
    runs = [DocumentRun(_opened(given, number, stamp)) for number, given in enumerate(documents)]
    if not verbose:
        run_steps(runs, lambda _: None)
        return {"docs": [_result(run) for run in runs]}
    results: dict[int, list[JSON]] = {id(run): [] for run in runs}
    run_steps(runs, lambda trace: results[id(trace.run)].append(_step_result(trace)))
    return {"docs": [{"processor_results": results[id(run)]} for run in runs]}


def _opened(given: Mapping[str, Any], number: int, stamp: str) -> Document:
    source = given.get("_source") if isinstance(given, Mapping) else given
    if not isinstance(given, Mapping) or not isinstance(source, Mapping):
        raise ConfigError(f"docs[{number}]: expected an object with '_source', found {json_type(source)}")
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
