"""Elements of passages for an index that is to store them: what a command says, and the pipeline for it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.ingest import Pipeline
    from shinglefold.model.recipe import Recipe


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
    definition = with_passages(recipe.pipeline, recipe.field)
    made = checked_pipeline(definition, recipe.scheme, pipeline.tools.seal)
    return made, replace(recipe, pipeline=definition)
