"""Documents of an index that have no text in the fields its pipeline reads, and the fields that have it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shinglefold.cli.framework.next_commands import chain
from shinglefold.ingest.field_paths import without_path
from shinglefold.ingest.field_statistics import likely_texts
from shinglefold.ingest.processors.texts import joined_text
from shinglefold.model.stored_fingerprint import placeholder_query

if TYPE_CHECKING:
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.contracts.engine import Document, Engine
    from shinglefold.ingest import Pipeline
    from shinglefold.model.recipe import Recipe

#: Documents looked at.
_SAMPLE = 20


def unread_texts(engine: "Engine", asked: "Asked", index: str, pipeline: "Pipeline", recipe: "Recipe") -> str:
    """Return what to do where the pipeline finds no text in documents of an index; nothing where it does.

    Args:
        asked: whose commands name the options in force.
    """
    body = {"size": _SAMPLE, "query": {"bool": {"must_not": [placeholder_query(recipe.field)]}}}
    hits = engine.search(index, body)["hits"]["hits"]
    sources = [without_path(hit["_source"], recipe.field) for hit in hits]
    if not sources or _has_text(pipeline, recipe.fields, sources):
        return ""
    none = "the document" if len(sources) == 1 else f"none of the {len(sources)} documents"
    has = "has no text" if len(sources) == 1 else "has text"
    told = f"{none} of {index} looked at {has} in {', '.join(recipe.fields)}, so that nothing would fold"
    other = tuple(name for name in likely_texts(sources) if name not in recipe.fields)
    if not other:
        return told
    commands = [asked.hints.command("setup", index, field=other), asked.hints.command("backfill", index)]
    return f"{told}; there is text in {', '.join(other)}; to take it from there: {chain(commands)}"


def _has_text(pipeline: "Pipeline", fields: Sequence[str], sources: Sequence["Document"]) -> bool:
    """Tell whether the pipeline finds text in a document, or fails on one, which is told elsewhere."""
    outcomes = pipeline.run([{**source, "_id": str(place)} for place, source in enumerate(sources)])
    return any(one.document is None or joined_text(one.document, fields, True) for one in outcomes)


def passages_remedy(asked: "Asked") -> str:
    """Return the commands that give an index the elements of passages."""
    from shinglefold.cli.framework.next_commands import chain

    setup = asked.hints.command("setup", asked.index, passages=True)
    return chain([setup, asked.hints.command("backfill", asked.index)])


def passages_too(
    asked: "Asked", pipeline: "Pipeline", recipe: "Recipe", *, fresh: bool
) -> "tuple[Pipeline, Recipe]":
    """Return a pipeline that stores the elements of passages, too, and the recipe of an index to come.

    Raises:
        ConfigError: the index is there and stores none.
    """
    from dataclasses import replace

    from shinglefold.cli.session.open_index import checked_pipeline
    from shinglefold.cli.session.recipe import recipe_of_index
    from shinglefold.errors import ConfigError, IndexMissing
    from shinglefold.model.recipe import with_passages

    there = not fresh
    try:
        there = there and recipe_of_index(asked) is not None
    except IndexMissing:
        there = False
    if there:
        raise ConfigError(
            f"index {asked.index!r} stores no elements of passages. Let it from now on, and add those of its "
            f"documents: {passages_remedy(asked)}; or build it anew: --recreate"
        )
    definition = with_passages(recipe.pipeline or {}, recipe.field)
    made = checked_pipeline(definition, recipe.scheme, pipeline.tools.seal)
    return made, replace(recipe, pipeline=definition)
