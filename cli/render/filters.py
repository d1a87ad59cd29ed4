"""What ``--filter FIELD=VALUE`` says."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from shinglefold.cli.session.open_index import Store


def checked_terms(store: "Store", index: str, filters: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return filters as queries.

    Raises:
        UsageError: one is no field with a value.
        ConfigError: the index has no such field.
    """
    from shinglefold.rerank.request.field_check import check_fields

    named = [_parted(one) for one in filters]
    check_fields(store.mappings.values(), index, [name for name, _ in named], "--filter")
    return tuple({"term": {name: value}} for name, value in named)


def _parted(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--filter {given!r}: expected FIELD=VALUE")
    return name, value
