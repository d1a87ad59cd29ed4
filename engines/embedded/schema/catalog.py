"""The catalog of an index: its mappings, its settings, and the tantivy column of each field.

tantivy's schema is fixed when an index is made, but mappings grow. So an index is made with pools of columns,
and a new field takes the next free one. An unused column costs one byte a document (text and keywords).
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import DATE_FORMAT
from shinglefold.engines.embedded.schema.field_types import (
    DATE_FORMATS,
    SEARCHED,
    TYPES,
    Field,
    looks_like_date,
)
from shinglefold.engines.embedded.schema.requests import (
    METADATA,
    bool_option,
    check_options,
    int_option,
    unsupported_error,
)
from shinglefold.errors import EngineUnavailable, UnsupportedQuery, reason_of, suggest
from shinglefold.options.validation import check_object
from shinglefold.runtime.durable_files import atomic_write, sync_folder
from shinglefold.version import __version__

_ROOT = ("properties", "dynamic", "date_detection", "_meta")
_OBJECT = ("type", "properties", "dynamic", "enabled")
_VALUE = ("type", "index", "doc_values", "fields")
_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "text": ("type", "index", "fields"),
        # Norms are accepted without effect: keywords are not scored by length.
        "keyword": (*_VALUE, "ignore_above", "norms"),
        "date": (*_VALUE, "format"),
        "binary": ("type", "doc_values"),
    }
)
_DYNAMIC = {"true": "true", "false": "false", "strict": "strict"}
_WHY_NO_ANALYZER = "; text is analysed by the canonicalizer the engine was opened with, so leave it out"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field of a mapping: its path, the path of its value in a document, its definition."""

    path: str
    source: str
    definition: Mapping[str, Any]


