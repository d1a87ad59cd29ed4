"""``shinglefold index SOURCE…``: documents into an index, with their fingerprints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.shared.definitions import (
    content_options,
    engine_options,
    fields_option,
    html_option,
    pipeline_option,
    preset_option,
    verify_by_options,
    workers_option,
)
from shinglefold.cli.shared.next_commands import argument_to_option
from shinglefold.cli.shared.output import (
    progress_bar,
    progress_reporter,
    remark,
    warn,
    write_json,
    write_line,
)
from shinglefold.cli.shared.run_summary import (
    id_warnings,
    index_exit_code,
    index_warnings,
    page_notes,
    replay_command,
    retry_command,
    summary_lines,
)
from shinglefold.cli.shared.sources import (
    are_pages,
    check_dead_letters,
    make_read_options,
    read_sources,
    reading_notes,
    reading_options,
    refuse_index,
    routing_option,
    skipped_counts,
)
from shinglefold.errors import ConfigError, EngineError, InputError

if TYPE_CHECKING:
    from shinglefold.cli.commands.indexing.new_index import ReplacedIndex
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.contracts.engine import Engine
    from shinglefold.grouping.numbering import Numbering
    from shinglefold.grouping.rules import Rules
    from shinglefold.ingest import Pipeline
    from shinglefold.ingest.readers.record import ReadOptions, Record
    from shinglefold.ingest.writing.accounting import Summary
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
    help="Rebuild the index: build a new one, and swap it with the old one when it is complete.",
)
@pipeline_option("the index's, or that for pages")
@fields_option("Field with text for the fingerprint", "title and body")
@click.option(
    "--mapping", metavar="FILE", help="Types of fields of a new index, as JSON: the properties of a mapping."
)
@click.option(
    "--groups",
    is_flag=True,
    help="Give each document the number of its group. The index keeps this setting.",
)
@verify_by_options("a document", "shares a supershingle with the leader of a group")
@click.option(
    "--passages",
    is_flag=True,
    help="Store what shinglefold matches finds passages by. The index keeps this setting.",
)
@reading_options
@html_option
@routing_option
@click.option(
    "--dead-letters", metavar="FILE", help="File that failed documents are appended to, for --replay."
)
@click.option(
    "--replay",
    is_flag=True,
    help="Index the documents of a dead-letter file again; it keeps those that fail again.",
)
@click.option(
    "--dry-run", is_flag=True, help="Write nothing: print what the pipeline makes of each document, as JSON."
)
@click.option("--verbose", is_flag=True, help="With --dry-run: the document after every step.")
@preset_option
@content_options
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
    replay: bool,
    dead_letters: str | None,
    dry_run: bool,
    verbose: bool,
    workers: int | None,
    mapping: str | None,
    groups: bool,
    verify: str | None,
    min_similarity: float | None,
    passages: bool,
    format: str,  # noqa: A002
    id_field: str,
    routing_field: str,
    encoding: str,
    header: bool | None,
    html: bool,
    **flags: Any,  # noqa: ANN401 - of Target
) -> int:
    """Index documents with their fingerprints.

    SOURCE is JSONL or CSV (also .gz), an HTML or text file, a folder of such files, or - for standard input.
    A missing index is made. Exit code 3 says that some documents failed.
    """
    from shinglefold.api.index_recipe import search_canonicalizer
    from shinglefold.cli.commands.indexing.new_index import (
        ReplacedIndex,
        leftovers_of_index,
        read_replaced_index,
    )
    from shinglefold.cli.shared.open_index import (
        add_passages,
        load_lexicon,
        pipeline_for_index,
        save_lexicon,
    )
    from shinglefold.engines import open_engine
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.ingest.pipeline.steps import raw_fields, source_fields, stripped_fields
    from shinglefold.ingest.processors.texts import NeverDiffer
    from shinglefold.ingest.writing.target_index import rebuild

    _check_options(dead_letters, replay=replay, recreate=recreate, dry_run=dry_run, verbose=verbose)
    target = invocation.target(index, engine, **flags)
    replaying = partial(replay_command, target)
    _check_sources(invocation, sources, replay=replay)
    check_dead_letters(dead_letters, sources, replaying(dead_letters or ""))
    options = make_read_options(format, id_field, encoding, header, html)
    types = _field_types(target, mapping, recreate=recreate)
    records = iter(()) if replay else read_sources(sources, options, replaying)
    fresh = recreate or (dry_run and bool(target.pipeline))
    pages = not replay and are_pages(sources, options)
    chosen, recipe = pipeline_for_index(target, invocation, fresh=fresh, pages=pages)
    if dry_run:
        return _simulate(sources, records, chosen, options, verbose=verbose)
    if passages and not recipe.passages:
        chosen, recipe = add_passages(target, chosen, recipe, fresh=recreate)
    numbered = groups or recipe.groups
    _check_groups(target, recipe, wanted=groups and not recreate)
    rules = _group_rules(verify, min_similarity, numbered=numbered)
    replaced, leftovers = ReplacedIndex(), []
    if recreate:
        replaced = read_replaced_index(target, recipe, numbered=numbered)
        leftovers = leftovers_of_index(target)
    recipe = replace(recipe, grouping=recipe.grouping or replaced.grouping)
    watch = FieldWatch(
        raw_fields(chosen.steps, recipe.field),
        sources=source_fields(chosen.steps),
        stripped=stripped_fields(chosen.steps),
        facts=NeverDiffer.parse(recipe.never_differ).fields,
        routing=routing_field,
    )
    canonicalizer = chosen.tools.canonicalizer
    load_lexicon(canonicalizer, target.settings)
    opened = open_engine(target.where, search_canonicalizer(recipe.scheme))
    build = partial(
        _write_index,
        engine=opened,
        target=target,
        pipeline=chosen,
        recipe=recipe,
        rules=rules if numbered else None,
        mapping=mapping,
        records=watch.watch(records),
        usual={id_field: {"type": "keyword"}} if id_field and "." not in id_field else {},
        replaced=replaced,
        properties={**replaced.scope_properties, **types},
        dead_letters=sources[0] if replay else dead_letters,
        replayed=options if replay else None,
        workers=target.settings.workers if workers is None else workers,
        routing_field=routing_field,
    )
    try:
        summary = rebuild(opened, index, build) if recreate else build(index)
        retry = retry_command(
            target, opened, summary, mapping=mapping, groups=groups, passages=passages,
            id_field=id_field or None, routing_field=routing_field or None, verify=verify,
            min_similarity=None if min_similarity is None else str(min_similarity),
        )  # fmt: skip
    finally:
        unclosed = _close(opened)
    summary = replace(summary, stopped=target.hints.complete(summary.stopped or unclosed))
    # An interrupted run may have been learning a word.
    if not summary.stopped:
        save_lexicon(canonicalizer, target.settings)
    summary = replace(
        summary,
        counts={**summary.counts, **skipped_counts(options)},
        notes=(*summary.notes, *page_notes(sources, options, summary)),
    )
    warnings = [
        *leftovers,
        *index_warnings(target, chosen, recipe, watch, summary, arguments=invocation.arguments),
        *id_warnings(invocation, watch),
        *(replaced.losses if summary.made else ()),
    ]
    _report(invocation, summary, retry, warnings)
    return index_exit_code(summary, watch, named=bool(target.fields))


def _check_options(
    dead_letters: str | None, *, replay: bool, recreate: bool, dry_run: bool, verbose: bool
) -> None:
    """Refuse options that make no sense together."""
    if verbose and not dry_run:
        raise click.UsageError("--verbose shows the steps of a dry run: add --dry-run, or leave it out")
    if replay and dead_letters is not None:
        raise click.UsageError("--replay keeps what fails again in its file: leave --dead-letters out")
    if replay and (recreate or dry_run):
        wrong = "--recreate" if recreate else "--dry-run"
        raise click.UsageError(f"--replay adds to an index: leave {wrong} out")


def _check_sources(invocation: Invocation, sources: Sequence[str], *, replay: bool) -> None:
    """Refuse an index that is named as the last source, and several files of dead letters."""
    if not replay:
        if len(sources) > 1:
            meant = partial(argument_to_option, invocation.arguments, "index", flag="--index")
            refuse_index(sources[-1], lambda name: f"If {name!r} is the index: {meant(name)}")
        return
    if len(sources) != 1 or sources[0] == "-":
        raise click.UsageError("--replay takes one dead-letter file")


def _group_rules(verify: str | None, min_similarity: float | None, *, numbered: bool) -> "Rules":
    """Return the rules for groups from ``--verify`` and ``--min-similarity``.

    Raises:
        UsageError: one of them is given, and no groups are numbered.
    """
    from shinglefold.grouping.rules import Rules

    given = {"--verify": verify, "--min-similarity": min_similarity}
    names = [name for name, value in given.items() if value is not None]
    if names and not numbered:
        decide = "decides" if len(names) == 1 else "decide"
        raise click.UsageError(
            f"{' and '.join(names)} {decide} on groups, and none are numbered: add --groups"
        )
    return Rules(verify=verify, min_similarity=min_similarity)  # type: ignore[arg-type]  # click knows the choices


def _field_types(target: "Target", mapping: str | None, *, recreate: bool) -> dict[str, Any]:
    """Return the types of fields in the file of ``--mapping``; an existing index must have the same."""
    from shinglefold.cli.commands.indexing.new_index import check_types, read_properties

    types = read_properties(mapping)
    if mapping and not recreate:
        check_types(target, types, mapping)
    return types


def _simulate(
    sources: Sequence[str],
    records: "Iterable[Record]",
    pipeline: "Pipeline",
    options: "ReadOptions",
    *,
    verbose: bool,
) -> int:
    """Print what a pipeline makes of documents, in the shape of ``_ingest/pipeline/_simulate``."""
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
    results = pipeline.simulate(samples, verbose=verbose)["docs"] if samples else []
    write_json({"docs": [*results, *unreadable]})
    warn(reading_notes(options), "note")
    return PARTLY if unreadable or any(map(_is_failed, results)) else DONE


def _is_failed(result: Mapping[str, Any] | None) -> bool:
    steps = (result or {}).get("processor_results", ())
    return result is not None and ("error" in result or bool(steps and "error" in steps[-1]))


def _check_groups(target: "Target", recipe: "Recipe", *, wanted: bool) -> None:
    """Refuse to number the groups of an existing index without numbers: its documents would have none."""
    from shinglefold.cli.shared.recipe import is_set_up

    if recipe.groups or not wanted or not is_set_up(target):
        return
    change = target.command("setup", groups=True)
    raise ConfigError(
        f"index {target.index!r} numbers no groups. To number them from now on: {change}; "
        "or rebuild the index: --recreate"
    )


def _write_index(
    name: str,
    *,
    engine: "Engine",
    target: "Target",
    pipeline: "Pipeline",
    recipe: "Recipe",
    rules: "Rules | None",
    mapping: str | None,
    records: Any,  # noqa: ANN401 - as they are read
    usual: dict[str, Any],
    replaced: "ReplacedIndex",
    properties: dict[str, Any],
    replayed: "ReadOptions | None",
    **options: Any,  # noqa: ANN401 - of the run
) -> "Summary":
    """Index documents under a name.

    Args:
        rules: the rules by which group numbers are assigned; None assigns none.
        usual: types of fields; templates, ``replaced`` and ``properties`` override them.
        replayed: how to read ``dead_letters``, which are then indexed instead of ``records``.
    """
    from shinglefold.cli.commands.indexing.new_index import explain_mapping_errors, template_defaults
    from shinglefold.grouping.numbering import Numbering
    from shinglefold.ingest import index_documents
    from shinglefold.ingest.index_mapping import usual_properties
    from shinglefold.maintenance.retry import ForeignFile, retry

    if not engine.index_exists(name):
        settings, templated = template_defaults(engine, name)
        defaults = {**usual_properties(recipe), **usual, **replaced.properties}
        untemplated = {field: node for field, node in defaults.items() if field not in templated}
        properties = {**untemplated, **properties}
        options["settings"] = {at: one for at, one in replaced.settings.items() if at not in settings}

    numbering = None
    if rules is not None:
        numbering = Numbering(engine, name, recipe, pipeline.tools.seal, rules)
    options |= {"field": recipe.field, "groups": numbering, "properties": properties, "noted": recipe}
    with (
        explain_mapping_errors(mapping),
        _warn_of_concurrent_numbering(target, numbering),
        progress_bar("indexing" if replayed is None else "replaying") as bar,
    ):
        options["progress"] = progress_reporter(bar, "indexed")
        if replayed is None:
            return index_documents(engine, name, records, pipeline, **options)
        letters = options.pop("dead_letters")
        try:
            return retry(engine, name, letters, pipeline, reading=replayed, **options)
        except ForeignFile as error:
            indexed = target.hints.command("index", letters, index=name)
            raise ForeignFile(f"{error}; documents are indexed with: {indexed}") from error


@contextmanager
def _warn_of_concurrent_numbering(target: "Target", numbering: "Numbering | None") -> Iterator[None]:
    """Warn at the end if another run numbered groups at the same time, with the command that mends them."""
    try:
        yield
    finally:
        if numbering is not None:
            numbering.marker.end()
            if numbering.marker.conflict:
                remark(
                    f"warning: another run numbered groups of {target.index!r} at the same time, or was cut "
                    "short within the last minute; copies that came by both may be in two groups. "
                    f"To number them anew: {target.hints.command('regroup', target.index)}; several at once "
                    f"may use: {target.hints.command('add', 'FILE', index=target.index, policy='tag')}"
                )


def _close(engine: "Engine") -> str:
    """Close an engine; return the error, if any, so that the summary is still printed."""
    try:
        engine.close()
    except EngineError as error:
        return str(error)
    return ""


def _report(invocation: Invocation, summary: "Summary", retry: str, warnings: Sequence[str]) -> None:
    if invocation.json:
        invocation.write_summary({**summary.to_json(), "warnings": list(warnings)})
    else:
        for line in summary_lines(summary, invocation.hints(), retry):
            write_line(line)
    warn(warnings)
