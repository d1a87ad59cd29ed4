"""Parameters of a search as servers read them: in an address, or in the header of one of several searches."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

#: What the header of a search among several may say.
_HEADER = frozenset(
    {
        "routing", "preference", "search_type", "request_cache", "allow_partial_search_results",
        "ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled",
        "ccs_minimize_roundtrips",
    }
)  # fmt: skip


def in_address(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as an address has them: words for true and false, commas between several."""
    return {name: _text(value) for name, value in parameters.items() if value is not None}


def fits_header(parameters: Mapping[str, Any]) -> bool:
    """Tell whether a search with these may be one of several in a request."""
    return parameters.keys() <= _HEADER


def search_path(index: str | None, end: str) -> str:
    """Return the path of a search, ``_search``, or of opening a point in time."""
    return f"/{end}" if index is None else f"/{quote(index, safe=',*')}/{end}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)
