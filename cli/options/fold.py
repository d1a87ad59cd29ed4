"""How to fold, on the command line: an option for each that a request has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.options.definitions import deciding_options, options

if TYPE_CHECKING:
    from shinglefold.rerank import FoldOptions

#: Folded hits fetched where all are to be printed.
_ALL = 1000
#: Begins a cursor.
NEW = "new"

fold_options = options(
    click.option("--no-fold", is_flag=True, help="Show every hit."),
    click.option(
        "--mode",
        type=click.Choice(["window", "native", "auto"]),
        help="Fold a window of hits (window, the default), let the engine collapse by the numbers of groups "
        "(native), or do that where it can (auto).",
    ),
    click.option("--show-duplicates", is_flag=True, help="Print the folded hits below the one shown."),
    click.option(
        "--representative",
        multiple=True,
        metavar="POLICY",
        help="Which member of a group to show: rank, newest:FIELD, oldest:FIELD, longest, shortest_url, "
        "https_first or prefer:FIELD=A,B; repeat it to break ties.",
    ),
    click.option(
        "--linkage",
        type=click.Choice(["leader", "connected"]),
        help="Members must match the hit shown (leader, the default) or any other member (connected).",
    ),
    deciding_options("hits", 0, "0 where a resemblance decides"),
    click.option(
        "--verify",
        type=click.Choice(["signature", "text"]),
        help="What decides: signatures (the default), or the texts of pairs of the page that these leave "
        "in doubt.",
    ),
    click.option(
        "--facts",
        type=click.Choice(["any", "numbers"]),
        help="numbers: hits whose words with digits differ do not fold; wants --verify text.",
    ),
    click.option("--across-languages", is_flag=True, help="Compare hits of different languages too."),
    click.option(
        "--scope",
        multiple=True,
        metavar="FIELD",
        help="Fold only hits with the same FIELD or, with FIELD:7d, with dates that close together.",
    ),
    click.option(
        "--members",
        type=click.IntRange(0),
        metavar="N",
        help="Folded hits to fetch with each hit; by default 5.",
    ),
    click.option(
        "--member-field",
        multiple=True,
        metavar="FIELD",
        help="Field of the folded hits to fetch; repeat it for more. By default those of the hits shown.",
    ),
    click.option(
        "--members-from",
        type=click.Choice(["results", "index"]),
        help="Where folded hits come from: the results (the default), or the whole index, so that copies are "
        "shown that the query did not find.",
    ),
    click.option("--window", type=click.IntRange(1), metavar="N", help="Hits read at first; by default 200."),
    click.option(
        "--max-window", type=click.IntRange(1), metavar="N", help="Hits read at most; by default 1000."
    ),
    click.option("--explain", is_flag=True, help="Show why each folded hit folds."),
    click.option("--passages", is_flag=True, help="Also show the passages that match."),
    click.option(
        "--passage-field",
        multiple=True,
        metavar="FIELD",
        help="Field whose text is aligned for passages; repeat it for more. By default those signed.",
    ),
    click.option(
        "--cursor",
        metavar="CURSOR",
        help='Page endlessly: begin with "new" and go on with the cursor printed below a page.',
    ),
    click.option("--renew", is_flag=True, help="Go on with a cursor whose point in time has ended."),
)


def folding_of(given: Mapping[str, Any], *, show_duplicates: bool) -> "FoldOptions":
    """Return the options of a request from those of the command.

    Raises:
        ConfigError: one of them is not valid.
    """
    from shinglefold.rerank import FoldOptions

    told = {name: value for name, value in given.items() if name not in _OWN and value not in (None, ())}
    size = _ALL if show_duplicates and given["members"] is None else given["members"]
    members: dict[str, Any] = {} if size is None else {"size": size}
    if given["member_field"]:
        members["_source"] = list(given["member_field"])
    if given["members_from"]:
        members["from"] = given["members_from"]
    told |= {"members": members, "fold": not given["no_fold"], "explain": _explain(given)}
    if given["cursor"] is not None:
        told["cursor"] = True if given["cursor"] == NEW else given["cursor"]
    return FoldOptions.parse(told)


_OWN = {
    "no_fold",
    "members",
    "member_field",
    "members_from",
    "explain",
    "passages",
    "passage_field",
    "cursor",
}


def _explain(given: Mapping[str, Any]) -> bool | dict[str, Any]:
    if given["passages"] or given["passage_field"]:
        return {"passages": True, "fields": list(given["passage_field"])}
    return bool(given["explain"])
