"""The mapping of the stored fingerprint, and the check that an index was made with the scheme in use."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts import JSON, Engine
from shinglefold.errors import ConfigError, IndexExists, SchemeMismatch
from shinglefold.scheme import Scheme

#: Where in a mapping's ``_meta`` the scheme is kept.
META_KEY = "shinglefold"


def mappings(scheme: Scheme, field: str = "dedup") -> JSON:
    """Return the mappings of an index that stores fingerprints: the field, and the scheme in ``_meta``.

    Args:
        field: may be a dotted path.
    """
    properties: JSON = {
        "scheme": {"type": "keyword"},
        "lang": {"type": "keyword"},
        # Read for whole windows of hits, never searched: doc values without an index.
        "shingles": {"type": "integer", "index": False},
        "signature": {"type": "binary", "doc_values": True},
        "digest": {"type": "keyword"},
        # Searched, hardly ever read: an index without doc values (bench/storage.py has what each costs). With
        # neither doc values nor norms a server would note for each of the values that there is one.
        "supershingles": {"type": "keyword", "doc_values": False, "norms": True},
    }
    for name in reversed(field.split(".")):
        properties = {name: {"properties": properties}}
    return {"_meta": {META_KEY: scheme.to_json()}, "properties": properties}


def ensure_index(
    engine: Engine,
    index: str,
    scheme: Scheme,
    *,
    field: str = "dedup",
    properties: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> bool:
    """Create the index, or check that the one that is there was made with this scheme.

    Args:
        properties: mappings of further fields.

    Returns:
        Whether it was created.

    Raises:
        SchemeMismatch: it was made with another scheme.
        ConfigError: it was not made for fingerprints, or it stores them in another field.
    """
    if not engine.index_exists(index):
        wanted = mappings(scheme, field)
        wanted["properties"] = {**(properties or {}), **wanted["properties"]}
        try:
            engine.create_index(index, wanted, settings or {})
        except IndexExists:
            # Somebody else was faster: theirs must fit as any other.
            pass
        else:
            return True
    check_index(engine.mappings(index), index, scheme, field)
    return False


def check_index(found: Mapping[str, Any], index: str, scheme: Scheme, field: str) -> None:
    """Check the mappings of an index against the scheme and field in use.

    Raises:
        SchemeMismatch: it was made with another scheme.
        ConfigError: it was not made for fingerprints, or it stores them in another field.
    """
    stored = (found.get("_meta") or {}).get(META_KEY)
    if not isinstance(stored, Mapping) or "id" not in stored:
        raise ConfigError(
            f"index {index!r} was not made for fingerprints (no _meta.{META_KEY} in its mappings): "
            "index into a new one, or create it with shinglefold.ingest.mappings()"
        )
    if stored["id"] != scheme.id:
        raise SchemeMismatch(
            found=f"{stored['id']} ({stored.get('name', 'unnamed')})",
            expected=f"{scheme.id} ({scheme.name})",
            where=f"index {index!r}",
            remedy=(
                "Index all documents again into a new index, or use the scheme it was made with "
                "(its preset, languages, options and dictionary versions)."
            ),
        )
    properties: Any = found
    for name in field.split("."):
        properties = (properties.get("properties") or {}).get(name)
        if not isinstance(properties, Mapping):
            raise ConfigError(f"index {index!r} has no field {field!r}; use the field it was made with")
