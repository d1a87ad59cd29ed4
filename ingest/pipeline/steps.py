"""The steps of a pipeline: built from its JSON, run on a block, and the fields that they read and write."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shinglefold.contracts.engine import Document, Processor
from shinglefold.documents import json_type, template_paths
from shinglefold.errors import ConfigError, ProcessorError, RecipeMismatch
from shinglefold.ingest.pipeline.condition import Condition, parse_condition
from shinglefold.ingest.processors.context import Options, Tools
from shinglefold.ingest.processors.fields import Append, Drop, Fail, Remove, Rename, Set
from shinglefold.ingest.processors.texts import (
    Canonicalize,
    DetectLanguage,
    HtmlStrip,
    MainContent,
    Supershingle,
)
from shinglefold.ingest.processors.values import Convert, Date, Gsub, Join, Lowercase, Split, Trim, Uppercase
from shinglefold.model.recipe import FIELD
from shinglefold.options.validation import expected
from shinglefold.registry import PROCESSORS, load_plugin

#: The field for ingest metadata while a document is processed: the time, and why a step failed.
META = "_ingest"
#: Fields of a document in a pipeline that are not part of its source.
METADATA = ("_id", "_index", "_routing")
_ON_FAILURE = ("on_failure_message", "on_failure_processor_type", "on_failure_processor_tag")
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
        chosen = [run for run in runs if run.alive and self._applies(run, trace)]
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
                return [self._check_outcome(outcome) for outcome in outcomes]
            wrong = f"{self.processor.type} returned {len(outcomes)} documents for {len(documents)}"
            return [ProcessorError(wrong)] * len(documents)
        except Exception as error:
            return [error] if len(runs) == 1 else [self._outcomes([run])[0] for run in runs]

    def _check_outcome(self, outcome: Document | Exception | None) -> Document | Exception | None:
        if outcome is None or isinstance(outcome, dict | Exception):
            return outcome
        return ProcessorError(
            f"the processor returned {json_type(outcome)} instead of a document: a bug of the processor"
        )

    def _applies(self, run: DocumentRun, trace: Tracer) -> bool:
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
    meta = {**_without_failure(run.document)[META], **dict(zip(_ON_FAILURE, facts, strict=True))}
    run.document, run.failure = {**run.document, META: meta}, None


def _without_failure(document: Document) -> Document:
    # A step may have replaced or removed the metadata.
    meta = document.get(META)
    kept = {key: meta[key] for key in meta if key not in _ON_FAILURE} if isinstance(meta, dict) else {}
    return {**document, META: kept}


def build_steps(
    definitions: Sequence[Any], tools: Tools, factories: Mapping[str, Factory], where: str
) -> tuple[Step, ...]:
    """Return the steps of a list of processors.

    Args:
        where: the name of the list in messages, such as ``processors`` or ``processors[2].on_failure``.
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
    handlers = check_handlers(options.value("on_failure"), options.place)
    on_failure = build_steps(handlers, tools, factories, f"{where}.on_failure")
    processor = factory(options, tools)
    options.check_all_taken()
    if not isinstance(processor, Processor):
        raise ConfigError(
            f"{where}: the plugin {name!r} returned {processor!r:.100}, which is not a processor"
        )
    return Step(processor, condition, tag, description, ignore_failure, on_failure)


def check_handlers(handlers: object, place: str) -> list[Any]:
    """Return a list of failure handlers, [] for None; another one must not be empty, as on the servers."""
    if handlers is None:
        return []
    if not isinstance(handlers, list):
        raise expected(f"{place}: 'on_failure'", "a list", handlers)
    if not handlers:
        raise ConfigError(f"{place}: 'on_failure' must not be empty; leave it out")
    return handlers


def target_field(steps: Sequence[Step], wanted: str | None) -> str:
    """Return the field to which a pipeline writes the fingerprints of an index.

    Args:
        wanted: the fingerprint field of the index; the pipeline's own if None.

    Raises:
        RecipeMismatch: the pipeline writes to another field.
        ConfigError: ``wanted`` is None and the pipeline writes to several fields.
    """
    targets = list(dict.fromkeys(one.target for one in _supershingles(steps)))
    if wanted is None:
        if len(targets) > 1:
            raise ConfigError(
                f"the pipeline writes fingerprints into {' and '.join(targets)}: say which of them the index "
                "folds by, with the setting field"
            )
        return targets[0] if targets else FIELD
    if targets and wanted not in targets:
        raise RecipeMismatch(
            "fingerprints in the field",
            wanted,
            ", ".join(targets),
            "the index",
            f'Set "target_field": "{wanted}" in the pipeline\'s supershingle, or the setting field.',
        )
    return wanted


def makes_fingerprints(steps: Sequence[Step]) -> bool:
    """Return whether a pipeline makes fingerprints; custom processors are assumed to do so."""
    others = any(step.processor.type not in BUILT_IN for step in steps)
    return others or any(True for _ in _supershingles(steps))


