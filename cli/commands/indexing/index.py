"""``shinglefold index SOURCE…``: documents into an index, with their fingerprints."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.framework.output import printable, remark, write_json, write_line
from shinglefold.cli.options.definitions import (
    engine_options,
    fields_option,
    groups_verified,
    pipeline_option,
    preset_option,
    rules_of_groups,
    workers_option,
)
from shinglefold.cli.options.sources import (
    check_dead_letters,
    make_read_options,
    read_sources,
    reading_options,
)
from shinglefold.cli.render.run_summary import again_command, exit_code, replay_command, summary_lines
from shinglefold.cli.render.warnings import code_of_run, id_warnings, page_notes, warnings_of
from shinglefold.cli.session.field_types import check_types, mapping_told, read_properties

if TYPE_CHECKING:
    from shinglefold.canon import Lexicon
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.cli.session.templates import IndexLayout
    from shinglefold.contracts.engine import Engine
    from shinglefold.grouping.numbering import Numbering
    from shinglefold.grouping.rules import Rules
    from shinglefold.ingest import Pipeline, Progress, ReadOptions, Record, Summary
    from shinglefold.model.recipe import Recipe


@command(
    examples="""
    shinglefold index articles.jsonl.gz
    shinglefold index site/ --index site --recreate
    shinglefold index dump.csv --id-field page_id --dead-letters failed.jsonl
    zcat pages.jsonl.gz | shinglefold index - --index news --pipeline pipeline.json
    shinglefold index documents.jsonl --pipeline pipeline.json --dry-run --verbose
    shinglefold index --replay failed.jsonl
    """
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@engine_options
@click.option(
    "--recreate",
    is_flag=True,
    help="Build the index anew beside the old one, and swap them once it is whole.",
)
@pipeline_option("the index's, or that for pages")
@fields_option("Field with text, whose fingerprint is made", "title and body")
@click.option(
    "--mapping", metavar="FILE", help="Types of fields of a new index, as JSON: the properties of a mapping."
)
@click.option(
    "--groups",
    is_flag=True,
    help="Number the groups: each document gets the number of its group; the index remembers that.",
)
@groups_verified
@click.option(
    "--passages",
    is_flag=True,
    help="Store what passages of other texts are found by (shinglefold matches). The index remembers that.",
)
@reading_options
@click.option("--dead-letters", metavar="FILE", help="Where failed documents are appended, to be replayed.")
@click.option(
    "--replay",
    is_flag=True,
    help="The source is a dead-letter file: index its documents again. It keeps what fails again.",
)
@click.option(
    "--dry-run", is_flag=True, help="Write nothing: print what the pipeline makes of each document, as JSON."
)
@click.option("--verbose", is_flag=True, help="With --dry-run: the document after every step.")
@preset_option
@workers_option
@click.pass_obj
def index(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    index: str,
    engine: str | None,
    recreate: bool,
    pipeline: str | None,
    fields: tuple[str, ...],
    replay: bool,
    dead_letters: str | None,
    dry_run: bool,
    verbose: bool,
    preset: str | None,
    workers: int | None,
    mapping: str | None,
    groups: bool,
    verify: str | None,
    min_similarity: float | None,
    passages: bool,
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None,
) -> int:
    """Index documents with their fingerprints.

    SOURCE is JSONL or CSV (also .gz), an HTML or text file, a folder of such files, or - for standard input.
    The index is made where it is missing. Exit code 3 says that some documents failed.
    """
    from dataclasses import replace

    from shinglefold.cli.commands.indexing.recreate import KeptGroups, kept_groups, left_beside
    from shinglefold.cli.session.missing_texts import passages_too
    from shinglefold.cli.session.open_index import pipeline_of, search_canonicalizer
    from shinglefold.cli.session.templates import IndexLayout, kept_layout
    from shinglefold.engines import open_engine
    from shinglefold.ingest import rebuild
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.ingest.pipeline.field_usage import raw_fields

    asked = invocation.asked(index, engine, preset=preset, pipeline=pipeline, fields=fields)
    settings = asked.settings
    replaying = partial(replay_command, asked)
    check_replay(sources if replay else None, dead_letters, recreate=recreate)
    check_dead_letters(dead_letters, sources, replaying(dead_letters or ""))
    options = make_read_options(format, id_field, encoding, header)
    types = _types(asked, mapping, recreate=recreate)
    records = iter(()) if replay else read_sources(sources, options, replaying)
    chosen, recipe = pipeline_of(asked, invocation, fresh=recreate or (dry_run and bool(pipeline)))
    if dry_run:
        return print_documents(sources, records, chosen, verbose=verbose)
    if passages and not recipe.passages:
        chosen, recipe = passages_too(asked, chosen, recipe, fresh=recreate)
    numbered = groups or recipe.groups
    check_groups(asked, recipe, wanted=groups and not recreate)
    rules = rules_of_groups(verify, min_similarity, numbered=numbered)
    kept = kept_groups(asked, recipe, numbered=numbered) if recreate else KeptGroups()
    layout, left = (kept_layout(asked), left_beside(asked)) if recreate else (IndexLayout(), [])
    recipe = replace(recipe, grouping=recipe.grouping or kept.grouping)
    watch = FieldWatch(raw_fields(chosen.steps, recipe.field))
    lexicon = chosen.tools.canonicalizer.lexicon
    if settings.lexicon_file:
        lexicon.load(settings.lexicon_file)
    opened = open_engine(asked.where, search_canonicalizer(recipe.scheme, chosen.tools.canonicalizer))
    build = partial(
        _built,
        engine=opened,
        asked=asked,
        pipeline=chosen,
        recipe=recipe,
        rules=rules if numbered else None,
        mapping=mapping,
        records=watch.watch(records),
        usual={id_field: {"type": "keyword"}} if id_field and "." not in id_field else {},
        layout=layout,
        properties={**kept.properties, **types},
        dead_letters=sources[0] if replay else dead_letters,
        replayed=options if replay else None,
        workers=settings.workers if workers is None else workers,
    )
    try:
        summary = rebuild(opened, index, build) if recreate else build(index)
        again = again_command(
            asked, opened, summary, preset=preset, pipeline=pipeline, field=fields, mapping=mapping,
            groups=groups, passages=passages, id_field=id_field or None, verify=verify,
            min_similarity=None if min_similarity is None else str(min_similarity),
        )  # fmt: skip
    finally:
        unclosed = close(opened)
    summary = replace(summary, stopped=summary.stopped or unclosed)
    # One that was broken off in the middle of learning a word is not to be trusted.
    if settings.lexicon_file and not summary.stopped:
        keep_lexicon(lexicon, settings.lexicon_file)
    if replay:
        _tell(invocation, summary, summary_lines(summary, asked.hints, again), ())
        return exit_code(summary)
    summary = _whole(summary, options, tuple(page_notes(sources, options, summary)))
    warned = [*left, *warnings_of(asked, chosen, recipe, watch, summary), *id_warnings(invocation, watch)]
    warned += filter(None, (kept.left, layout.left) if summary.made else ())
    _tell(invocation, summary, summary_lines(summary, asked.hints, again), warned)
    return code_of_run(summary, watch, named=bool(fields))


def print_documents(
    sources: Sequence[str], records: "Iterable[Record]", pipeline: "Pipeline", *, verbose: bool
) -> int:
    """Print what a pipeline makes of documents, in the shape of ``_ingest/pipeline/_simulate``."""
    from shinglefold.errors import InputError

    samples: list[dict[str, Any]] = []
    unreadable = []
    for record in records:
        if record.document is None:
            unreadable.append(
                {"error": {"type": "unreadable", "reason": f"{record.source}:{record.line}: {record.reason}"}}
            )
        else:
            source = dict(record.document)
            id_ = source.pop("_id", None)
            samples.append({**({} if id_ is None else {"_id": id_}), "_source": source})
    if not samples and not unreadable:
        raise InputError(f"{', '.join(sources)} holds no documents")
    made = pipeline.simulate(samples, verbose=verbose)["docs"] if samples else []
    write_json({"docs": [*made, *unreadable]})
    return PARTLY if unreadable or any(map(_is_failed, made)) else DONE


def _is_failed(one: Mapping[str, Any] | None) -> bool:
    steps = (one or {}).get("processor_results", ())
    return one is not None and ("error" in one or bool(steps and "error" in steps[-1]))


def _types(asked: "Asked", mapping: str | None, *, recreate: bool) -> dict[str, Any]:
    """Return the types of fields in a file; they must be those of an index that is there."""
    types = read_properties(mapping)
    if mapping and not recreate:
        check_types(asked, types, mapping)
    return types


def _built(
    name: str,
    *,
    engine: "Engine",
    asked: "Asked",
    pipeline: "Pipeline",
    recipe: "Recipe",
    rules: "Rules | None",
    mapping: str | None,
    records: Any,  # noqa: ANN401 - as they are read
    usual: dict[str, Any],
    layout: "IndexLayout",
    properties: dict[str, Any],
    replayed: "ReadOptions | None",
    **options: Any,  # noqa: ANN401 - of the run
) -> "Summary":
    """Index documents under a name.

    Args:
        replayed: how dead letters are read, where the documents are those of the file ``dead_letters``.
        rules: by which groups are numbered, None for no numbers.
        usual: types of further fields, unless the server's templates, ``layout`` or ``properties`` say
            otherwise; the last of these wins.
    """
    from shinglefold.cli.session.templates import templated
    from shinglefold.grouping.numbering import Numbering
    from shinglefold.ingest.index_mapping import usual_properties

    if not engine.index_exists(name):
        given = templated(engine, name)
        properties = {
            **given.unsaid({**usual_properties(recipe), **usual, **layout.properties}),
            **properties,
        }
        options["settings"] = {at: one for at, one in layout.settings.items() if at not in given.settings}

    numbering, tools = None, pipeline.tools
    if rules is not None:
        numbering = Numbering(engine, name, recipe, tools.seal, rules, tools.canonicalizer)
    options |= {"field": recipe.field, "groups": numbering, "properties": properties}
    with mapping_told(mapping), numbering_told(asked, numbering):
        if replayed is None:
            return run(engine, name, records, pipeline, **options)
        return replay_letters(asked, engine, name, pipeline, reading=replayed, **options)


def _whole(summary: "Summary", options: "ReadOptions", notes: Sequence[str]) -> "Summary":
    """Return a summary with what was passed over in reading, and what is to be said of it."""
    from dataclasses import replace

    passed = {name: count for name, count in options.skipped.items() if count}
    return replace(summary, counts={**summary.counts, **passed}, notes=(*summary.notes, *notes))


def _tell(invocation: Invocation, summary: "Summary", lines: Iterable[str], warned: Sequence[str]) -> None:
    """Print the summary of a run, and what is to be known of it beside."""
    if invocation.json:
        write_json({**summary.to_json(), "warnings": list(warned)})
    else:
        for line in lines:
            write_line(line)
    for line in warned:
        remark(f"warning: {printable(line)}")


@contextmanager
def numbering_told(asked: "Asked", numbering: "Numbering | None") -> Iterator[None]:
    """Say where another run has numbered groups at the same time, and what mends them."""
    try:
        yield
    finally:
        if numbering is not None:
            numbering.beside.end()
            if numbering.beside.seen:
                remark(
                    f"warning: another run numbered groups of {asked.index!r} at the same time, or was cut "
                    "short within the last minute; copies that came by both may be in two groups. "
                    f"To number them anew: {asked.hints.command('regroup', asked.index)}; several at once "
                    f"may use: {asked.hints.command('add', asked.index, 'FILE', policy='tag')}"
                )


def check_groups(asked: "Asked", recipe: "Recipe", *, wanted: bool) -> None:
    """Refuse to number the groups of an index that is there and has no numbers, where that is wanted.

    Raises:
        ConfigError: its documents would be without one.
    """
    from shinglefold.cli.session.recipe import recipe_of_index
    from shinglefold.errors import ConfigError, IndexMissing

    if recipe.groups or not wanted:
        return
    try:
        recipe_of_index(asked)
    except IndexMissing:
        return
    change = asked.hints.command("setup", asked.index, groups=True)
    raise ConfigError(
        f"index {asked.index!r} numbers no groups. Let it from now on: {change}; or build it anew: --recreate"
    )


def close(engine: "Engine") -> str:
    """Close an engine and return what went wrong with that: a summary must not get lost over it."""
    from shinglefold.errors import EngineError

    try:
        engine.close()
    except EngineError as error:
        return str(error)
    return ""


def keep_lexicon(lexicon: "Lexicon", path: str) -> None:
    """Keep the words learned for the next run."""
    from shinglefold.errors import InputError

    try:
        lexicon.save(path)
    except InputError as error:
        # The documents are indexed; what is lost is only learned again.
        remark(f"note: {printable(error)}")


def run(engine: "Engine", index: str, records: Any, pipeline: "Pipeline", **options: Any) -> "Summary":  # noqa: ANN401
    """Index documents with a progress bar."""
    from shinglefold.cli.framework.progress import progress_bar
    from shinglefold.ingest import index_documents

    with progress_bar("indexing") as bar:
        return index_documents(
            engine,
            index,
            records,
            pipeline,
            progress=indexing_progress(bar),
            **options,
        )


def check_replay(sources: Sequence[str] | None, dead_letters: str | None, *, recreate: bool) -> None:
    """Refuse options that mean nothing for a dead-letter file.

    Args:
        sources: those of ``--replay``; None without it.

    Raises:
        UsageError: there are several sources, or one of those options.
    """
    if sources is None:
        return
    if len(sources) != 1 or sources[0] == "-":
        raise click.UsageError("--replay takes one dead-letter file")
    if dead_letters is not None:
        raise click.UsageError("--replay keeps what fails again in its file: leave --dead-letters out")
    if recreate:
        raise click.UsageError("--replay adds to an index: leave --recreate out")


def replay_letters(
    asked: "Asked",
    engine: "Engine",
    index: str,
    pipeline: "Pipeline",
    *,
    dead_letters: str,
    **options: Any,  # noqa: ANN401 - of the run
) -> "Summary":
    """Index the documents of a dead-letter file with a progress bar; the file keeps what fails again."""
    from shinglefold.cli.framework.progress import progress_bar
    from shinglefold.maintenance import ForeignFile, retry

    with progress_bar("replaying") as bar:
        try:
            return retry(engine, index, dead_letters, pipeline, progress=indexing_progress(bar), **options)
        except ForeignFile as error:
            indexed = asked.hints.command("index", dead_letters, index=index)
            raise ForeignFile(f"{error}; documents are indexed with: {indexed}") from error


def indexing_progress(bar: Callable[[float, str], None]) -> Callable[["Progress"], None]:
    """Return what shows the progress of indexing on a bar."""

    def report(progress: "Progress") -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        bar(progress.fraction, f"{progress.indexed:,} indexed{failed}")

    return report
