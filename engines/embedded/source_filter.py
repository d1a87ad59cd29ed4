"""``_source``: which parts of a document a hit gives back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.engines.embedded.options import checked, strings


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """Patterns with ``*`` on paths; a path brings all below it; what is excluded wins.

    ``wanted`` False gives no source at all; no ``includes`` means everything.
    """

    wanted: bool = True
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether documents are given back as they are."""
        return self.wanted and not self.includes and not self.excludes

    def apply(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted parts of a document."""
        if self.whole:
            return dict(source)
        includes = _pattern(self.includes) if self.includes else re.compile("")
        return _filtered(source, "", includes, _pattern(self.excludes))


def read_source_filter(given: object) -> SourceFilter:
    """Read the ``_source`` of a search body.

    Raises:
        UnsupportedQuery: it can't be meant.
    """
    if isinstance(given, bool):
        return SourceFilter(wanted=given)
    if not isinstance(given, Mapping):
        return SourceFilter(includes=strings("_source", given))
    checked("_source", given, ("includes", "excludes"))
    includes, excludes = (
        strings(f"_source {name}", given.get(name, ())) for name in ("includes", "excludes")
    )
    return SourceFilter(True, includes, excludes)


def _pattern(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return what finds a pattern at the start of a path, up to the end of a name."""
    choices = "|".join(".*".join(re.escape(part) for part in pattern.split("*")) for pattern in patterns)
    return re.compile(rf"(?:{choices})(?:\.|$)" if patterns else r"(?!)", re.DOTALL)


def _filtered(
    source: Mapping[str, Any], prefix: str, includes: re.Pattern[str], excludes: re.Pattern[str]
) -> dict[str, Any]:
    found = {}
    for name, value in source.items():
        path = prefix + name
        if excludes.match(path):
            continue
        included = includes.match(path) is not None
        kept = _kept(value, path + ".", included, includes, excludes)
        if included or kept not in (None, {}, []):
            found[name] = kept
    return found


def _kept(
    value: object, prefix: str, included: bool, includes: re.Pattern[str], excludes: re.Pattern[str]
) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        return _filtered(value, prefix, re.compile("") if included else includes, excludes)
    if isinstance(value, list):
        kept = [_kept(item, prefix, included, includes, excludes) for item in value]
        return kept if included else [item for item in kept if item not in (None, {}, [])]
    return value if included else None
