"""The end of a run over documents: its summary in lines, its warnings, and its exit code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shinglefold.cli.shared.command import DONE, FAILED, PARTLY, Invocation, exit_code_of_stop
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import format_times, printable, remark
from shinglefold.cli.shared.sources import is_page_source
from shinglefold.errors import EngineError, counted

if TYPE_CHECKING:
    from shinglefold.cli.shared.next_commands import Hints
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.contracts.engine import Engine
    from shinglefold.errors import Value
    from shinglefold.ingest import Pipeline
    from shinglefold.ingest.field_statistics import FieldWatch, TextCoverage
    from shinglefold.ingest.readers.record import ReadOptions
    from shinglefold.ingest.writing.accounting import Summary
    from shinglefold.model.recipe import Recipe
    from shinglefold.offline.sign.run import Signed

#: The most reasons of failures that lines show.
_REASONS = 5
#: The most fields listed if no document has the fields that are read.
_FIELDS = 5
#: The meanings of counts whose names do not show it.
_COUNTED = {
    "fingerprints_left_out": " (of the sources: they are made of the texts anew)",
    "unknown_language": " (their words tell it; codes are of ISO 639-1: uk and zh, not ua and cn)",
    "without_signature": " (too little text: they fold with equal texts only)",
}
#: The message about sources without documents.
NO_DOCUMENTS = (
    "no documents found; check the sources, or say their --format (of folders, only HTML and text are read)"
)


def exit_code(summary: "Summary") -> int:
    """Return the exit code of an indexing run; write the reason to standard error if it failed."""
    if "discarded" in summary.counts:
        remark(f"{summary.index} is as it was: what was indexed for it is discarded")
    return exit_code_of_run(summary.stopped, summary.read, summary.failed, summary.indexed or summary.dropped)


def exit_code_of_run(stopped: str, read: int, failed: int, done: int, rest: str = "") -> int:
    """Return the exit code of a run over documents; write the reason to standard error if it failed.

    Args:
        stopped: why it ended early, "" if it did not.
        read, failed, done: numbers of documents.
        rest: a clause about the documents that a run which ended early did not process.
    """
    if stopped:
        remark(printable(f"stopped: {stopped.rstrip('.') if rest else stopped}{rest}"))
        return exit_code_of_stop(stopped)
    if not read:
        remark(NO_DOCUMENTS)
        return FAILED
    if failed:
        return PARTLY if done else FAILED
    return DONE


def run_lines(
    summary: "Summary | Signed", here: int, stages: str = "", complete: Callable[[str], str] = str
) -> Iterator[str]:
    """Yield the lines about speed, scheme, counts and reasons of failures.

    Args:
        here: documents that this run has read itself, not an earlier one.
        stages: a clause about the time of each stage.
        complete: completes the commands of a reason.
    """
    total = summary.seconds.get("total", 0.0)
    yield f"{total:.1f} s, {here / total if total else 0:,.0f} documents/s{stages}"
    languages = [f"{code} {count:,}" for code, count in sorted(summary.languages.items())]
    yield f"scheme {summary.scheme}; languages: {', '.join(languages) or 'none'}"
    yield from (
        f"{name.replace('_', ' ')}: {count:,}{_COUNTED.get(name, '')}"
        for name, count in sorted(summary.counts.items())
        if count
    )
    first = {one.reason: f"; first: {one.source}:{one.line}" for one in summary.failures}
    reasons = sorted(summary.reasons.items(), key=lambda item: -item[1])
    for reason, count in reasons[:_REASONS]:
        yield f"failed {format_times(count)}: {printable(complete(reason) + first.get(reason, ''))}"
    if others := reasons[_REASONS:]:
        why = "1 other reason" if len(others) == 1 else f"{len(others):,} other reasons"
        yield f"failed {format_times(sum(count for _, count in others))} for {why}; --json lists all"


def summary_lines(summary: "Summary", hints: "Hints", retry: str = "") -> list[str]:
    """Return the summary of an indexing run as lines; ``retry`` is the command for its dead letters."""
    seconds = [(name, f"{value:.1f}") for name, value in summary.seconds.items() if name != "total"]
    stages = ", ".join(f"{name} {shown}" for name, shown in seconds if shown != "0.0")
    lines = [
        f"{summary.indexed:,} indexed into {summary.index}, {summary.dropped:,} dropped, "
        f"{summary.failed:,} failed, of {summary.read:,} read",
        *run_lines(summary, summary.read, f" (seconds: {stages})" if stages else "", hints.complete),
    ]
    lines += [f"note: {printable(hints.complete(note))}" for note in summary.notes]
    if summary.failed and summary.dead_letters:
        some = "some of the failed" if summary.counts.get("not_kept") else "failed ones"
        lines.append(f"{some} are kept; once mended: {retry}")
    if summary.counts.get("not_kept"):
        lines.append("those not kept are in no file of dead letters: once mended, index the sources again")
    if summary.made and not summary.indexed:
        remove = hints.command("delete", summary.index, yes=True)
        lines.append(f"it was made by this run and is empty; this removes it: {remove}")
    return lines


def replay_command(target: "Target", letters: str) -> str:
    """Return the command that indexes the documents of a dead-letter file again."""
    return target.hints.command("index", letters, index=target.index, replay=True)


def retry_command(target: "Target", engine: "Engine", summary: "Summary", **made_by: "Value") -> str:
    """Return the command that retries the failed documents.

    Args:
        made_by: the options of a new index besides those of ``target``, repeated if no index was made whose
            recipe has them.
    """
    letters, index = summary.dead_letters, target.index
    try:
        there = bool(summary.indexed) or engine.index_exists(index)
    except EngineError:
        there = True
    if there:
        return replay_command(target, letters)
    return target.hints.command(
        "index", letters, index=index, replay=True, preset=target.preset, pipeline=target.pipeline,
        field=target.fields, profile=target.profile, never_differ=target.never_differ, **made_by,
    )  # fmt: skip


def index_warnings(
    target: "Target",
    pipeline: "Pipeline",
    recipe: "Recipe",
    watch: "FieldWatch",
    summary: "Summary",
    *,
    arguments: Sequence[str],
) -> Iterator[str]:
    """Yield the warnings about an indexing run whose documents may not fold."""
    from shinglefold.ingest.pipeline.steps import rerun_problems

    unsigned, named = summary.counts.get("without_signature", 0), bool(target.fields or target.pipeline)
    # An index that this run created holds its documents only.
    stripping = repeat_command(arguments, html=True, **({"recreate": True} if summary.made else {}))
    yield from text_warnings(watch, unsigned, named, target.take_text_from, stripping)
    yield from rerun_problems(pipeline.steps, recipe.field)
    if not (recipe.profile or recipe.never_differ) and watch.coverage().cards:
        yield suggest_products(target)


def suggest_products(target: "Target") -> str:
    """Return what to do about short texts that are full of numbers."""
    return (
        "the texts are short and full of numbers, and those that differ in a size or a model fold; to keep "
        f"them apart: {target.setup_and_backfill(profile='products')}; to leave it so: "
        f"{target.command('setup', profile='pages')}"
    )


def index_exit_code(summary: "Summary", watch: "FieldWatch", *, named: bool) -> int:
    """Return the exit code of an indexing run, fields included; write the reason to standard error.

    Args:
        named: the user named the fields, so that each of them is expected.
    """
    code = with_field_check(exit_code(summary), watch, named=named)
    otherwise = summary.counts.keys() & {"fingerprints_lost", "texts_changed", "not_read_back"}
    return PARTLY if code == DONE and otherwise else code


def id_warnings(invocation: Invocation, watch: "FieldWatch") -> Iterator[str]:
    """Yield a warning if documents have no id, but a field that looks like one."""
    if name := watch.likely_id:
        rebuild = repeat_command(invocation.arguments, id_field=name, recreate=True)
        yield (
            f"no document has an id, so that the next run stores them once more; if {name} is their id, this "
            f"makes an index of them alone: {rebuild}"
        )


def page_notes(sources: Sequence[str], options: "ReadOptions", summary: "Summary") -> Iterator[str]:
    """Yield a note if pages replaced stored ones, which may come from another folder."""
    if summary.counts.get("written_over") and any(is_page_source(source, options) for source in sources):
        yield (
            "pages are named by their paths in the folder given: if these were of another folder, give both "
            "in one run, which keeps them apart"
        )


def named_language_field(field: str) -> str:
    """Return the field with languages if the user named it, else ""."""
    from shinglefold.model.recipe import LANGUAGE

    return "" if field == LANGUAGE else field


def lacks_text(watch: "FieldWatch", *, named: bool) -> bool:
    """Return whether no text or little of it was read, or a field that the user named is missing.

    Args:
        named: the user named the fields, so that each of them is expected.
    """
    lacking = watch.textless or watch.undeclared or watch.unrouted or watch.missing_facts
    return bool(lacking or (named and watch.absent) or watch.coverage().misread)


def with_field_check(code: int, watch: "FieldWatch", *, named: bool) -> int:
    """Return an exit code, changed to ``PARTLY`` if a successful run lacks text; see ``lacks_text``."""
    return PARTLY if code == DONE and lacks_text(watch, named=named) else code


def text_warnings(
    watch: "FieldWatch",
    unsigned: int,
    named: bool,
    with_fields: Callable[[Sequence[str]], str],
    stripping: str,
) -> Iterator[str]:
    """Yield the warnings about missing fields and short texts.

    Args:
        unsigned: documents whose text is missing, or too short for a signature.
        named: the user named the fields, so that each of them is expected.
        with_fields: returns the command that takes the text from other fields.
        stripping: the command that takes the markup off.
    """
    from shinglefold.ingest.field_statistics import string_fields

    if not watch.documents:
        return
    if watch.undeclared:
        yield f"no document has the field {watch.undeclared}, which languages are to come from"
    if watch.unrouted:
        yield f"no document has the field {watch.unrouted}, which routings are to come from"
    yield from watch.missing_facts
    absent = watch.absent
    coverage = watch.coverage()
    if absent and (named or watch.textless):
        problem = f"no document has the field{'s' if len(absent) > 1 else ''} {', '.join(absent)}"
        others = string_fields(watch.sample)[:_FIELDS]
        if others and watch.textless and not (watch.elsewhere() or coverage.unread):
            problem += f"; they have {', '.join(others)}; name those to compare: {with_fields(['FIELD'])}"
        yield problem
    few = 2 * unsigned > watch.documents
    if few:
        yield (
            f"{unsigned:,} of {watch.documents:,} documents have too little text for a signature, so that "
            f"they fold only with exact copies; text is taken from {', '.join(watch.fields)}"
        )
    elsewhere = watch.elsewhere() if few or absent else ()
    if elsewhere and not (coverage.misread and coverage.read):
        kept = [name for name in watch.fields if name in watch.present and name not in elsewhere]
        fields = list(dict.fromkeys([*elsewhere, *kept]))
        yield f"there is text in {', '.join(elsewhere)}; to take it from there: {with_fields(fields)}"
    elif coverage.unread:
        yield unread_text(coverage, with_fields)
    if coverage.markup:
        yield f"{unstated_markup(coverage.markup)}; to take it off: {stripping}"


def unstated_markup(markup: Mapping[str, int]) -> str:
    """Return a message: fields hold HTML that their documents do not declare.

    Args:
        markup: in how many documents of a sample, by field.
    """
    (name, count), *rest = markup.items()
    others = "".join(f", {count:,} in {name}" for name, count in rest)
    some = counted(count, "document holds", "documents hold")
    return f"of those looked at {some} HTML in {name}{others}, and no format that says so: tags count as text"


def unread_text(coverage: "TextCoverage", with_fields: Callable[[Sequence[str]], str]) -> str:
    """Return the warning about text that is not read.

    Args:
        with_fields: returns the command that takes the text from these fields.
    """
    share = "most of the text is" if coverage.mostly_unread else "there is text"
    only = ", and only titles are read" if coverage.titles_alone else ", which is not read"
    command = with_fields(coverage.suggestion())
    return f"{share} in {', '.join(coverage.unread)}{only}; to take it from there: {command}"
