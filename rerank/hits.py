"""Reading hits: the values of a field, a date, the stored fingerprint."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from math import isfinite
from typing import Any

from shinglefold.documents.source_filter import SourceFilter, values_at
from shinglefold.model.stored_fingerprint import stored_parts

Hit = Mapping[str, Any]
#: Characters of a date as text.
_LONGEST_DATE = 64
_NOTHING: Mapping[str, Any] = {}


def field_values(hit: Hit, name: str) -> list[Any]:
    """Return the values of a field, from ``fields`` if it is there, else from ``_source``; [] if absent."""
    found = (hit.get("fields") or _NOTHING).get(name)
    if found is None:
        return values_at(hit.get("_source") or _NOTHING, name)
    return found if isinstance(found, list) else [found]


def identity(hit: Hit) -> tuple[Any, Any, Any]:
    """Return index, id and routing: no two documents share all three."""
    return hit.get("_index"), hit.get("_id"), hit.get("_routing")


def mark(hit: Hit) -> str:
    """Return a short hash of a document's identity, as cursors hold it."""
    own: str | None = hit.get("mark")
    return own or b64encode(blake2b(repr(identity(hit)).encode(), digest_size=9).digest()).decode()


def with_source(hit: Hit, wanted: SourceFilter) -> dict[str, Any]:
    """Return a hit with its source filtered."""
    if "_source" not in hit:
        return dict(hit)
    rest = {name: value for name, value in hit.items() if name != "_source"}
    return rest | ({"_source": wanted.apply(hit["_source"])} if wanted.wanted else {})


def stored_value(source: object, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a dotted path; keys may contain dots, as in flat documents."""
    if not isinstance(source, Mapping):
        return None
    if name in source:
        return source[name]
    head, _, rest = name.partition(".")
    return stored_value(source.get(head), rest) if rest else None


def moment(value: object) -> float | None:
    """Return a date, ISO 8601 or milliseconds, in seconds since 1970; None where it is neither."""
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > _LONGEST_DATE):
        return None
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.lstrip("-").isdigit()):
            when = float(value) / 1000
        elif isinstance(value, str):
            parsed = datetime.fromisoformat(value)
            when = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return when if isfinite(when) else None


def stored_fingerprint(hit: Hit, dedup: str) -> dict[str, Any]:
    """Return the parts of a hit's stored fingerprint (``digest``, ``signature`` …); {} if it has none."""
    prefix = f"{dedup}."
    stored = stored_values(hit, dedup)
    return {name.removeprefix(prefix): value for name, value in stored.items() if name.startswith(prefix)}


def stored_values(hit: Hit, dedup: str) -> Mapping[str, Any]:
    """Return the doc values of a hit, with missing parts of the fingerprint from its source."""
    fields: Mapping[str, Any] = hit.get("fields") or _NOTHING
    return {**_from_source(hit, dedup), **fields} if "_source" in hit else fields


def _from_source(hit: Hit, dedup: str) -> Mapping[str, Any]:
    """Return the fingerprint as ``docvalue_fields`` would: flat names, every value a list."""
    stored = stored_parts(hit.get("_source"), dedup)
    return {f"{dedup}.{key}": value if isinstance(value, list) else [value] for key, value in stored.items()}
