"""``shinglefold add FILE``: add the documents that are not near-duplicates of stored ones."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.shared.definitions import NumberRange, engine_options, html_option, verify_by_options
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import remark, warn, write_line, write_lines
from shinglefold.cli.shared.run_summary import (
    exit_code_of_run,
    replay_command,
    text_warnings,
    with_field_check,
)
from shinglefold.cli.shared.sources import (
    make_read_options,
    read_sources,
    reading_notes,
    reading_options,
    routing_option,
)
from shinglefold.errors import ShinglefoldError, counted

if TYPE_CHECKING:
    from shinglefold.grouping.gate.bulk_run import BulkRun

_PASSAGE_CHARACTERS = 160


@command(
    examples="""
    shinglefold add new.jsonl --index articles
    shinglefold add new.jsonl --index articles --passages --json
    zcat feed.jsonl.gz | shinglefold add - --index articles --policy tag
    shinglefold add new.jsonl --index articles --policy cap --most 3 --scope host
    """
)
@click.argument("file", metavar="FILE")
@engine_options
@click.option(
    "--policy",
    type=click.Choice(["refuse", "tag", "cap"]),
    default="refuse",
    show_default=True,
    help="What happens to a document that resembles a stored one: refuse it, tag it with the number of"
    " the group, or cap the group at --most documents.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="The most documents of a group, with --policy cap.",
)
@verify_by_options("a document", "shares a supershingle with a stored one")
@click.option(
    "--min-resemblance",
    type=NumberRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Estimated resemblance from which two documents are near-duplicates, if signatures decide; by"
    " default the scheme's.",
)
@click.option(
    "--min-length-ratio",
    type=NumberRange(0, 1),
    metavar="SHARE",
    help="Ratio of lengths that near-duplicates must reach; by default the scheme's.",
)
@click.option(
    "--measure",
    type=click.Choice(["resemblance", "containment"]),
    default="resemblance",
    show_default=True,
    help="With containment, a text that contains another is a near-duplicate, too.",
)
@click.option(
    "--scope",
    multiple=True,
    metavar="FIELD",
    help="Compare only documents with the same value of FIELD; repeat it for more.",
)
@click.option(
    "--min-characters", type=click.IntRange(0), metavar="N", help="Refuse documents with a shorter text."
)
@click.option(
    "--max-characters", type=click.IntRange(0), metavar="N", help="Refuse documents with a longer text."
)
@click.option(
    "--passages", is_flag=True, help="Show the passages that a refused document shares with stored ones."
)
@reading_options
@html_option
@routing_option
@click.pass_obj
def add(
    invocation: Invocation,
    /,
    *,
    file: str,
    index: str,
    engine: str | None,
    policy: str,
    most: int | None,
    passages: bool,
    format: str,  # noqa: A002
    id_field: str,
    routing_field: str,
    encoding: str,
    header: bool | None,
    html: bool,
    **rules: Any,  # noqa: ANN401 - of the policy
) -> int:
    """Add the documents that are not near-duplicates of stored ones.

    FILE is read as by index; - is standard input. Several processes may add to an index at the same time.
    Exit code 3 says that some documents were not added, or that an ingest pipeline of the server stored some
    without their fingerprint or with another text; 1 says that none was added.
    """
    from shinglefold.cli.shared.open_index import open_store, pipeline_for_index
    from shinglefold.grouping import Gate, Policy
    from shinglefold.grouping.gate.bulk_run import BulkRun
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.ingest.pipeline.steps import raw_fields, source_fields, stripped_fields
    from shinglefold.ingest.readers.record import with_routing

    if set(index) & set("*?,"):
        raise click.UsageError(f"--index {index!r} may mean several: name one index, or an alias of one")
    if (most is None) == (policy == "cap"):
        raise click.UsageError("--policy cap wants --most, and no other policy does")
    chosen = Policy(policy, most=most or 1, **rules)  # type: ignore[arg-type]  # click knows the choices
    target = invocation.target(index, engine)
    reading = make_read_options(format, id_field, encoding, header, html)
    records = read_sources([file], reading, lambda letters: replay_command(target, letters))
    run, watch = BulkRun(), FieldWatch((), routing=routing_field)
    with (
        _keep_result(run),
        open_store(target, groups=chosen.action != "refuse") as store,
    ):
        pipeline, recipe = pipeline_for_index(target, invocation)
        watch.fields = raw_fields(pipeline.steps, recipe.field)
        watch.sources = source_fields(pipeline.steps)
        watch.stripped = stripped_fields(pipeline.steps)
        with Gate(store.engine, index, chosen, pipeline=pipeline, seal=pipeline.tools.seal) as gate:
            run.add_all(gate, watch.watch(with_routing(one, routing_field) for one in records), passages)
    run.stopped = target.hints.complete(run.stopped)
    unsigned = watch.documents if watch.textless else 0
    stripping = repeat_command(invocation.arguments, html=True)
    warnings = list(text_warnings(watch, unsigned, False, target.take_text_from, stripping))
    warnings += [] if run.read_back is None else map(target.hints.complete, run.read_back.notes())
    if invocation.json:
        invocation.write_summary(
            {"index": index, "policy": chosen.action, **run.to_json(), "warnings": warnings}
        )
    else:
        _print(index, run, target.command("backfill"))
    warn(warnings)
    warn(reading_notes(reading), "note")
    code = _exit_code(run)
    if code == DONE and run.read_back is not None and run.read_back.otherwise:
        code = PARTLY
    return with_field_check(code, watch, named=False)


@contextmanager
def _keep_result(run: "BulkRun") -> Iterator[None]:
    """Store the error that ends a run in ``run.stopped``, so that the summary is printed.

    An error before the first document is raised, because there is nothing to sum up.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        run.stopped = str(error) or "interrupted"
    except ShinglefoldError as error:
        if not run.read:
            raise
        run.stopped = str(error)


