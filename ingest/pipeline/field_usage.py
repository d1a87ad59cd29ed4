"""Determine from a pipeline's steps which fields it reads and writes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shinglefold.errors import ConfigError, RecipeMismatch
from shinglefold.ingest.field_paths import template_paths
from shinglefold.ingest.pipeline.steps import BUILT_IN, Step
from shinglefold.ingest.processors.fields import Remove, Rename, Set
from shinglefold.ingest.processors.supershingle import Supershingle
from shinglefold.ingest.processors.texts import Canonicalize, DetectLanguage, HtmlStrip, MainContent
from shinglefold.model.recipe import FIELD


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

    Left out: a field that its step also reads, as the document has it; one named by a template, as only a
    document tells which it is.
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
