"""What ``index --recreate`` takes over from the index whose place it takes, and what it leaves behind."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shinglefold.cli.framework.next_commands import Hints
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.contracts.engine import JSON, Engine, IndexInfo
    from shinglefold.grouping.rules import Rules
    from shinglefold.model.recipe import Recipe


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """What is kept of how an index made its groups.

    ``grouping``: the rules that it notes. ``properties``: mappings of the fields that these go by. ``left``:
    what is not kept, and the command that gives it back; empty where there is nothing to tell.
    """

    grouping: Mapping[str, Any] = field(default_factory=dict)
    properties: "JSON" = field(default_factory=dict)
    left: str = ""


def kept_groups(asked: "Asked", recipe: "Recipe", *, numbered: bool) -> KeptGroups:
    """Return what a new index keeps of how the one in its place made its groups, as no option says it.

    Args:
        recipe: of the new one.
        numbered: whether it numbers groups.
    """
    from shinglefold.cli.session.recipe import recipe_of_index
    from shinglefold.errors import ConfigError, IndexMissing, SchemeMismatch
    from shinglefold.grouping.rules import Rules
    from shinglefold.rerank.request.field_check import source_of

    try:
        old, found = recipe_of_index(asked)
        rules = Rules.of(old)
    except (IndexMissing, ConfigError, SchemeMismatch):
        # What can't be read can't be kept either, and is what one recreates an index for.
        return KeptGroups()
    if not old.groups:
        return KeptGroups()
    again = _regroup(asked, rules, str(old.grouping.get("linkage") or ""))
    if not numbered:
        from shinglefold.cli.framework.next_commands import chain

        numbers = chain([asked.hints.command("setup", asked.index, groups=True), again])
        told = f"index {asked.index!r} numbered groups, and the new one does not"
        return KeptGroups(left=f"{told}; let it: {numbers}")
    if old.grouping and old.scheme.id != recipe.scheme.id:
        told = f"rules for its groups were noted in {asked.index!r} for another scheme, and are not kept"
        return KeptGroups(left=f"{told}; to go by them: {again}")
    tops = {source_of(found.values(), name).partition(".")[0] for name in rules.scope}
    properties = {
        name: node
        for mappings in found.values()
        for name, node in (mappings.get("properties") or {}).items()
        if name in tops
    }
    return KeptGroups(old.grouping, properties)


def _regroup(asked: "Asked", rules: "Rules", linkage: str) -> str:
    """Return the command that makes the groups of an index by rules."""
    numbers = {"min_resemblance": rules.min_resemblance, "min_similarity": rules.min_similarity}
    return asked.hints.command(
        "regroup",
        asked.index,
        linkage=linkage or None,
        verify=rules.verify,
        scope=rules.scope,
        across_languages=rules.across_languages,
        **{name: None if value is None else str(value) for name, value in numbers.items()},
    )


def left_lines(engine: "Engine", infos: "Iterable[IndexInfo]", hints: "Hints") -> Iterator[str]:
    """Yield which indices are left of a run that was killed, each with the command that deletes it."""
    from shinglefold.ingest.writing.target_index import unfinished_rebuilds

    for info, name in unfinished_rebuilds(engine, infos):
        count = "" if info.documents is None else f", with {info.documents:,} documents"
        also = f", also called {', '.join(info.aliases)}" if info.aliases else ""
        yield (
            f"the index {info.name!r}{also}{count}, was being built by an index --recreate of {name!r}, "
            f"which goes on or was killed; if it was killed, delete what it left: "
            f"{hints.command('delete', info.name, yes=True)}"
        )


def left_beside(asked: "Asked") -> list[str]:
    """Return what is left of earlier runs that were to take the place of an index; see ``left_lines``."""
    from contextlib import closing

    from shinglefold.engines import open_engine
    from shinglefold.errors import EngineError

    try:
        with closing(open_engine(asked.where)) as engine:
            return list(left_lines(engine, engine.indices(f"{asked.index}-*"), asked.hints))
    except EngineError:
        # Whoever may not look for others may index all the same.
        return []
