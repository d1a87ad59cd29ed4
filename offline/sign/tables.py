"""Tables that become one: of which columns, and of which types, so that no value changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.errors import ConfigError


def check_types(schemas: Mapping[str, Any]) -> None:
    """Refuse sources whose columns can't be those of one table as they are.

    Args:
        schemas: by the name of the source.

    Raises:
        ConfigError: some can't.
    """
    (first, schema), *others = schemas.items()
    for source, other in others:
        names = set(schema.names) ^ set(other.names)
        if names:
            lacking = source if (name := min(names)) in schema.names else first
            raise _refused(first, source, f"{lacking} has no [{name}]")
        for field in schema:
            kinds = field.type, other.field(field.name).type
            if _common(*kinds) is None:
                raise _refused(first, source, f"[{field.name}] is {kinds[0]} and {kinds[1]}")
        schema = common([schema, other])


def _refused(first: str, source: str, why: str) -> ConfigError:
    return ConfigError(
        f"{first} and {source} have different columns ({why}), of which no one table can be made: sign them "
        "into a file each, or add --only-ids"
    )


def common(schemas: Sequence[Any]) -> Any:  # noqa: ANN401 - pyarrow's
    """Return the schema of a table that holds what tables of these schemas hold."""
    first, *others = schemas
    for other in others:
        if other.equals(first):
            continue
        for number, field in enumerate(first):
            kind = _common(field.type, other.field(field.name).type)
            assert kind is not None
            first = first.set(number, field.with_type(kind).with_nullable(True))
    return first


def _common(one: Any, other: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return the type that holds the values of two as they are; None where there is none."""
    import pyarrow as pa

    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    whole = kinds.is_integer(one) and kinds.is_integer(other)
    if whole and pa.uint64() not in (one, other):
        return pa.int64()
    if kinds.is_floating(one) and kinds.is_floating(other):
        return pa.float64()
    return None


def _plain(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a type as one of the same values, which other writers would have taken."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)
