"""What a pipeline reads and writes, told from its steps before the first document."""

from collections.abc import Iterator, Sequence

from shinglefold.errors import ConfigError, RecipeMismatch
from shinglefold.ingest.pipeline.steps import BUILT_IN, Step
from shinglefold.ingest.processors.fields import Remove, Rename, Set
from shinglefold.ingest.processors.supershingle import Supershingle
from shinglefold.ingest.processors.texts import Canonicalize, DetectLanguage, HtmlStrip, MainContent
from shinglefold.model.recipe import FIELD


def target_field(steps: Sequence[Step], wanted: str | None) -> str:
    """Return the field of an index that a pipeline's fingerprints go to.

    Args:
        wanted: where the index keeps them; None takes the pipeline's word.

    Raises:
        RecipeMismatch: they go elsewhere.
        ConfigError: they go to several fields and none is wanted.
    """
    targets = list(dict.fromkeys(made.target for made in _supershingles(steps)))
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
    """Tell whether a pipeline makes any fingerprints; one with processors of others is believed to."""
    others = any(step.processor.type not in BUILT_IN for step in steps)
    return others or any(True for _ in _supershingles(steps))


def text_fields(steps: Sequence[Step], target: str) -> tuple[str, ...]:
    """Return the fields whose texts the fingerprints in a field are of."""
    made = [name for step in _supershingles(steps) if step.target == target for name in step.fields]
    return tuple(dict.fromkeys(made))


def raw_fields(steps: Sequence[Step], target: str) -> tuple[str, ...]:
    """Return the fields of fingerprinted text that documents bring themselves: no step makes them."""
    made: set[str] = set()
    own: set[str] = set()
    for step in steps:
        source, goal = (getattr(step.processor, name, None) for name in ("field", "target"))
        if isinstance(step.processor, Set):
            made.add(step.processor.field)
        elif goal is not None and goal == source:
            own.add(goal)
        elif goal is not None:
            made.add(goal)
    return tuple(name for name in text_fields(steps, target) if name not in made or name in own)


def rerun_problems(steps: Sequence[Step], target: str) -> list[str]:
    """Return why a pipeline can't be run again on what it stored, and how it could, in words.

    A step fails the second time, or finds no text, where a later step removes the field it reads; so does one
    that gives a field another name, where it may not be missing.
    """
    moved = [
        f"the pipeline gives [{step.processor.field}] another name: it fails on the stored document; add "
        '"ignore_missing": true to rename'
        for step in steps
        if isinstance(step.processor, Rename) and not step.processor.ignore_missing and not _excused(step)
    ]
    return moved + [
        _told(reader, gone)
        for place, step in enumerate(steps)
        if isinstance(step.processor, Remove)
        for gone in step.processor.fields
        for reader in steps[:place]
        if any(_covers(gone, name) for name in _needed(reader, target))
    ]


def _supershingles(steps: Sequence[Step]) -> Iterator[Supershingle]:
    for step in steps:
        if isinstance(step.processor, Supershingle):
            yield step.processor
        yield from _supershingles(step.on_failure)


def _needed(step: Step, target: str) -> tuple[str, ...]:
    """Return the fields a step can't do without."""
    made = step.processor
    if isinstance(made, Supershingle):
        return made.fields if made.target == target else ()
    if _excused(step):
        return ()
    if isinstance(made, HtmlStrip | MainContent):
        return () if made.ignore_missing else (made.field,)
    if isinstance(made, DetectLanguage | Canonicalize):
        # One of several fields will do.
        return made.fields if len(made.fields) == 1 and not made.ignore_missing else ()
    if isinstance(made, Set):
        return (made.copy_from,) if made.copy_from and not made.ignore_empty else ()
    return ()


def _excused(step: Step) -> bool:
    """Tell whether somebody has thought of documents that lack what a step needs."""
    return step.ignore_failure or step.condition is not None or bool(step.on_failure)


def _covers(gone: str, name: str) -> bool:
    return name == gone or name.startswith(f"{gone}.")


def _told(reader: Step, gone: str) -> str:
    kind = reader.processor.type
    place = f"{kind}{f' [{reader.tag}]' if reader.tag else ''}"
    if kind == Supershingle.type:
        return (
            f"the pipeline removes [{gone}], which its {place} reads: the stored document has no text to "
            f"make the fingerprint of again; keep [{gone}], or let {kind} read a field that stays"
        )
    option = "ignore_empty_value" if kind == Set.type else "ignore_missing"
    return (
        f"the pipeline removes [{gone}], which its {place} reads: it fails on the stored document; add "
        f'"{option}": true to {kind}, or keep [{gone}]'
    )
