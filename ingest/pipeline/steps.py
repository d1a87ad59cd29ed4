"""The steps of a pipeline: built from its JSON, and run on a block of documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shinglefold.contracts.engine import Document, Processor
from shinglefold.errors import ConfigError, ProcessorError
from shinglefold.ingest.field_paths import json_type
from shinglefold.ingest.pipeline.condition import Condition, parse_condition
from shinglefold.ingest.processors.context import Options, Tools
from shinglefold.ingest.processors.fields import Append, Drop, Fail, Remove, Rename, Set
from shinglefold.ingest.processors.supershingle import Supershingle
from shinglefold.ingest.processors.texts import Canonicalize, DetectLanguage, HtmlStrip, MainContent
from shinglefold.ingest.processors.values import Convert, Date, Gsub, Join, Lowercase, Split, Trim, Uppercase
from shinglefold.options.validation import expected
from shinglefold.registry import PROCESSORS, load_plugin

#: The field for ingest metadata while a document is processed: the time, and why a step failed.
META = "_ingest"
#: Fields of a document in a pipeline that are not part of its source.
METADATA = ("_id", "_index", "_routing")
_ON_FAILURE = ("on_failure_message", "on_failure_processor_type", "on_failure_processor_tag")


@dataclass(frozen=True, slots=True)
class Failure:
    """Which processor failed on a document, and why."""

    processor: str
    tag: str | None
    reason: str

    def __str__(self) -> str:
        tag = f" [{self.tag}]" if self.tag else ""
        return f"{self.processor}{tag}: {self.reason}"


@dataclass(slots=True)
class DocumentRun:
    """The state of one document in a pipeline; ``document`` is None once it was dropped."""

    document: Document | None
    failure: Failure | None = None
    finished: bool = False

    @property
    def alive(self) -> bool:
        """Whether further steps apply."""
        return self.document is not None and self.failure is None and not self.finished


class Trace(NamedTuple):
    """What a step did to a document: ``success``, ``skipped``, ``dropped``, ``error``, ``error_ignored``."""

    step: "Step"
    run: DocumentRun
    status: str
    failure: Failure | None


Tracer = Callable[[Trace], None]


def no_trace(_: Trace) -> None:
    """Ignore the trace."""


@dataclass(frozen=True, slots=True)
class Step:
    """A processor with the options that all processors have."""

    processor: Processor
    condition: Condition | None = None
    tag: str | None = None
    description: str | None = None
    ignore_failure: bool = False
    on_failure: tuple["Step", ...] = field(default=())

    def apply(self, runs: Sequence[DocumentRun], trace: Tracer = no_trace) -> None:
        """Run the processor on each document of a block that is alive and meets the condition."""
        chosen = [run for run in runs if run.alive and self._chosen(run, trace)]
        failed: list[DocumentRun] = []
        for run, outcome in zip(chosen, self._outcomes(chosen), strict=True):
            if isinstance(outcome, Exception):
                self._fail(run, outcome, failed, trace)
            else:
                run.document = outcome
                trace(Trace(self, run, "dropped" if outcome is None else "success", None))
        run_handlers(failed, self.on_failure, trace)

    def _outcomes(self, runs: Sequence[DocumentRun]) -> Sequence[Document | Exception | None]:
        """Return the processor's outcomes; if it raises, run it on each document to find which ones fail."""
        documents = [run.document for run in runs if run.document is not None]
        try:
            outcomes = self.processor.apply(documents) if documents else []
            if len(outcomes) == len(documents):
                return [self._checked(outcome) for outcome in outcomes]
            wrong = f"{self.processor.type} returned {len(outcomes)} documents for {len(documents)}"
            return [ProcessorError(wrong)] * len(documents)
        except Exception as error:
            return [error] if len(runs) == 1 else [self._outcomes([run])[0] for run in runs]

    def _checked(self, outcome: Document | Exception | None) -> Document | Exception | None:
        if outcome is None or isinstance(outcome, dict | Exception):
            return outcome
        return ProcessorError(
            f"the processor returned {json_type(outcome)} instead of a document: a bug of the processor"
        )

    def _chosen(self, run: DocumentRun, trace: Tracer) -> bool:
        if self.condition is None or run.document is None:
            return True
        try:
            chosen = self.condition.holds(run.document)
        except ProcessorError as error:
            # As on the servers, neither ignore_failure nor on_failure of this step apply.
            run.failure = self._failure(error)
            trace(Trace(self, run, "error", run.failure))
            return False
        if not chosen:
            trace(Trace(self, run, "skipped", None))
        return chosen

    def _failure(self, error: Exception) -> Failure:
        reason = str(error) if isinstance(error, ProcessorError) else repr(error)
        return Failure(self.processor.type, self.tag, reason)

    def _fail(self, run: DocumentRun, error: Exception, failed: list[DocumentRun], trace: Tracer) -> None:
        failure = self._failure(error)
        if self.ignore_failure:
            trace(Trace(self, run, "error_ignored", failure))
            return
        run.failure = failure
        trace(Trace(self, run, "error", failure))
        failed.append(run)


