"""What only requests say: time spans, source filters, depth; checked before any work is done for it."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from shinglefold.checks import check_known, check_text, strings
from shinglefold.errors import ConfigError
from shinglefold.quoted import quoted
from shinglefold.source_filter import SourceFilter

#: Scopes, policies and fields of passages a request may name.
MOST_SCOPES, MOST_POLICIES, MOST_FIELDS = 16, 16, 32
#: Values a policy may prefer, and patterns of a source filter.
MOST_VALUES, MOST_PATTERNS = 1000, 1000
#: Characters of a short form such as ``prefer:host=a.org,b.org``.
MOST_TEXT = 10_000
#: Objects and lists within each other, and bits of a whole number, in a request.
MOST_LEVELS, _BITS = 100, 256
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_LONGEST_SPAN = 20
_FILTER_KEYS = ("includes", "excludes", "include", "exclude")
_SECONDS = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0})


def seconds(given: object) -> float:
    """Return a time span such as ``7d`` in seconds."""
    short = isinstance(given, str) and len(given) <= _LONGEST_SPAN
    match = _SPAN.fullmatch(given) if short and isinstance(given, str) else None
    if match is None:
        raise ConfigError(
            f"within {quoted(given)}: expected a number and one of ms, s, m, h, d, w, such as 7d"
        )
    return float(match[1]) * _SECONDS[match[2]]


def read_source_filter(given: object) -> SourceFilter:
    """Read a ``_source`` filter in the engines' own forms.

    Raises:
        ConfigError: it is not valid.
    """
    if given is None or isinstance(given, bool):
        return SourceFilter(wanted=given is not False)
    if isinstance(given, str):
        return SourceFilter(includes=(check_text("_source", given),))
    if not isinstance(given, Mapping):
        return SourceFilter(includes=strings("_source", given, MOST_PATTERNS))
    check_known("key of _source", given, _FILTER_KEYS)
    return SourceFilter(True, _patterns(given, "include"), _patterns(given, "exclude"))


def _patterns(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = given.get(f"{name}s", given.get(name)) or ()
    return strings(f"_source {name}s", [found] if isinstance(found, str) else found, MOST_PATTERNS)


def check_levels(body: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` where a request is nested too deep, or has a number no engine can read.

    Cost: about 50 ns a value; it neither recurs nor copies.
    """
    level: list[Any] = [body]
    for _ in range(MOST_LEVELS):
        level = [one for part in level for one in _parts(part) if _is_part(one)]
        if not level:
            return
    raise ConfigError(
        f"the request has more than {MOST_LEVELS} objects and lists within each other: make it flatter"
    )


def _parts(part: Any) -> Iterable[Any]:  # noqa: ANN401 - JSON
    return part.values() if isinstance(part, Mapping) else part


def _is_part(value: object) -> bool:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ConfigError(f"the request holds {quoted(value)}, which no engine can read: take it out")
    return isinstance(value, Mapping | list | tuple)
