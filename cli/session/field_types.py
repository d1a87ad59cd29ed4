"""The types of fields that ``index --mapping`` says."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shinglefold.cli.session.recipe import Asked

#: What a mapping may say beside its properties.
_NOT_TAKEN = (
    "dynamic",
    "dynamic_templates",
    "date_detection",
    "numeric_detection",
    "_source",
    "_routing",
    "runtime",
)


def read_properties(path: str | None) -> dict[str, Any]:
    """Return the properties in a file: a mapping, its ``properties``, or a whole index with ``mappings``.

    Raises:
        InputError: the file can't be read.
        ConfigError: it is no mapping.
    """
    from shinglefold.cli.options.json_files import read_json
    from shinglefold.errors import ConfigError

    if path is None:
        return {}
    found = read_json(path, "mapping")
    for name in ("mappings", "properties"):
        if isinstance(found, dict) and (
            beside := [key for key in _NOT_TAKEN if key in found and name in found]
        ):
            raise ConfigError(
                f"the mapping {path}: of a mapping the properties alone are taken, not {beside[0]!r}"
            )
        found = found.get(name, found) if isinstance(found, dict) else found
    if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
        raise ConfigError(f'the mapping {path} must hold fields, such as {{"price": {{"type": "float"}}}}')
    return found


def check_types(asked: "Asked", types: Mapping[str, Any], path: str) -> None:
    """Refuse types of fields for an index that is there and has others: no engine changes them in place.

    Raises:
        ConfigError: it has.
    """
    from shinglefold.engines import open_engine
    from shinglefold.errors import ConfigError

    with closing(open_engine(asked.where)) as engine:
        there = engine.all_mappings(asked.index).values() if engine.index_exists(asked.index) else ()
    for mappings in there:
        known = mappings.get("properties") or {}
        for name, node in types.items():
            now, wanted = _type(known[name]) if name in known else "not mapped", _type(node)
            if now != wanted:
                raise ConfigError(
                    f"index {asked.index!r} is there, and --mapping {path} is of a new one: {name!r} is "
                    f"{now} there, not {wanted}; leave it out, or build the index anew: --recreate"
                )


def _type(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "object"))


@contextmanager
def mapping_told(path: str | None) -> Iterator[None]:
    """Name the file of a mapping that the engine refuses to make an index with.

    Raises:
        ConfigError: it does.
    """
    from shinglefold.errors import ConfigError, UnsupportedQuery

    try:
        yield
    except UnsupportedQuery as error:
        if path is None:
            raise
        raise ConfigError(f"the mapping {path}: {error}") from error