def run_handlers(failed: Sequence[DocumentRun], handlers: Sequence[Step], trace: Tracer) -> None:
    """Run failure handlers; a document that passes them is processed further, without the failure."""
    if not handlers or not failed:
        return
    for run in failed:
        _expose_failure(run)
    for step in handlers:
        step.apply(failed, trace)
    for run in failed:
        if run.document is not None and run.failure is None:
            run.document = _without_failure(run.document)


def _expose_failure(run: DocumentRun) -> None:
    """Move the failure of a document into its metadata, where handlers can read it."""
    assert run.document is not None
    assert run.failure is not None
    facts = (run.failure.reason, run.failure.processor, run.failure.tag)
    meta: dict[str, Any] = {**run.document[META], **dict(zip(_ON_FAILURE, facts, strict=True))}
    run.document, run.failure = {**run.document, META: meta}, None


def _without_failure(document: Document) -> Document:
    meta = document.get(META)
    if not isinstance(meta, dict):
        return document
    return {**document, META: {key: value for key, value in meta.items() if key not in _ON_FAILURE}}


#: Creates a processor from its options; must read every option it knows.
Factory = Callable[[Options, Tools], Processor]

_CLASSES = (
    Append,
    Canonicalize,
    Convert,
    Date,
    DetectLanguage,
    Drop,
    Fail,
    Gsub,
    HtmlStrip,
    Join,
    Lowercase,
    MainContent,
    Remove,
    Rename,
    Set,
    Split,
    Supershingle,
    Trim,
    Uppercase,
)
BUILT_IN: Mapping[str, Factory] = {made.type: made for made in _CLASSES}


def build_steps(
    definitions: Sequence[Any], tools: Tools, factories: Mapping[str, Factory], where: str
) -> tuple[Step, ...]:
    """Return the steps of a list of processors.

    Args:
        where: the name of the list in messages, such as ``processors`` or ``processors[2].on_failure``.

    Raises:
        ConfigError: a processor or an option is not valid.
    """
    return tuple(
        _step(definition, tools, factories, f"{where}[{number}]")
        for number, definition in enumerate(definitions)
    )


def _step(definition: object, tools: Tools, factories: Mapping[str, Factory], where: str) -> Step:
    if not isinstance(definition, Mapping) or len(definition) != 1:
        raise ConfigError(f'{where}: a processor is an object with one key, such as {{"drop": {{}}}}')
    name, values = next(iter(definition.items()))
    factory = factories.get(str(name)) or load_plugin(
        PROCESSORS, f"processor (in {where})", str(name), factories
    )
    tag = values.get("tag") if isinstance(values, Mapping) else None
    options = Options(values, f"{where} {name}" + (f", tag {tag!r}" if tag else ""))
    tag = options.optional("tag")
    description = options.optional("description")
    source = options.optional("if")
    condition = None if source is None else parse_condition(source, options.place)
    ignore_failure = options.flag("ignore_failure", False)
    has_handlers = options.has("on_failure")
    handlers = options.items("on_failure")
    if has_handlers:
        check_handlers(handlers, options.place)
    on_failure = build_steps(handlers, tools, factories, f"{where}.on_failure")
    processor = factory(options, tools)
    options.done()
    if not isinstance(processor, Processor):
        raise ConfigError(f"{where}: the plugin {name!r} returned {processor!r:.100}, which is no processor")
    return Step(processor, condition, tag, description, ignore_failure, on_failure)


def check_handlers(handlers: object, place: str) -> list[Any]:
    """Return a list of failure handlers, which must not be empty, as on the servers."""
    if not isinstance(handlers, list):
        raise expected(f"{place}: 'on_failure'", "a list", handlers)
    if not handlers:
        raise ConfigError(f"{place}: 'on_failure' must not be empty; leave it out")
    return handlers
