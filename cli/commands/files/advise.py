"""``shinglefold advise …``: what to choose, computed from what a user can say."""

from typing import TYPE_CHECKING

import click

from shinglefold.cli.commands.files.advise_layout import layout
from shinglefold.cli.commands.files.advise_sample import sample
from shinglefold.cli.framework.command import DONE, Group, Invocation, command, common_options
from shinglefold.cli.framework.output import print_table, write_json, write_line
from shinglefold.cli.options.definitions import NumberRange

if TYPE_CHECKING:
    from shinglefold.relatives.collision_odds import Width


class _Advise(Group):
    """``advise --sample FILE`` is short for ``advise sample FILE``, as many will type it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the short form for the long one."""
        if args[:1] == ["--sample"] or (args[:1] and args[0].startswith("--sample=")):
            args = ["sample", *args[0].split("=", 1)[1:], *args[1:]]
        return super().parse_args(ctx, args)


@click.group(
    "advise",
    cls=_Advise,
    params=list(common_options()),
    examples="""
    shinglefold advise layout --changed 10 --of 500
    shinglefold advise sample articles.jsonl.gz
    shinglefold advise width --shingles 10376876
    """,
)
def advise() -> None:
    """Compute which layout, threshold or width to choose."""


@command(
    "width",
    examples="""
    shinglefold advise width --shingles 10376876
    shinglefold advise width --shingles 1000000000 --probability 0.1 --json
    """,
)
@click.option(
    "--shingles",
    type=click.IntRange(2),
    required=True,
    metavar="N",
    help="Distinct shingles that fingerprints are to keep apart.",
)
@click.option(
    "--probability",
    type=NumberRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    metavar="P",
    help="Probability of any collision at all that may be borne.",
)
@click.pass_obj
def width(invocation: Invocation, /, *, shingles: int, probability: float) -> int:
    """Tell how many bits a fingerprint needs for a number of shingles.

    Shows for each width how many shingles collide with a probability of .01, .1 and .4, how many pairs of
    yours are expected to collide, and the narrowest width that will do.
    """
    from shinglefold.relatives.collision_odds import (
        PROBABILITIES,
        collision_probability,
        expected_collisions,
        table,
        width_for,
    )

    rows = table()
    told = {
        row.bits: (expected_collisions(shingles, row.bits), collision_probability(shingles, row.bits))
        for row in rows
    }
    bits = width_for(shingles, probability)
    if invocation.json:
        write_json(
            {
                "shingles": shingles,
                "advised_bits": bits,
                "widths": [_json(row, *told[row.bits]) for row in rows],
            }
        )
        return DONE
    head = ("bits", "√2^bits", *(f"P = {chance:g}" for chance in PROBABILITIES), "collisions", "P of any")
    print_table(head, [_cells(row, *told[row.bits]) for row in rows])
    write_line(
        f"\n{shingles:,} shingles: {bits} bits are enough, "
        f"a collision has a probability of {told[bits][1]:.2g} (borne: {probability:g})"
    )
    return DONE


advise.add_command(width)
advise.add_command(layout)
advise.add_command(sample)


def _json(row: "Width", collisions: float, chance: float) -> dict[str, object]:
    from shinglefold.relatives.collision_odds import PROBABILITIES

    most = {str(borne): int(count) for borne, count in zip(PROBABILITIES, row.shingles, strict=True)}
    return {
        "bits": row.bits,
        "root": int(row.root),
        "shingles_at": most,
        "expected_collisions": collisions,
        "probability": chance,
    }


def _cells(row: "Width", collisions: float, chance: float) -> tuple[str, ...]:
    return (
        str(row.bits),
        f"{row.root:,.0f}",
        *(f"{count:,.0f}" for count in row.shingles),
        f"{collisions:,.3g}" if collisions < 100 else f"{collisions:,.0f}",
        f"{chance:.3g}",
    )