def text_fields(steps: Sequence[Step], target: str) -> tuple[str, ...]:
    """Return the fields whose texts are fingerprinted into a field."""
    names = [name for step in _supershingles(steps) if step.target == target for name in step.fields]
    return tuple(dict.fromkeys(names))


def raw_fields(steps: Sequence[Step], target: str) -> tuple[str, ...]:
    """Return the text fields that documents must have, because no step creates them."""
    created: set[str] = set()
    rewritten: set[str] = set()
    for step in steps:
        source, target_name = (getattr(step.processor, name, None) for name in ("field", "target"))
        if isinstance(step.processor, Set):
            created.add(step.processor.field)
        elif target_name is not None and target_name == source:
            rewritten.add(target_name)
        elif target_name is not None:
            created.add(target_name)
    return tuple(name for name in text_fields(steps, target) if name not in created or name in rewritten)


def written_fields(definition: Mapping[str, Any], target: str) -> tuple[str, ...]:
    """Return the fields that a pipeline adds to documents, other than the fingerprint field.

    Leaves out fields that their step also reads, because documents have them; and fields that a template
    names, which depend on the document.
    """
    names = []
    for step in definition.get("processors") or ():
        for kind, options in step.items():
            name = options.get("field" if kind == "set" else "target_field")
            reads = (options.get("field") if kind != "set" else None, *(options.get("fields") or ()))
            if (
                isinstance(name, str)
                and "{{" not in name
                and name not in reads
                and f"ctx.{name}" not in str(options.get("if", ""))
                and not f"{name}.".startswith(f"{target}.")
            ):
                names.append(name.removeprefix("_source."))
    return tuple(dict.fromkeys(names))


def stripped_fields(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the fields from which steps take the markup."""
    kinds = (HtmlStrip, MainContent)
    return tuple(step.processor.target for step in steps if isinstance(step.processor, kinds))


def source_fields(steps: Sequence[Step]) -> tuple[str, ...] | None:
    """Return the fields that steps read; None if a custom processor may read any."""
    if any(step.processor.type not in BUILT_IN for step in steps):
        return None
    names: list[str] = []
    for step in steps:
        if isinstance(step.processor, Set):
            names += template_paths(step.processor.value)
            names += [step.processor.copy_from] if step.processor.copy_from else []
        elif not isinstance(step.processor, Remove):
            names += getattr(step.processor, "fields", ())
            if isinstance(step.processor, Supershingle):
                names += step.processor.never_differ.fields
            single = getattr(step.processor, "field", "")
            names += [single] if single else []
    return tuple(dict.fromkeys(names))


def rerun_problems(steps: Sequence[Step], target: str) -> list[str]:
    """Return messages on steps that cannot run again on stored documents, each with a remedy.

    If a later step removes a field, the step that reads it finds nothing the second time. ``rename`` removes
    the field that it reads, so it fails unless the field may be missing.
    """
    moved = [
        f"the pipeline renames [{step.processor.field}], and fails on the stored document; add "
        '"ignore_missing": true to rename'
        for step in steps
        if isinstance(step.processor, Rename)
        and not step.processor.ignore_missing
        and not _tolerates_missing(step)
    ]
    return moved + [
        _removal_message(reader, removed)
        for place, step in enumerate(steps)
        if isinstance(step.processor, Remove)
        for removed in step.processor.fields
        for reader in steps[:place]
        if any(f"{name}.".startswith(f"{removed}.") for name in _required_fields(reader, target))
    ]


def _supershingles(steps: Sequence[Step]) -> Iterator[Supershingle]:
    for step in steps:
        if isinstance(step.processor, Supershingle):
            yield step.processor
        yield from _supershingles(step.on_failure)


def _required_fields(step: Step, target: str) -> tuple[str, ...]:
    """Return the fields without which a step fails."""
    processor = step.processor
    if isinstance(processor, Supershingle):
        return processor.fields if processor.target == target else ()
    if _tolerates_missing(step):
        return ()
    if isinstance(processor, HtmlStrip | MainContent):
        return () if processor.ignore_missing else (processor.field,)
    if isinstance(processor, DetectLanguage | Canonicalize):
        # One of several fields will do.
        return processor.fields if len(processor.fields) == 1 and not processor.ignore_missing else ()
    if isinstance(processor, Set):
        return (processor.copy_from,) if processor.copy_from and not processor.ignore_empty else ()
    return ()


def _tolerates_missing(step: Step) -> bool:
    """Return whether a step is configured for documents that lack its fields."""
    return step.ignore_failure or step.condition is not None or bool(step.on_failure)


def _removal_message(reader: Step, removed: str) -> str:
    kind = reader.processor.type
    place = f"{kind}{f' [{reader.tag}]' if reader.tag else ''}"
    if kind == Supershingle.type:
        return (
            f"the pipeline removes [{removed}], which its {place} reads: the stored document has no text to "
            f"fingerprint again; keep [{removed}], or let {kind} read a field that stays"
        )
    option = "ignore_empty_value" if kind == Set.type else "ignore_missing"
    return (
        f"the pipeline removes [{removed}], which its {place} reads: it fails on the stored document; add "
        f'"{option}": true to {kind}, or keep [{removed}]'
    )
