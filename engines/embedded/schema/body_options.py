"""Check options and URL parameters: ignoring one silently would give a wrong answer."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast

from shinglefold.errors import UnsupportedQuery, nearest, quote
from shinglefold.options.validation import check_bool, check_int, check_number, check_object, expected


def unsupported(what: str, name: str, known: Iterable[str]) -> UnsupportedQuery:
    """Return the error for an unknown name, with the most similar known one."""
    names = sorted(known)
    near = nearest(name, names)
    hint = f"; did you mean {near!r}?" if near else "."
    return UnsupportedQuery(
        f"the embedded engine supports no {what} {name!r}{hint} Supported: {', '.join(names) or 'none'}."
    )


def check_options(what: str, given: object, known: Iterable[str]) -> Mapping[str, Any]:
    """Return an object of options after checking that every key is known.

    Raises:
        UnsupportedQuery: it is not an object, or has an unknown key.
    """
    names = tuple(known)
    found = check_object(what, given, f"an object with {', '.join(names)}", UnsupportedQuery)
    for key in found:
        if key not in names:
            raise unsupported(f"option of {what}", str(key), names)
    return found


def single_entry(what: str, given: object) -> tuple[str, Any]:
    """Return key and value of an object with exactly one key."""
    if not isinstance(given, Mapping) or len(given) != 1:
        raise expected(what, "an object with exactly one key", given, UnsupportedQuery)
    key, value = next(iter(given.items()))
    return str(key), value


def int_option(what: str, value: object, low: int = 0) -> int:
    """Return an integer that is at least ``low``."""
    check_int(what, value, low, error=UnsupportedQuery)
    return cast("int", value)


def number_option(what: str, value: object, low: float = 0.0) -> float:
    """Return a number that is at least ``low``."""
    check_number(what, value, low, error=UnsupportedQuery)
    return float(cast("float", value))


def bool_option(what: str, value: object) -> bool:
    """Return true or false."""
    check_bool(what, value, UnsupportedQuery)
    return cast("bool", value)


def strings_option(what: str, value: object) -> tuple[str, ...]:
    """Return strings that are given as one or as a list."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise expected(what, "a string or a list of strings", value, UnsupportedQuery)
    return tuple(items)


#: Without effect here, because there is one copy of one shard.
_WITHOUT_EFFECT = frozenset(
    {
        "preference", "request_cache", "allow_partial_search_results", "batched_reduce_size",
        "max_concurrent_shard_requests", "pre_filter_shard_size", "ccs_minimize_roundtrips",
        "human", "pretty", "error_trace",
    }
)  # fmt: skip
#: Supported with these values only.
_VALUES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "search_type": frozenset({"query_then_fetch", "dfs_query_then_fetch"}),
        "ignore_unavailable": frozenset({"false"}),
        "allow_no_indices": frozenset({"true"}),
        "expand_wildcards": frozenset({"open", "all"}),
    }
)


def check_parameters(parameters: Mapping[str, Any] | None) -> None:
    """Check that the URL parameters of a search are supported.

    Raises:
        UnsupportedQuery: one is not, and would change the result.
    """
    for name, value in (parameters or {}).items():
        if name in _WITHOUT_EFFECT:
            continue
        if name not in _VALUES:
            raise unsupported("search parameter", str(name), [*_WITHOUT_EFFECT, *_VALUES])
        if str(value).lower() not in _VALUES[name]:
            has = " or ".join(sorted(_VALUES[name]))
            raise UnsupportedQuery(f"the embedded engine has {name} {has} only, not {quote(value)}")