def _exit_code(run: "BulkRun") -> int:
    rest = "; what was not added can be given again"
    if run.unknown:
        rest = f"; of {counted(run.unknown, 'document')} being decided, some may have been added{rest}"
    return exit_code_of_run(
        run.stopped, run.read, run.read - run.count("accepted"), run.count("accepted"), rest
    )


def _print(index: str, run: "BulkRun", backfill: str) -> None:
    write_lines(_rejections(run.verdicts))
    accepted = run.count("accepted")
    grouped = sum(one["status"] == "accepted" and one.get("leader") is False for one in run.verdicts)
    line = f"{accepted:,} of {run.read:,} added to {index}"
    write_line(line + (f", {grouped:,} of them to groups that were there" if grouped else ""))
    if replaced := sum(one.get("replaced", False) for one in run.verdicts):
        remark(f"note: {replaced:,} of them replaced a document with the same id")
    if run.stale:
        remark(
            f"note: {len(run.stale):,} stored documents have another text than their fingerprints, and so "
            f"decided nothing and took no place; to sign them again: {backfill}"
        )


def _rejections(verdicts: Sequence[dict[str, Any]]) -> Iterator[str]:
    failed = Counter(one["reason"] for one in verdicts if one["status"] == "failed")
    for one in verdicts:
        if one["status"] != "accepted":
            who = repr(one["_id"]) if "_id" in one else f"{one['source']}:{one['line']}"
            if one["status"] == "failed":
                count = failed.pop(one["reason"], 0)
                if not count:
                    continue
                who += f" and {count - 1:,} more (--json lists all)" if count > 1 else ""
            yield f"{one['status']}: {who}: {one['reason']}"
            for passage in one.get("passages", ()):
                yield f"  {passage['equal_tokens']} tokens: {_shorten(passage['member']['text'])}"


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _PASSAGE_CHARACTERS else f"{plain[:_PASSAGE_CHARACTERS]}…"