def check_mappings(mappings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the mappings after checking them.

    Raises:
        UnsupportedQuery: a type or an option is not supported.
    """
    check_options("mappings", mappings, _ROOT)
    if "date_detection" in mappings:
        bool_option("date_detection", mappings["date_detection"])
    _dynamic("mappings", mappings)
    check_object("_meta", mappings.get("_meta", {}), "an object", UnsupportedQuery)
    _check_properties("", mappings.get("properties", {}))
    try:
        copy: dict[str, Any] = json.loads(json.dumps(mappings))
    except (TypeError, ValueError) as error:
        raise UnsupportedQuery(f"mappings: not JSON ({error})") from error
    copy["properties"] = _nest_properties("", copy.get("properties", {}))
    return copy


def _nest_properties(prefix: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties in which a name with dots is a path through objects, as servers store them."""
    made: dict[str, Any] = {}
    for name, definition in properties.items():
        first, *below = name.split(".")
        nested = definition
        if "properties" in definition:
            nested = {
                **definition,
                "properties": _nest_properties(f"{prefix}{name}.", definition["properties"]),
            }
        for part in reversed(below):
            nested = {"properties": {part: nested}}
        _merge(prefix, made, {first: nested})
    return made


def _merge(prefix: str, properties: dict[str, Any], new: Mapping[str, Any]) -> None:
    """Add new fields to properties; objects are merged, and take another ``dynamic`` if one is given.

    Raises:
        UnsupportedQuery: a field exists with another definition.
    """
    for name, definition in new.items():
        known = properties.setdefault(name, definition)
        enabled = known.get("enabled", True)
        if is_object(known) and is_object(definition) and definition.get("enabled", enabled) == enabled:
            if "dynamic" in definition:
                known["dynamic"] = definition["dynamic"]
            if "properties" in definition:
                _merge(f"{prefix}{name}.", known.setdefault("properties", {}), definition["properties"])
        elif known != definition:
            raise UnsupportedQuery(
                f"the field {prefix + name!r} is {known} and stays so; make a new index, or use another name"
            )


def leaves(properties: Mapping[str, Any], prefix: str = "") -> Iterator[Leaf]:
    """Yield every field below some properties, each followed by its multi-fields."""
    for name, definition in properties.items():
        path = prefix + name
        if definition.get("enabled") is False:
            continue
        if is_object(definition):
            yield from leaves(definition.get("properties", {}), path + ".")
            continue
        yield Leaf(path, path, definition)
        for sub, sub_definition in definition.get("fields", {}).items():
            yield Leaf(f"{path}.{sub}", path, sub_definition)


def objects(mappings: Mapping[str, Any]) -> dict[str, str]:
    """Return ``dynamic`` of every object by path (the root is ``""``).

    ``true`` maps new fields, ``false`` only stores them, ``strict`` refuses them. ``disabled`` stores the
    object without reading it.
    """
    return dict(_objects("", mappings, "true"))


def definition_for(value: object, date_detection: bool) -> dict[str, Any]:
    """Return the definition that dynamic mapping gives to a new field with this value."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "long"}
    if isinstance(value, float):
        return {"type": "float"}
    if isinstance(value, dict):
        return {"properties": {}}
    if isinstance(value, str) and date_detection and looks_like_date(value):
        return {"type": "date"}
    return {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


def with_properties(mappings: Mapping[str, Any], new: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a copy of the mappings with new fields, given by path, parents before children."""
    grown: dict[str, Any] = json.loads(json.dumps(mappings))
    for path, definition in new.items():
        parent = grown
        *above, name = path.split(".")
        for part in above:
            parent = parent.setdefault("properties", {}).setdefault(part, {})
        parent.setdefault("properties", {})[name] = json.loads(json.dumps(definition))
    return grown


def is_object(definition: Mapping[str, Any]) -> bool:
    """Return whether a definition is that of an object."""
    return str(definition.get("type", "object")) == "object"


def _objects(path: str, definition: Mapping[str, Any], inherited: str) -> Iterator[tuple[str, str]]:
    if definition.get("enabled") is False:
        yield path, "disabled"
        return
    dynamic = _dynamic(path, definition) or inherited
    yield path, dynamic
    for name, child in definition.get("properties", {}).items():
        if is_object(child):
            yield from _objects(f"{path}.{name}" if path else name, child, dynamic)


def _dynamic(where: str, definition: Mapping[str, Any]) -> str:
    if "dynamic" not in definition:
        return ""
    text = str(definition["dynamic"]).lower()
    if text not in _DYNAMIC:
        raise unsupported_error(f"value of dynamic in {where or 'mappings'}", text, _DYNAMIC)
    return text


def _check_properties(prefix: str, properties: object) -> None:
    for path, definition in _definitions(prefix, "properties", properties):
        if is_object(definition):
            check_options(f"object {path!r}", definition, _OBJECT)
            if not definition.keys() & {"type", "properties", "enabled"}:
                raise UnsupportedQuery(f"mapping of {path!r}: the type is missing; name one")
            _dynamic(path, definition)
            if "enabled" in definition:
                bool_option(f"enabled of {path!r}", definition["enabled"])
            _check_properties(path + ".", definition.get("properties", {}))
        else:
            _check_leaf(path, definition)


def _definitions(prefix: str, what: str, given: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the definition of each field, after checking their form."""
    if not isinstance(given, Mapping):
        raise UnsupportedQuery(f"{what} of {prefix or 'mappings'}: expected an object")
    for name, definition in given.items():
        valid = isinstance(name, str) and all(part.strip() for part in name.split("."))
        if not valid or not isinstance(definition, Mapping):
            raise UnsupportedQuery(f"mapping of '{prefix}{name}': expected a name and an object with a type")
        if not prefix and name in METADATA:
            raise UnsupportedQuery(f"mapping of {name!r}: this is metadata; leave it out")
        yield f"{prefix}{name}", definition


def _check_leaf(path: str, definition: Mapping[str, Any]) -> None:
    kind = str(definition.get("type"))
    if kind not in TYPES:
        raise unsupported_error(f"field type (of {path!r})", kind, (*TYPES, "object"))
    if "analyzer" in definition or "search_analyzer" in definition:
        raise UnsupportedQuery(f"mapping of {path!r}: no analyzer can be named{_WHY_NO_ANALYZER}")
    check_options(f"{kind} field {path!r}", definition, _OPTIONS.get(kind, _VALUE))
    for name in ("index", "doc_values", "norms"):
        if name in definition:
            bool_option(f"{name} of {path!r}", definition[name])
    if "ignore_above" in definition:
        int_option(f"ignore_above of {path!r}", definition["ignore_above"], 1)
    if definition.get("format", DATE_FORMAT) not in DATE_FORMATS:
        raise unsupported_error(f"date format (of {path!r})", str(definition["format"]), DATE_FORMATS)
    for sub, sub_definition in _definitions(f"{path}.", "fields", definition.get("fields", {})):
        if "fields" in sub_definition:
            raise UnsupportedQuery(f"mapping of {sub}: a multi-field can't have multi-fields")
        if "." in sub[len(path) + 1 :]:
            raise UnsupportedQuery(f"mapping of {sub}: the name of a multi-field can't have dots")
        _check_leaf(sub, sub_definition)


#: The file of the catalog in the folder of an index.
CATALOG = "catalog.json"
#: The format of an index; increase it with any change that earlier versions can't read. The previous format
#: does not round floats; it is read if the index has none.
_FORMAT, _UNROUNDED = 4, 3
#: The number of free columns of a new index, by pool.
_SPARE: Mapping[str, int] = MappingProxyType({"t": 24, "k": 32, SEARCHED: 4, "l": 32, "d": 16})
#: Fields every document has.
ID = Field("_id", "_id", "keyword", TYPES["keyword"], "_id", doc_values=False)


#: The most columns of an index, in all pools together. Servers have a limit, too.
_MOST = 2_500


class NoColumnLeft(ValueError):
    """An index has too few columns for new fields; it needs ``pools``."""

    def __init__(self, path: str, pools: Mapping[str, int]) -> None:
        super().__init__(
            f"no column left for the new field {path!r}: more than {_MOST:,} columns would be needed, two "
            "for each new field with text. Leave fields out in the pipeline (processor remove), or let a "
            'mapping of the index say {"type": "object", "enabled": false} of the object that contains them '
            "(index --recreate --mapping FILE)"
        )
        self.pools = pools

    @property
    def too_many(self) -> bool:
        """Whether the new fields need more columns than an index may have."""
        return sum(self.pools.values()) > _MOST


@dataclass(frozen=True, slots=True)
class Catalog:
    """The immutable catalog of an index; adding fields returns a new one.

    ``columns`` has the tantivy field of each path. ``analysis`` identifies the analysis of texts. ``schema``
    is the checksum of tantivy's schema, 0 if it is not known. ``fields`` are by the path in queries,
    ``by_source`` by the path in documents. ``objects`` has ``dynamic`` of each object; see ``objects``.
    """

    mappings: Mapping[str, Any]
    settings: Mapping[str, Any]
    pools: Mapping[str, int]
    columns: Mapping[str, str]
    analysis: str
    schema: int = 0
    fields: Mapping[str, Field] = field(init=False)
    by_source: Mapping[str, tuple[Field, ...]] = field(init=False)
    objects: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        fields = {"_id": ID}
        by_source: dict[str, tuple[Field, ...]] = {}
        for leaf in leaves(self.mappings["properties"]):
            field = _field(leaf.path, leaf.source, leaf.definition, self.columns.get(leaf.path, ""))
            fields[field.path] = field
            by_source[field.source] = (*by_source.get(field.source, ()), field)
        object.__setattr__(self, "fields", MappingProxyType(fields))
        object.__setattr__(self, "by_source", MappingProxyType(by_source))
        object.__setattr__(self, "objects", MappingProxyType(objects(self.mappings)))

    @classmethod
    def create(cls, mappings: Mapping[str, Any], settings: Mapping[str, Any], analysis: str) -> "Catalog":
        """Return the catalog of a new index.

        Args:
            analysis: identifies what makes the tokens; see ``Analysis``.

        Raises:
            UnsupportedQuery: the mappings are not supported.
        """
        known = check_mappings(mappings)
        wanted = [_pool(leaf.definition) for leaf in leaves(known["properties"])]
        pools = {pool: spare + wanted.count(pool) for pool, spare in _SPARE.items()}
        return cls(known, dict(settings), pools, _columns(known, pools, {}), analysis)

    def with_fields(self, new: Mapping[str, Mapping[str, Any]]) -> "Catalog":
        """Return the catalog with new fields, given as definitions by path.

        Raises:
            NoColumnLeft: there are too few columns.
        """
        mappings = with_properties(self.mappings, new)
        return replace(self, mappings=mappings, columns=_columns(mappings, self.pools, self.columns))

    def with_mappings(self, given: Mapping[str, Any]) -> "Catalog":
        """Return the catalog with further fields, and with the other options that are given.

        Raises:
            UnsupportedQuery: the mappings are not supported, or redefine a field.
            NoColumnLeft: there are too few columns.
        """
        known = check_mappings(given)
        mappings = json.loads(json.dumps(self.mappings))
        _merge("", mappings["properties"], known.pop("properties"))
        mappings |= known
        return replace(self, mappings=mappings, columns=_columns(mappings, self.pools, self.columns))

    def with_columns_of(self, schema: Iterable[str]) -> "Catalog":
        """Return the catalog with the columns of a schema, which differ after a failed rebuild."""
        names = [name for name in schema if name[1:].isdigit()]
        return replace(self, pools={pool: sum(name[0] == pool for name in names) for pool in self.pools})

    def save(self, folder: Path) -> None:
        """Write the catalog atomically and durably."""
        content = {name: getattr(self, name) for name in _STORED}
        data = {"format": _FORMAT, "checksum": _checksum(content), **content}
        with atomic_write(folder / CATALOG) as file:
            json.dump(data, file, ensure_ascii=True, indent=1)
        sync_folder(folder)

    @classmethod
    def load(cls, folder: Path) -> "Catalog":
        """Read the catalog of an index.

        Raises:
            EngineUnavailable: it can't be read, or was written by a later version.
        """
        try:
            data = json.loads((folder / CATALOG).read_text("utf-8"))
            # First of all: only the version that wrote a later format knows the rest.
            if type(data["format"]) is int and data["format"] > _FORMAT:
                raise _later_format_error(folder, data["format"])
            if type(data["format"]) is not int or not _is_read(data):
                raise ValueError(f"its format is {data['format']!r}")
            content = {name: data[name] for name in _STORED}
            if data["checksum"] != _checksum(content):
                raise ValueError("its content has changed since it was written")
            return cls(**content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise EngineUnavailable(
                f"the index in {folder} is damaged: {CATALOG}: {reason_of(error)}. Restore the folder from a "
                f"copy, or delete the index ({suggest('delete', folder.name)}) and index again"
            ) from error


_STORED = ("mappings", "settings", "pools", "columns", "analysis", "schema")


def _is_read(data: Mapping[str, Any]) -> bool:
    """Return whether an index of this format or an earlier one can be read."""
    if data["format"] != _UNROUNDED:
        return bool(data["format"] == _FORMAT)
    types = {leaf.definition.get("type") for leaf in leaves(data["mappings"]["properties"])}
    return types.isdisjoint({"float", "half_float"})


def _later_format_error(folder: Path, made: int) -> EngineUnavailable:
    """Return the error for an index that a later version wrote; it need not be damaged."""
    return EngineUnavailable(
        f"the index in {folder} was written by a later version of shinglefold: its format is {made}, and "
        f"{__version__} reads format {_FORMAT}. Upgrade shinglefold: "
        "pip install --upgrade 'shinglefold[embedded]'; or index again into another folder"
    )


def _checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _field(path: str, source: str, definition: Mapping[str, Any], column: str) -> Field:
    kind = TYPES[definition["type"]]
    make = partial(Field, path, source, definition["type"], kind, column)
    doc_values = definition.get("doc_values", definition["type"] not in ("binary", "text"))
    return make(doc_values, definition.get("ignore_above", 2**31), definition.get("format", DATE_FORMAT))


def _columns(
    mappings: Mapping[str, Any], pools: Mapping[str, int], known: Mapping[str, str]
) -> dict[str, str]:
    columns = dict(known)
    used = {pool: sum(name[0] == pool for name in columns.values()) for pool in pools}
    path = ""
    for leaf in leaves(mappings["properties"]):
        pool = _pool(leaf.definition)
        if leaf.path in columns or not pool or _only_stored(leaf.definition):
            continue
        path = path or (leaf.path if used[pool] >= pools[pool] else "")
        columns[leaf.path] = f"{pool}{used[pool]}"
        used[pool] += 1
    if path:
        raise NoColumnLeft(
            path, {pool: max(pools[pool], count + _SPARE[pool]) for pool, count in used.items()}
        )
    return columns


def _pool(definition: Mapping[str, Any]) -> str:
    """Return the pool of columns for a field; keywords without doc values have a separate pool."""
    pool = TYPES[definition["type"]].pool
    return SEARCHED if pool == "k" and not definition.get("doc_values", True) else pool


def _only_stored(definition: Mapping[str, Any]) -> bool:
    if definition.get("index", True):
        return False
    return definition["type"] == "text" or not definition.get("doc_values", True)
