"""Sort keys: those of a request, and those that windows are read by, so that servers lose no hits.

Servers skip documents and shards that can't compete by the first sort key. Some skip too many: OpenSearch 3.8
those of a ``scaled_float`` and of nested documents, and OpenSearch 2 and 3 shards of a date with a format of
its own. A first key with one value for all documents leaves nothing to skip by.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON

#: A sort key with one value for all documents: no mapping has the field.
_CONSTANT = MappingProxyType({"shinglefold.none": {"order": "asc", "unmapped_type": "long", "missing": 0}})
#: Types whose values servers skip correctly. Others may be anything: a plugin's, a runtime field.
_EXACT = frozenset(
    {"long", "integer", "short", "byte", "double", "float", "unsigned_long", "boolean"}
    | {"date", "date_nanos", "keyword", "constant_keyword", "ip", "text"}
)
#: Formats of dates whose values servers read again as they were; of ``yyyy`` they lose the era.
_EXACT_FORMATS = (None, "strict_date_optional_time||epoch_millis", "epoch_millis")
_EXACT_OPTIONS = {"order", "missing", "mode", "unmapped_type", "format"}


def sort_keys(body: Mapping[str, Any]) -> list[Any]:
    """Return the sort keys of a request: each a name, or an object with one name."""
    sort = body.get("sort") or []
    keys = sort if isinstance(sort, list) else [sort]
    return [
        one
        for key in keys
        for one in ([{name: order} for name, order in key.items()] if isinstance(key, Mapping) else [key])
    ]


def key_name(key: object) -> object:
    """Return what a sort key sorts by."""
    return next(iter(key)) if isinstance(key, Mapping) and key else key


def rises_by_score(body: Mapping[str, Any]) -> bool:
    """Return whether a request sorts by rising scores alone, which hits of a collapse do not show."""
    keys = sort_keys(body)
    return len(keys) == 1 and key_name(keys[0]) == "_score" and _options(keys[0]).get("order") == "asc"


def window_keys(body: Mapping[str, Any]) -> list[Any]:
    """Return the sort keys to read windows by: without formats, the first with an explicit ``missing``.

    ``search_after`` a formatted value loses or repeats hits, as many values have the same text. A request's
    own ``search_after`` has such texts, so its keys keep their formats.
    """
    keys = sort_keys(body)
    for place in formatted_places(body):
        name = str(key_name(keys[place]))
        keys[place] = {name: {key: value for key, value in keys[place][name].items() if key != "format"}}
    return [_with_missing(keys[0]), *keys[1:]] if keys else []


def has_format(body: Mapping[str, Any]) -> bool:
    """Return whether a sort key has a format."""
    return any("format" in _options(key) for key in sort_keys(body))


def formatted_places(body: Mapping[str, Any]) -> list[int]:
    """Return the places of the sort keys whose formats windows leave out."""
    if "search_after" in body:
        return []
    return [place for place, key in enumerate(sort_keys(body)) if "format" in _options(key)]


def formatted_sort(body: Mapping[str, Any]) -> list[Any]:
    """Return the sort that yields the formatted values of hits, after one constant value; [] if none has."""
    keys = sort_keys(body)
    places = formatted_places(body)
    return [dict(_CONSTANT), *(keys[place] for place in places)] if places else []


def skips_exactly(key: object, definitions: Sequence[Mapping[str, Any] | None]) -> bool:
    """Return whether servers skip by a first sort key without losing hits.

    Args:
        definitions: the mapping of the field in each index; None if it has none or is in nested documents.
    """
    name, options = str(key_name(key)), _options(key)
    if name.startswith("_"):
        return True
    if options.keys() - _EXACT_OPTIONS or options.get("mode") not in (None, "min", "max"):
        return False
    return bool(definitions) and all(
        one is not None and one.get("type") in _EXACT and one.get("format") in _EXACT_FORMATS
        for one in definitions
    )


def with_constant_key(window: Mapping[str, Any]) -> JSON:
    """Return a sorted window whose first sort key is constant; see ``without_constant_key``."""
    after = {"search_after": [0, *window["search_after"]]} if "search_after" in window else {}
    return {**window, "sort": [dict(_CONSTANT), *window["sort"]], **after}


def without_constant_key(hits: Sequence[JSON]) -> None:
    """Remove the value of the constant sort key from hits."""
    for hit in hits:
        hit["sort"] = hit["sort"][1:]


def _options(key: object) -> Mapping[str, Any]:
    given = next(iter(key.values())) if isinstance(key, Mapping) and key else {}
    return given if isinstance(given, Mapping) else {"order": given}


def _with_missing(key: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a sort key with an explicit ``missing`` of its default value.

    Without it in the first key OpenSearch 3.8 loses documents that lack the field: after ``search_after`` it
    skips shards and segments that still have some, and a ``match_all`` sorted by a number finds none.
    """
    if not isinstance(key, str | Mapping):
        return key
    name, options = str(key_name(key)), _options(key)
    if name.startswith("_") or "missing" in options:
        return key
    return {name: {**options, "missing": "_last"}}
