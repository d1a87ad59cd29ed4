"""``shinglefold setup [INDEX…]``: mappings and templates, so that indices take fingerprints."""

from typing import TYPE_CHECKING

import click

from shinglefold.cli.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.options import chosen_scheme, engine_option, preset_option
from shinglefold.cli.output import printable, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.ingest.maintenance import Plan


@command(
    examples="""
    shinglefold setup pages --dry-run
    shinglefold setup pages news
    """
)
@click.argument("indices", nargs=-1, metavar="[INDEX]...")
@engine_option
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Pattern of indices to come, such as 'news-*': they get an index template; again for more.",
)
@click.option(
    "--name", default="shinglefold", show_default=True, metavar="NAME", help="Name of the templates."
)
@click.option(
    "--priority",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Priority of the index template among others that match.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@preset_option
@click.pass_obj
def setup(
    invocation: Invocation,
    /,
    *,
    indices: tuple[str, ...],
    engine: str | None,
    patterns: tuple[str, ...],
    name: str,
    priority: int,
    dry_run: bool,
    preset: str | None,
) -> int:
    """Set up indices for fingerprints: their mappings, and templates for indices to come.

    An INDEX that is missing is made. What is there already stays as it is, so a second run changes nothing.
    Exit code 3 says that something can't be changed in place.
    """
    from contextlib import closing

    from shinglefold.cli.stores import search_canonicalizer
    from shinglefold.engines import open_engine
    from shinglefold.ingest.maintenance import SetupRequest, carry_out, make_plan

    settings = invocation.settings()
    scheme = chosen_scheme(invocation, preset)
    request = SetupRequest(scheme, settings.field, indices, patterns, name, priority)
    with closing(open_engine(engine or settings.data_dir, search_canonicalizer(scheme))) as opened:
        plan = make_plan(opened, request)
        if not dry_run:
            carry_out(opened, plan)
    if invocation.json:
        write_json({**plan.to_json(), "done": not dry_run})
    else:
        for line in _lines(plan, dry_run):
            write_line(printable(line))
    return PARTLY if plan.problems else DONE


def _lines(plan: "Plan", dry_run: bool) -> list[str]:
    lines = []
    for change in plan.changes:
        lines.append(f"{change.kind} {change.name}{' (new)' if change.new else ''}:")
        lines += [f"  {line}" for line in change.lines]
    for place, problems in plan.problems.items():
        lines += [f"{place}: {problem}; this can't be changed in place" for problem in problems]
    lines += [
        f"{index}: {count:,} documents have no fingerprint of this scheme; then: shinglefold backfill {index}"
        for index, count in plan.backfills.items()
    ]
    if not plan.changes:
        return [*lines, "nothing to change"]
    return [*lines, "nothing was changed: this was a dry run" if dry_run else "done"]
