"""``shinglefold sweep INDEX``: the places that writers have left in an index that died at a gate."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.framework.output import printable, remark, write_json, write_line
from shinglefold.cli.options.definitions import engine_option

if TYPE_CHECKING:
    from shinglefold.grouping.gate.housekeeping import Placeholder

_SHOWN = 10


@command(
    examples="""
    shinglefold sweep articles --dry-run
    shinglefold sweep articles
    """
)
@click.argument("index", metavar="INDEX")
@click.option("--dry-run", is_flag=True, help="Show the places that are kept, and remove none.")
@engine_option
@click.pass_obj
def sweep(invocation: Invocation, /, *, index: str, dry_run: bool, engine: str | None) -> int:
    """Remove the places that dead writers left in an INDEX.

    A gate keeps the place of a document by an empty one while it decides, for some milliseconds. What a
    writer leaves that is killed is mostly cleared away by the next one that meets it; this clears away the
    rest, once its lease is over. Exit code 3 says that some could not be removed.
    """
    from shinglefold.cli.framework.next_commands import again
    from shinglefold.cli.session.open_index import opened_store
    from shinglefold.grouping.gate.housekeeping import SweepResult, placeholders
    from shinglefold.grouping.gate.housekeeping import sweep as run

    asked = invocation.asked(index, engine)
    with opened_store(asked) as store:
        swept = SweepResult() if dry_run else run(store.engine, index, store.field)
        kept = placeholders(store.engine, index, store.field)
    left = [place for place in kept if place.expired]
    if invocation.json:
        told = {
            "removed": swept.removed,
            "left": left,
            "kept": [place for place in kept if place not in left],
        }
        each = {name: [place.to_json() for place in several] for name, several in told.items()}
        write_json({"index": index, **each, "reasons": swept.reasons})
    else:
        shown, verb = (left, "found") if dry_run else (swept.removed, "removed")
        for line in _lines(index, shown, len(kept) - len(left), verb):
            write_line(printable(line))
    if dry_run or not left:
        return DONE
    why = "; ".join(swept.reasons) or "they were left meanwhile"
    remark(
        printable(f"{len(left):,} could not be removed: {why}; once mended: {again(invocation.arguments)}")
    )
    return PARTLY


def _lines(index: str, left: "Sequence[Placeholder]", alive: int, verb: str) -> Iterator[str]:
    places = "1 place" if len(left) == 1 else f"{len(left):,} places"
    yield f"{verb} {places} in {index} that dead writers have left"
    for place in left[:_SHOWN]:
        until = datetime.fromtimestamp(place.until / 1000, UTC)
        yield f"  {place.id}, kept until {until:%Y-%m-%d %H:%M:%S} UTC"
    if len(left) > _SHOWN:
        yield f"  and {len(left) - _SHOWN:,} more"
    if alive:
        yield f"{alive:,} kept by gates that decide now, or whose lease is not over yet: left alone"
