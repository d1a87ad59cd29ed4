"""``shinglefold add INDEX FILE``: documents into an index, as far as they resemble nothing stored."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.command import DONE, FAILED, PARTLY, Invocation, command
from shinglefold.cli.options import NumberRange, engine_option, verify_options
from shinglefold.cli.output import printable, remark, write_json, write_line
from shinglefold.cli.sources import make_read_options, read_sources, reading_options

if TYPE_CHECKING:
    from shinglefold.cli.recipes import Asked
    from shinglefold.groups import Gate, Policy, Verdict
    from shinglefold.ingest import Record

#: Documents decided together.
_BATCH = 300
_SHOWN = 160


@command(
    examples="""
    shinglefold add articles new.jsonl
    shinglefold add articles new.jsonl --passages --json
    zcat feed.jsonl.gz | shinglefold add articles - --policy tag
    shinglefold add articles new.jsonl --policy cap --most 3 --scope host
    """
)
@click.argument("index", metavar="INDEX")
@click.argument("file", metavar="FILE")
@engine_option
@click.option(
    "--policy",
    type=click.Choice(["refuse", "tag", "cap"]),
    default="refuse",
    show_default=True,
    help="What is done with a document that resembles a stored one: refuse it, let it in with the number of "
    "the group, or let it in while the group has fewer than --most documents.",
)
@click.option(
    "--most", type=click.IntRange(1, 10_000), metavar="N", help="Documents of a group, with --policy cap."
)
@verify_options("a document", "shares a supershingle with a stored one")
@click.option(
    "--min-resemblance",
    type=NumberRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Estimated resemblance from which on two documents are alike, where signatures decide; by default "
    "the scheme's.",
)
@click.option(
    "--min-length-ratio",
    type=NumberRange(0, 1),
    metavar="SHARE",
    help="Similarity of lengths that documents which are alike must reach; by default the scheme's.",
)
@click.option(
    "--measure",
    type=click.Choice(["resemblance", "containment"]),
    default="resemblance",
    show_default=True,
    help="Containment: a text that holds another is alike, too.",
)
@click.option(
    "--scope",
    multiple=True,
    metavar="FIELD",
    help="Only documents with the same value of this field are alike; again for more.",
)
@click.option(
    "--min-characters", type=click.IntRange(0), metavar="N", help="Refuse documents with a shorter text."
)
@click.option(
    "--max-characters", type=click.IntRange(0), metavar="N", help="Refuse documents with a longer text."
)
@click.option("--passages", is_flag=True, help="Show what a refused document has in common with the stored.")
@reading_options
@click.pass_obj
def add(
    invocation: Invocation,
    /,
    *,
    index: str,
    file: str,
    engine: str | None,
    policy: str,
    most: int | None,
    passages: bool,
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None,
    **rules: Any,  # noqa: ANN401 - of the policy
) -> int:
    """Add documents to an INDEX, each decided at once against everything stored.

    FILE is read as by index; - is standard input. Many may add to an index at the same time. Exit code 3 says
    that some documents were not let in, 1 that none was.
    """
    from shinglefold.cli.stores import opened_store, pipeline_of
    from shinglefold.groups import Gate, Policy

    if set(index) & set("*?,"):
        raise click.UsageError(f"INDEX {index!r} may mean several: name one index, or an alias of one")
    if (most is None) == (policy == "cap"):
        raise click.UsageError("--policy cap wants --most, and no other policy does")
    chosen = Policy(policy, most=most or 1, **rules)  # type: ignore[arg-type]  # click knows the choices
    records = read_sources([file], make_read_options(format, id_field, encoding, header))
    asked = invocation.asked(index, engine)
    with _index_wanted(asked, groups=chosen.action != "refuse"), opened_store(asked) as store:
        pipeline, _ = pipeline_of(asked, invocation)
        with Gate(store.engine, index, chosen, pipeline=pipeline, seal=pipeline.tools.seal) as gate:
            told = list(_added(gate, records, passages))
    if invocation.json:
        write_json(_summary(index, chosen, told))
    else:
        _print(index, told)
    accepted = sum(one["status"] == "accepted" for one in told)
    if not told:
        remark("no documents found; check the source, or say its --format")
        return FAILED
    return DONE if accepted == len(told) else PARTLY if accepted else FAILED


@contextmanager
def _index_wanted(asked: "Asked", *, groups: bool) -> Iterator[None]:
    """Say how the index is made where there is none: a gate makes none, as it can't know the recipe meant."""
    from shinglefold.errors import IndexMissing

    try:
        yield
    except IndexMissing as error:
        make = asked.hints.command("setup", asked.index, groups=groups)
        told = str(error)
        raise IndexMissing(f"{told}{'' if told.endswith(('.', '?')) else '.'} To make it: {make}") from error


def _added(gate: "Gate", records: "Iterator[Record]", passages: bool) -> Iterator[dict[str, Any]]:
    while batch := list(islice(records, _BATCH)):
        given = [record.document for record in batch if record.document is not None]
        verdicts = iter(gate.add_all(given))
        for record in batch:
            if record.document is None:
                yield {"status": "failed", "reason": record.reason, "line": record.line}
            else:
                yield _told(gate, record, next(verdicts), passages)


def _told(gate: "Gate", record: "Record", verdict: "Verdict", passages: bool) -> dict[str, Any]:
    told = {**verdict.to_json(), "line": record.line}
    if passages and verdict.like is not None and record.document is not None:
        told["passages"] = gate.passages(record.document, verdict.like.id)
    return told


def _summary(index: str, policy: "Policy", told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts = {name: sum(one["status"] == name for one in told) for name in ("accepted", "refused", "failed")}
    return {"index": index, "policy": policy.action, "read": len(told), **counts, "documents": list(told)}


def _print(index: str, told: Sequence[dict[str, Any]]) -> None:
    for one in told:
        if one["status"] != "accepted":
            who = repr(one["_id"]) if "_id" in one else f"line {one['line']}"
            write_line(printable(f"{one['status']}: {who}: {one['reason']}"))
            for passage in one.get("passages", ()):
                write_line(
                    printable(f"  {passage['equal_tokens']} tokens: {_short(passage['member']['text'])}")
                )
    accepted = sum(one["status"] == "accepted" for one in told)
    grouped = sum(one["status"] == "accepted" and one.get("leader") is False for one in told)
    line = f"{accepted:,} of {len(told):,} added to {index}"
    write_line(line + (f", {grouped:,} of them to groups that were there" if grouped else ""))
    if replaced := sum(one.get("replaced", False) for one in told):
        have = "1 of them has" if replaced == 1 else f"{replaced:,} of them have"
        remark(f"note: {have} taken the place of a document with the same id")


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}…"
