"""``shinglefold explain ID ID``: why two indexed documents fold, or why they do not."""

from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import make_console, printable, write_json
from shinglefold.cli.options.definitions import engine_options, passages_option

if TYPE_CHECKING:
    from shinglefold.model.scheme import Scheme


@command(
    examples="""
    shinglefold explain ru-bridge-repair-1 ru-bridge-repair-3
    shinglefold explain page-17 page-18 --index site --json
    """
)
@click.argument("a", metavar="ID")
@click.argument("b", metavar="ID")
@engine_options
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD",
    help="Field whose text is aligned; repeat it for more. By default those with fingerprints.",
)
@passages_option
@click.pass_obj
def explain(
    invocation: Invocation,
    /,
    *,
    a: str,
    b: str,
    index: str,
    engine: str | None,
    fields: tuple[str, ...],
    passages: int,
) -> int:
    """Tell why two indexed documents fold, or why not.

    Shows scheme and language, the shared supershingles, the estimated resemblance with its error, the
    verdict of a search, and the passages that match.
    """
    from shinglefold.canon import Canonicalizer
    from shinglefold.cli.render.side_by_side import passage_json, print_passages
    from shinglefold.cli.session.open_index import opened_store, stored_hit
    from shinglefold.cli.session.seal import seal_of_index
    from shinglefold.rerank.explanation.stored_pair import explain_pair
    from shinglefold.rerank.request.field_check import check_fields

    if not (a and b):
        raise click.UsageError("an ID is empty: name two documents")
    asked = invocation.asked(index, engine)
    with opened_store(asked) as store:
        check_fields(store.mappings.values(), index, fields, "--field")
        scheme, seal = store.scheme, seal_of_index(asked, store.recipe)
        one = stored_hit(store, asked, a, invocation.arguments)
        other = stored_hit(store, asked, b, invocation.arguments)
    canonicalizer = Canonicalizer.of(scheme)
    found = explain_pair(
        (one, other), scheme, canonicalizer, store.field, fields or store.recipe.fields, seal=seal
    )
    if invocation.json:
        matched = [passage_json(passage, *found.texts) for passage in found.passages]
        write_json({**found.told, "passages": matched})
        return DONE
    console = make_console()
    for line in lines(found.told, scheme):
        console.print(line)
    console.print()
    print_passages(console, found.passages, found.texts, (a, b), passages)
    return DONE


def lines(told: dict[str, Any], scheme: "Scheme") -> list[str]:
    """Return an explanation as lines, the verdict last."""
    one, other = told["a"], told["b"]
    keywords = f"{len(told['shared'])} of {scheme.sketch.groups} shared {' '.join(told['shared'])}".rstrip()
    shown = [
        f"A  {printable(one['id'])}: {one['lang']}, {one['shingles']:,} shingles",
        f"B  {printable(other['id'])}: {other['lang']}, {other['shingles']:,} shingles",
        f"scheme            {told['scheme']}",
        f"same canonical text: {'yes' if told['same_text'] else 'no'}",
        f"supershingles     {keywords}",
    ]
    if told["estimate"] is None:
        shown.append("resemblance       no estimate: too few shingles for a signature")
    else:
        made = told["estimate"]
        shown.append(
            f"resemblance       {made['resemblance']:.3f} ± {made['standard_error']:.3f} by estimate"
        )
    shown.append(f"length ratio      {told['length_ratio']:.3f}, needed {scheme.decision.min_length_ratio}")
    shown.append(f"edit similarity   {_similar(told['text'])}")
    needed = f"estimate needed {scheme.decision.min_resemblance}"
    return [
        *shown,
        f"verdict: {_verdict(told['folds'])} ({needed})",
        f"by text: {_verdict(told['text']['folds'])} ({_by_text(told['text'], needed)})",
    ]


def _similar(text: dict[str, Any]) -> str:
    if text["similarity"] is None:
        return "not told: a text is missing, or has over 20,000 words"
    return f"{text['similarity']:.3f} of the words as written"


def _by_text(text: dict[str, Any], needed: str) -> str:
    """Say what decides where texts do: of pairs beyond doubt the signature."""
    if text["decided"]:
        anywhere = (1 + text["needed"]) / 2
        return f"edit similarity needed {text['needed']}, or {anywhere:.2g} of the tokens anywhere"
    if text["asked"]:
        return f"the texts can't be asked; {needed}"
    return f"the signatures leave no doubt; {needed}"


def _verdict(folds: bool) -> str:
    return "they fold" if folds else "they do not fold"
