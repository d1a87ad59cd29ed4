"""By what rules a command that indexes numbers groups."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shinglefold.grouping.rules import Rules


def rules_of_groups(verify: str | None, min_similarity: float | None, *, numbered: bool) -> "Rules":
    """Return the rules that flags say.

    Raises:
        UsageError: they say some, and no groups are numbered.
    """
    from shinglefold.grouping.rules import Rules

    given = {"--verify": verify, "--min-similarity": min_similarity}
    told = [name for name, value in given.items() if value is not None]
    if told and not numbered:
        decide = "decides" if len(told) == 1 else "decide"
        raise click.UsageError(
            f"{' and '.join(told)} {decide} on groups, and none are numbered: add --groups"
        )
    return Rules(verify=verify, min_similarity=min_similarity)  # type: ignore[arg-type]  # click knows the choices
