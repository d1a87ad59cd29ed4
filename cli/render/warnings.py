"""What is to be known of a run of ``index`` that may have gone well and still is of no use."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shinglefold.cli.framework.command import Invocation
from shinglefold.cli.options.sources import is_page_source
from shinglefold.cli.render.run_summary import exit_code

if TYPE_CHECKING:
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.ingest import Pipeline, ReadOptions, Summary
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.model.recipe import Recipe


def warnings_of(
    asked: "Asked", pipeline: "Pipeline", recipe: "Recipe", watch: "FieldWatch", summary: "Summary"
) -> Iterator[str]:
    """Yield what is to be known of a run that may have gone well and still is of no use."""
    from shinglefold.cli.framework.next_commands import chain
    from shinglefold.cli.render.text_warnings import text_warnings
    from shinglefold.ingest.pipeline.field_usage import not_repeatable

    def other(fields: Sequence[str]) -> str:
        change = asked.hints.command("setup", asked.index, field=tuple(fields))
        return chain([change, asked.command("backfill")])

    unsigned = summary.counts.get("without_signature", 0)
    yield from text_warnings(watch, unsigned, bool(asked.fields or asked.pipeline), other)
    yield from not_repeatable(pipeline.steps, recipe.field)


def code_of_run(summary: "Summary", watch: "FieldWatch", *, named: bool) -> int:
    """Return the exit code of a run; why it is none of the good ones goes to standard error.

    Args:
        named: the fields with texts were named, so that each of them is expected.
    """
    from shinglefold.cli.render.text_warnings import code_of

    return code_of(exit_code(summary), watch, named=named)


def id_warnings(invocation: Invocation, watch: "FieldWatch") -> Iterator[str]:
    """Yield what is to be known of documents without ids that have a field which looks like one."""
    from shinglefold.cli.framework.next_commands import again

    if name := watch.likely_id:
        anew = again(invocation.arguments, id_field=name, recreate=True)
        yield (
            f"no document has an id, so that the next run stores them once more; if {name} is their id, this "
            f"makes an index of them alone: {anew}"
        )


def page_notes(sources: Sequence[str], options: "ReadOptions", summary: "Summary") -> Iterator[str]:
    """Yield what is to be known where pages have taken the place of others, maybe those of another folder."""
    if summary.counts.get("written_over") and any(is_page_source(source, options) for source in sources):
        yield (
            "pages are named by their paths in the folder given: if these were of another folder, give both "
            "in one run, which keeps them apart"
        )
