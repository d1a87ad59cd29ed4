"""What is to be known of a run of ``index`` that may have gone well and still is of no use."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation
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
    from shinglefold.ingest.pipeline.field_usage import rerun_problems

    def other(fields: Sequence[str]) -> str:
        change = asked.hints.command("setup", asked.index, field=tuple(fields))
        return chain([change, asked.command("backfill")])

    unsigned = summary.counts.get("without_signature", 0)
    yield from text_warnings(watch, unsigned, bool(asked.fields or asked.pipeline), other)
    yield from rerun_problems(pipeline.steps, recipe.field)


def code_of_run(summary: "Summary", watch: "FieldWatch", *, named: bool) -> int:
    """Return the exit code of a run; why it is none of the good ones goes to standard error.

    Args:
        named: the fields with texts were named, so that each of them is expected.
    """

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


def named_language(field: str) -> str:
    """Return the field with languages, where it is one that somebody has named."""
    from shinglefold.model.recipe import LANGUAGE

    return "" if field == LANGUAGE else field


def is_in_vain(watch: "FieldWatch", *, named: bool) -> bool:
    """Tell whether a run is no success, though nothing failed: a field is mistyped, or no text was found.

    Args:
        named: the fields were named, so that each of them is expected.
    """
    return bool(watch.textless or watch.undeclared or (named and watch.absent))


def code_of(code: int, watch: "FieldWatch", *, named: bool) -> int:
    """Return the exit code of a run, given what it would be but for the fields."""
    return PARTLY if code == DONE and is_in_vain(watch, named=named) else code


def text_warnings(
    watch: "FieldWatch", unsigned: int, named: bool, other: Callable[[Sequence[str]], str]
) -> Iterator[str]:
    """Yield what a user should know of the texts that were read.

    Args:
        unsigned: documents whose text is too short for a signature, or missing.
        named: the fields were named, so that each of them is expected.
        other: from fields to the command that takes the text from them.
    """
    if not watch.documents:
        return
    if watch.undeclared:
        yield f"no document has the field {watch.undeclared}, which languages are to come from"
    absent = watch.absent
    if absent and (named or len(absent) == len(watch.fields)):
        yield f"no document has the field{'s' if len(absent) > 1 else ''} {', '.join(absent)}"
    few = 2 * unsigned > watch.documents
    if few:
        yield (
            f"{unsigned:,} of {watch.documents:,} documents have too little text for a signature, so that "
            f"they fold only with exact copies; text is taken from {', '.join(watch.fields)}"
        )
    elsewhere = watch.elsewhere() if few or absent else ()
    if elsewhere:
        kept = [name for name in watch.fields if name in watch.present and name not in elsewhere]
        fields = list(dict.fromkeys([*elsewhere, *kept]))
        yield f"there is text in {', '.join(elsewhere)}; to take it from there: {other(fields)}"
