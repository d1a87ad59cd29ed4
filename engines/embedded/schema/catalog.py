"""What an index knows about itself beside tantivy: mappings, settings, and which column a field has.

tantivy's schema is fixed when an index is made, mappings grow. So an index is made with pools of columns, and
a new field takes the next free one. A column nobody uses costs one byte a document (text and keywords).
"""

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shinglefold.engines.embedded.schema.field_types import SEARCHED, TYPES, Field
from shinglefold.engines.embedded.schema.mapping import check_mappings, leaves, objects, with_properties
from shinglefold.errors import EngineUnavailable, UnsupportedQuery, reason_of, suggest
from shinglefold.runtime.durable_files import sync_folder
from shinglefold.version import __version__

#: The file that an index has in its folder.
CATALOG = "catalog.json"
#: The format of an index; raise it with any change that this version could not read.
_FORMAT = 3
#: Columns beyond those the mappings ask for when the index is made.
_SPARE: Mapping[str, int] = MappingProxyType({"t": 24, "k": 32, SEARCHED: 4, "l": 32, "d": 16})
#: Fields every document has.
ID = Field("_id", "_id", "keyword", TYPES["keyword"], "_id", doc_values=False)


#: Columns of all pools together: what a document's fields may take, as servers have a limit.
_MOST = 2_500


class NoColumnLeft(ValueError):
    """More new fields than an index has columns for; ``pools`` would do."""

    def __init__(self, path: str, pools: Mapping[str, int]) -> None:
        super().__init__(
            f"no column left for the new field {path!r}: more than {_MOST:,} columns would be needed, two "
            "for each new field with text. Leave fields out in the pipeline (processor remove), or let a "
            'mapping of the index say {"type": "object", "enabled": false} of the object they stand in '
            "(index --recreate --mapping FILE)"
        )
        self.pools = pools

    @property
    def too_many(self) -> bool:
        """Whether no index may have so many columns."""
        return sum(self.pools.values()) > _MOST


@dataclass(frozen=True, slots=True)
class Catalog:
    """An unchanging view of an index's mappings; growing returns a new one.

    ``columns`` is path → tantivy field, ``analysis`` identifies what made the tokens,
    ``schema`` is the checksum of tantivy's schema, 0 where it is not known.
    ``fields`` by the path queries use, ``by_source`` by the path in documents, ``objects`` path → how it
    takes new fields.
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
            own = _field(leaf.path, leaf.source, leaf.definition, self.columns.get(leaf.path, ""))
            fields[own.path] = own
            by_source[own.source] = (*by_source.get(own.source, ()), own)
        object.__setattr__(self, "fields", MappingProxyType(fields))
        object.__setattr__(self, "by_source", MappingProxyType(by_source))
        object.__setattr__(self, "objects", MappingProxyType(objects(self.mappings)))

    @classmethod
    def create(cls, mappings: Mapping[str, Any], settings: Mapping[str, Any], analysis: str) -> "Catalog":
        """Return the catalog of a new index.

        Args:
            analysis: the identity of what makes the tokens.

        Raises:
            UnsupportedQuery: the mappings ask for what there is not.
        """
        known = check_mappings(mappings)
        wanted = [_pool(leaf.definition) for leaf in leaves(known["properties"])]
        pools = {pool: spare + wanted.count(pool) for pool, spare in _SPARE.items()}
        return cls(known, dict(settings), pools, _columns(known, pools, {}), analysis)

    def grown(self, new: Mapping[str, Mapping[str, Any]]) -> "Catalog":
        """Return the catalog with new fields, given as definitions by path.

        Raises:
            NoColumnLeft: the pool of a type is used up.
        """
        mappings = with_properties(self.mappings, new)
        return replace(self, mappings=mappings, columns=_columns(mappings, self.pools, self.columns))

    def with_mappings(self, given: Mapping[str, Any]) -> "Catalog":
        """Return the catalog with further fields, and another ``_meta`` where one is given.

        Raises:
            UnsupportedQuery: the mappings ask for what there is not, or for a field that is there, otherwise.
            NoColumnLeft: the pool of a type is used up.
        """
        known = check_mappings(given)
        new = {leaf.path: leaf.definition for leaf in leaves(known["properties"]) if leaf.path == leaf.source}
        for leaf in leaves(self.mappings["properties"]):
            if new.pop(leaf.path, leaf.definition) != leaf.definition:
                raise UnsupportedQuery(
                    f"the field {leaf.path!r} is {dict(leaf.definition)} and stays so; make a new index"
                )
        mappings = with_properties(self.mappings, new)
        if "_meta" in known:
            mappings["_meta"] = known["_meta"]
        return replace(self, mappings=mappings, columns=_columns(mappings, self.pools, self.columns))

    def fitted(self, schema: Iterable[str]) -> "Catalog":
        """Return the catalog with the columns there really are: they may have been meant to become more."""
        names = [name for name in schema if name[1:].isdigit()]
        return replace(self, pools={pool: sum(name[0] == pool for name in names) for pool in self.pools})

    def save(self, folder: Path) -> None:
        """Write the catalog so that a reader, or a crash, meets the old one or the new, never half of one."""
        own = {name: getattr(self, name) for name in _STORED}
        data = {"format": _FORMAT, "checksum": _checksum(own), **own}
        part = folder / f".{CATALOG}.{os.getpid()}"
        with part.open("w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=True, indent=1)
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / CATALOG)
        sync_folder(folder)

    @classmethod
    def load(cls, folder: Path) -> "Catalog":
        """Read the catalog of an index.

        Raises:
            EngineUnavailable: it can't be read, or a later version has written it.
        """
        try:
            data = json.loads((folder / CATALOG).read_text("utf-8"))
            # Before anything else of it: only the version that wrote it knows what the rest means.
            if type(data["format"]) is not int or data["format"] < _FORMAT:
                raise ValueError(f"its format is {data['format']!r}")
            if data["format"] > _FORMAT:
                raise _later(folder, data["format"])
            own = {name: data[name] for name in _STORED}
            if data["checksum"] != _checksum(own):
                raise ValueError("it has another content than was written")
            return cls(**own)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise EngineUnavailable(
                f"the index in {folder} is damaged: {CATALOG}: {reason_of(error)}. Restore the folder from a "
                f"copy, or delete the index ({suggest('delete', folder.name)}) and index again"
            ) from error


_STORED = ("mappings", "settings", "pools", "columns", "analysis", "schema")


def _later(folder: Path, made: int) -> EngineUnavailable:
    """Return the error for an index that a later version has written, in which nothing need be damaged."""
    return EngineUnavailable(
        f"the index in {folder} was written by a later version of shinglefold: its format is {made}, and "
        f"{__version__} reads format {_FORMAT}. Upgrade shinglefold: "
        "pip install --upgrade 'shinglefold[embedded]'; or index again into another folder"
    )


def _checksum(own: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(own, sort_keys=True).encode())


def _field(path: str, source: str, definition: Mapping[str, Any], column: str) -> Field:
    kind = TYPES[definition["type"]]
    make = partial(Field, path, source, definition["type"], kind, column)
    doc_values = definition.get("doc_values", definition["type"] not in ("binary", "text"))
    return make(doc_values, definition.get("ignore_above", 2**31))


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
    """Return the pool of columns of a field, which of what is only searched need not be read by document."""
    pool = TYPES[definition["type"]].pool
    return SEARCHED if pool == "k" and not definition.get("doc_values", True) else pool


def _only_stored(definition: Mapping[str, Any]) -> bool:
    if definition.get("index", True):
        return False
    return definition["type"] == "text" or not definition.get("doc_values", True)
