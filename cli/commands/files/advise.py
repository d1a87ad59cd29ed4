"""``shinglefold advise …``: compute a layout, a threshold or a width."""

import sys
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.commands.files.collection import collection_options, finish, open_collection
from shinglefold.cli.shared.command import DONE, CommandGroup, Invocation, command, common_options
from shinglefold.cli.shared.definitions import NumberRange
from shinglefold.cli.shared.next_commands import Hints, chain, repeat_command
from shinglefold.cli.shared.output import print_table, printable, write_json, write_line
from shinglefold.errors import ConfigError, Value

if TYPE_CHECKING:
    from shinglefold.cli.commands.files.collection import Collection
    from shinglefold.offline.dedupe.link import Rows
    from shinglefold.relatives.fingerprints import Width
    from shinglefold.sketch.layout_advice import Advice, Requirements

Point = tuple[float, float]
_BAR = 40
#: The most shingles and documents: any count that a computer holds.
_MOST = 10**18


def bars(points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each point: the resemblance, a bar for the probability, the probability."""
    for resemblance, probability in points:
        bar = "█" * round(probability * _BAR)
        yield f"{resemblance:5.2f}  {bar:<{_BAR}}  {probability:.4f}"


@click.group(
    "advise",
    cls=CommandGroup,
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
    type=click.IntRange(2, _MOST),
    required=True,
    metavar="N",
    help="Distinct shingles that must get different fingerprints.",
)
@click.option(
    "--probability",
    type=NumberRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    metavar="P",
    help="Acceptable probability of any collision.",
)
@click.pass_obj
def width(invocation: Invocation, /, *, shingles: int, probability: float) -> int:
    """Compute how many bits a fingerprint needs for a number of shingles.

    Shows for each width how many shingles collide with a probability of .01, .1 and .4, how many pairs of
    yours are expected to collide, and the narrowest width that will do.
    """
    from shinglefold.relatives.fingerprints import (
        PROBABILITIES,
        birthday_table,
        collision_probability,
        expected_collisions,
        width_for,
    )

    rows = birthday_table()
    odds = {
        row.bits: (expected_collisions(shingles, row.bits), collision_probability(shingles, row.bits))
        for row in rows
    }
    bits = width_for(shingles, probability)
    if invocation.json:
        write_json(
            {
                "shingles": shingles,
                "advised_bits": bits,
                "widths": [_json(row, *odds[row.bits]) for row in rows],
            }
        )
        return DONE
    head = ("bits", "√2^bits", *(f"P = {chance:g}" for chance in PROBABILITIES), "collisions", "P of any")
    print_table(head, [_cells(row, *odds[row.bits]) for row in rows])
    write_line(
        f"\n{shingles:,} shingles: {bits} bits are enough, "
        f"a collision has a probability of {odds[bits][1]:.2g} (at most {probability:g} is accepted)"
    )
    return DONE


def _json(row: "Width", collisions: float, chance: float) -> dict[str, object]:
    from shinglefold.relatives.fingerprints import PROBABILITIES

    most = {str(chance): int(count) for chance, count in zip(PROBABILITIES, row.shingles, strict=True)}
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


_SHARE = NumberRange(0, 1, min_open=True, max_open=True)


@command(
    "layout",
    examples="""
    shinglefold advise layout --changed 10 --of 500 --documents 5000000
    shinglefold advise layout --resemblance 0.8 --miss 0.01
    """,
)
@click.option(
    "--resemblance", type=_SHARE, metavar="SHARE", help="Resemblance of the pairs to find; by default .61."
)
@click.option(
    "--changed",
    type=click.IntRange(1),
    metavar="N",
    help="Instead of a resemblance: words that an editor replaces here and there …",
)
@click.option("--of", type=click.IntRange(2, 10**9), metavar="N", help="… in a text of this many words.")
@click.option(
    "--width",
    type=click.IntRange(1, 10),
    metavar="W",
    help="Words of a shingle; by default 2.",
)
@click.option(
    "--miss",
    type=_SHARE,
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Share of the pairs at this resemblance that may be missed.",
)
@click.option(
    "--documents",
    type=click.IntRange(2, _MOST),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Documents of the collection.",
)
@click.option(
    "--near-share",
    type=NumberRange(0, 1),
    default=1e-5,
    show_default=True,
    metavar="SHARE",
    help="Share of all pairs with half this resemblance, such as pages of one site or letters from one"
    " template.",
)
@click.option(
    "--strangers",
    type=NumberRange(0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="N",
    help="Acceptable number of candidates that are not copies, per document.",
)
@click.pass_obj
def layout(
    invocation: Invocation,
    /,
    *,
    resemblance: float | None,
    changed: int | None,
    of: int | None,
    width: int | None,
    **given: Any,  # noqa: ANN401 - what Requirements has
) -> int:
    """Choose the preset and the thresholds for the pairs that you want to find.

    Give the resemblance of the pairs to find, or the changes of an editor, the share that may be missed, and
    the acceptable number of false candidates. Shows the commands that apply them, the cost, and the
    probability that a pair of each resemblance is found.
    """
    from shinglefold.sketch.layout_advice import Requirements, resemblance_after, width_for

    words = 2 if width is None else width
    if (changed is None) != (of is None):
        raise click.UsageError("--changed and --of go together: words replaced, of how many")
    if changed is not None and of is not None:
        if resemblance is not None:
            raise click.UsageError("--resemblance, or --changed and --of: one of them says what is wanted")
        if changed >= of:
            raise click.UsageError(f"--changed {changed} --of {of}: nothing would be left")
        resemblance = resemblance_after(changed / of, words)
    needs = Requirements(**given) if resemblance is None else Requirements(resemblance=resemblance, **given)
    closer = "raise --resemblance" if changed is None else "lower --changed"
    preset, advice = _choose(needs, words, invocation.arguments, closer)
    widest = None if changed is None or of is None else width_for(changed / of, Requirements().resemblance)
    points = list(zip(*(column.tolist() for column in advice.curve()), strict=True))
    summary = _summary(preset, advice, words, needs.resemblance, widest)
    commands = _commands(invocation.hints(), preset, advice)
    if invocation.json:
        write_json(
            summary
            | {"commands": commands}
            | {"curve": [{"resemblance": round(x, 2), "found": round(y, 6)} for x, y in points]}
        )
        return DONE
    print_table(
        ("", ""), [(_LABELS[name], str(summary[name])) for name in _LABELS if summary[name] is not None]
    )
    write_line("\nto apply it to files, or to an index:")
    for one in commands:
        write_line(f"  {one}")
    write_line("\nresemblance, and how probably such a pair is found")
    for line in bars(points):
        write_line(line)
    return DONE


def _choose(needs: "Requirements", width: int, arguments: Sequence[str], closer: str) -> tuple[str, "Advice"]:
    """Return the preset that meets the requirements.

    Args:
        closer: the option that asks for pairs which are more alike.

    Raises:
        ConfigError: none does; the message has the command that asks for what one of them can do.
    """
    from shinglefold.sketch.layout_advice import choose_layout, preset_widths

    if width not in (widths := preset_widths()):
        known = ", ".join(map(str, widths))
        raise ConfigError(f"--width {width}: the presets have shingles of {known} words")
    found = choose_layout(needs, width)
    if found.layout is not None:
        return found.layout
    relaxed = {"strangers": found.strangers, "miss": found.miss}
    changed = " or ".join(
        repeat_command(arguments, **{name: f"{value:.6g}"})
        for name, value in relaxed.items()
        if value is not None
    )
    raise ConfigError(
        f"no preset finds {1 - needs.miss:.2%} of the pairs at {needs.resemblance:.3g} with at most "
        f"{needs.strangers:g} strangers a document"
        + (f". What presets do: {changed}" if changed else f": {closer}")
    )


def _commands(hints: Hints, preset: str, advice: "Advice") -> list[str]:
    """Return the commands that apply an advice, to files and to an index."""
    least: dict[str, Value] = {"min_resemblance": f"{advice.threshold:.2f}", "min_shared": advice.min_shared}
    index = hints.command("index", "FILE", preset=preset)
    return [
        hints.command("groups", "FILE", preset=preset, **least),
        chain([index, hints.command("search", "WORDS", **least)]),
    ]


def _summary(
    preset: str, advice: "Advice", width: int, resemblance: float, widest: int | None
) -> dict[str, Any]:
    return {
        "preset": preset,
        "resemblance": round(resemblance, 4),
        "width": width,
        "widest": widest,
        "groups": advice.groups,
        "group_size": advice.group_size,
        "min_shared": advice.min_shared,
        "values": advice.values,
        "bits": advice.bits,
        "threshold": round(advice.threshold, 3),
        "error": round(advice.error, 4),
        "found": round(advice.found, 4),
        "strangers": round(advice.strangers, 4),
        "false_folds": float(f"{advice.false_folds:.3g}"),
        "hash_bits": advice.hash_bits,
        "keyword_bits": advice.keyword_bits,
        "bytes": advice.bytes,
    }


_LABELS = {
    "preset": "preset",
    "resemblance": "resemblance wanted",
    "width": "words a shingle (w)",
    "widest": "widest w at which such copies still reach .61",
    "groups": "supershingles (M)",
    "group_size": "values in each (N)",
    "min_shared": "to be shared (k)",
    "values": "values of the signature (K)",
    "bits": "bits of each",
    "threshold": "threshold of the estimate",
    "error": "its standard error there",
    "found": "found of the pairs exactly there",
    "strangers": "strangers nominated a document",
    "false_folds": "false folds a document",
    "hash_bits": "bits a keyword needs",
    "keyword_bits": "bits a keyword has",
    "bytes": "bytes a document, unindexed",
}


#: The thresholds of the table.
_THRESHOLDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@command(
    "sample",
    examples="""
    shinglefold advise sample articles.jsonl.gz
    shinglefold advise sample site/ --verify signature --nearest 20
    """,
)
@collection_options
@click.option(
    "--nearest",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Pairs to show on either side of the threshold, those nearest to it.",
)
@click.pass_obj
def sample(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    nearest: int,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Show how many of your documents fold at which threshold, and the pairs nearest to it.

    FILE is as for groups. Texts decide unless --verify signature says otherwise. The threshold of the pairs
    shown is --min-similarity or --min-resemblance.
    """
    with open_collection(invocation, sources, **given) as found:
        scheme = found.scheme
        decision = scheme.decision
        if decision.verify == "keywords":
            raise click.UsageError(
                "advise sample: keywords have no threshold; add --verify signature or text"
            )
        name = "min_similarity" if decision.verify == "text" else "min_resemblance"
        threshold = getattr(decision, name)
        rows = [_row(found, name, tried) for tried in sorted({*_THRESHOLDS, threshold})]
        near = _nearest(found, name, threshold, nearest)
        if invocation.json:
            documents = len(found.table)
            write_json({"documents": documents, "threshold": threshold, "tried": rows, "nearest": near})
        else:
            _print(rows, near, name, threshold, len(found.table))
        return finish(found)


def _print(
    rows: Sequence[dict[str, Any]],
    near: Sequence[dict[str, Any]],
    name: str,
    threshold: float,
    documents: int,
) -> None:
    cells = [
        (f"{row['at']:g}" + (" *" if row["at"] == threshold else ""), str(row["pairs"]), str(row["folded"]))
        for row in rows
    ]
    print_table((name, "pairs", "documents folded"), cells)
    write_line(f"\n* the threshold; documents: {documents:,}")
    if near:
        write_line("The pairs nearest to it:")
    for pair in near:
        write_line(f"{pair['alike']:.4f}\t{printable(pair['a'])}\t{printable(pair['b'])}")


def _pairs_at(found: "Collection", name: str, threshold: float) -> "Rows":
    import numpy as np

    from shinglefold.offline.dedupe.link import Linking
    from shinglefold.offline.dedupe.slots import LinkOptions

    scheme = found.scheme
    table = found.table.with_scheme(
        scheme.with_options(**{name: threshold, "verify": scheme.decision.verify})
    )
    # No limits, because a sample is small.
    every = LinkOptions(memory=sys.maxsize, most_shared=max(1, len(table)))
    return np.concatenate([*Linking(table, every).pairs()])


def _row(found: "Collection", name: str, threshold: float) -> dict[str, Any]:
    import numpy as np

    from shinglefold.sketch.clustering import leader_clusters

    pairs = _pairs_at(found, name, threshold)
    leaders = leader_clusters(pairs["a"].astype(np.int64), pairs["b"].astype(np.int64), len(found.table))
    return {"at": threshold, "pairs": len(pairs), "folded": sum(map(int.__ne__, leaders.tolist(), count()))}


def _nearest(found: "Collection", name: str, threshold: float, most: int) -> list[dict[str, Any]]:
    """Return the pairs on either side of the threshold, the most alike first."""
    if not most:
        return []
    pairs = _pairs_at(found, name, min(_THRESHOLDS[0], threshold))
    alike = pairs["similarity" if name == "min_similarity" else "resemblance"]
    rows = sorted(
        (float(one), a, b)
        for one, a, b in zip(alike.tolist(), pairs["a"].tolist(), pairs["b"].tolist(), strict=True)
        if one == one  # noqa: PLR0124 - NaN: a text is too long to compare
    )
    below = [row for row in rows if row[0] < threshold][-most:]
    above = [row for row in rows if row[0] >= threshold][:most]
    return [
        {"alike": round(one, 4), "a": found.names[a], "b": found.names[b]}
        for one, a, b in reversed([*below, *above])
    ]


advise.add_command(width)
advise.add_command(layout)
advise.add_command(sample)
