"""Checks and parses what callers pass, before any request is sent; ``inner_hits`` included."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON, Search
from shinglefold.documents import SourceFilter
from shinglefold.errors import ConfigError, quote
from shinglefold.model.seal import check_seal
from shinglefold.options.validation import (
    check_count,
    check_engine,
    check_int,
    check_known,
    check_name,
    check_strings,
    expected,
)
from shinglefold.rerank.hits import Hit

#: The most scopes, policies and fields of passages in a request.
MOST_SCOPES, MOST_POLICIES, MOST_FIELDS = 16, 16, 32
#: The most values that a policy may prefer, and patterns of a source filter.
MOST_VALUES, MOST_PATTERNS = 1000, 1000
#: The most characters of a short form, such as ``prefer:host=a.org,b.org``.
MOST_TEXT = 10_000
#: The most levels of nesting of a request, and the most bits of an integer in it.
MOST_LEVELS, _BITS = 100, 256
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_LONGEST_SPAN = 20
_FILTER_KEYS = ("includes", "excludes", "include", "exclude")
_SECONDS = MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0})


def hits_of(given: Sequence[Hit] | Mapping[str, Any]) -> Sequence[Hit]:
    """Return the hits of a response; a list of hits is returned unchanged.

    Raises:
        ConfigError: it is neither of them.
    """
    hits: Any = given
    for _ in ("the response", "its hits"):
        hits = hits.get("hits") if isinstance(hits, Mapping) else hits
    if isinstance(hits, str | bytes) or not isinstance(hits, Sequence):
        raise ConfigError('not a list of hits; give the response of a search, or its ["hits"]["hits"]')
    if not (set(map(type, hits)) <= {dict} or all(isinstance(hit, Mapping) for hit in hits)):
        raise ConfigError("not a list of hits: each is an object as engines return it, with its _source")
    return hits


def check_search_arguments(engine: object, canonicalizer: object, seal: object, *, awaited: bool) -> None:
    """Check the arguments that a search is created with.

    Raises:
        ConfigError: the engine, the canonicalizer or the seal is of another type.
    """
    check_engine(engine, awaited=awaited)
    # No isinstance: a plain search must not import the canonicalizer.
    if canonicalizer is not None and not hasattr(canonicalizer, "references"):
        raise expected(
            "canonicalizer", "Canonicalizer.of(scheme) (from shinglefold.canon), or None", canonicalizer
        )
    check_seal(seal)


def checked_searches(searches: Iterable[Search]) -> list[Search]:
    """Return searches as a list.

    Raises:
        ConfigError: one of them is not a pair of an index and a body.
    """
    if isinstance(searches, Mapping | str):
        raise ConfigError("one search instead of a list of searches; give [(index, body), …]")
    if not isinstance(searches, Iterable):
        raise expected("searches", "a list of searches, [(index, body), …]", searches)
    found = list(searches)
    for place, one in enumerate(found):
        if isinstance(one, str | Mapping) or not isinstance(one, Sequence) or len(one) not in (2, 3):
            raise ConfigError(f"search {place} names no index; give each as (index, body)")
        if not isinstance(one[1], Mapping):
            raise ConfigError(f"search {place} has no body; give each as (index, body)")
        if one[0] is None and "pit" not in one[1]:
            raise ConfigError(
                f"search {place} names neither an index nor a point in time; give each as (index, body)"
            )
    return found


def seconds(given: object) -> float:
    """Return a time span such as ``7d`` in seconds."""
    short = isinstance(given, str) and len(given) <= _LONGEST_SPAN
    match = _SPAN.fullmatch(given) if short and isinstance(given, str) else None
    if match is None:
        raise ConfigError(
            f"within {quote(given)}: expected a number and one of ms, s, m, h, d, w, such as 7d"
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
        return SourceFilter(includes=(check_name("_source", given),))
    if not isinstance(given, Mapping):
        return SourceFilter(includes=check_strings("_source", given, MOST_PATTERNS))
    check_known("key of _source", given, _FILTER_KEYS)
    return SourceFilter(True, _patterns(given, "include"), _patterns(given, "exclude"))


def _patterns(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = given.get(f"{name}s", given.get(name)) or ()
    return check_strings(f"_source {name}s", [found] if isinstance(found, str) else found, MOST_PATTERNS)


def check_levels(body: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` if a request is nested too deeply, or has an integer that no engine can parse.

    Cost: about 50 ns a value.
    """
    level: list[Any] = [body]
    for _ in range(MOST_LEVELS):
        level = [one for part in level for one in _parts(part) if _is_part(one)]
        if not level:
            return
    raise ConfigError(f"the request has more than {MOST_LEVELS} levels of objects and lists: make it flatter")


def _parts(part: Any) -> Iterable[Any]:  # noqa: ANN401 - JSON
    return part.values() if isinstance(part, Mapping) else part


def _is_part(value: object) -> bool:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ConfigError(f"the request holds {quote(value)}, which no engine can read: take it out")
    return isinstance(value, Mapping | list | tuple)


#: The default name of inner hits; the members of every group have it.
DUPLICATES = "duplicates"
#: The most ``inner_hits`` of a request, and the greatest ``from`` and ``size`` of one.
_MOST_INNER_HITS, _DEEPEST = 10, 1000
#: Keys that inner hits share with a search.
_SEARCH = (
    "sort", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "version",
    "seq_no_primary_term", "explain", "track_scores",
)  # fmt: skip
_KNOWN = ("name", "from", "size", "_source", "collapse", *_SEARCH)


@dataclass(frozen=True, slots=True)
class InnerHits:
    """One ``inner_hits`` object: which hits of a group are shown under a name, and what of them.

    ``start``, ``size``: the engines' ``from`` and ``size``, counted among all hits of the group, the
    representative included. ``source``: a ``_source`` filter within that of the request. ``search``: the
    other keys: order, fields, highlights, versions, a second level of collapse.
    """

    name: str = DUPLICATES
    start: int = 0
    size: int = 3
    source: Any = None
    search: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_int("inner_hits from", self.start, 0, _DEEPEST)
        check_int("inner_hits size", self.size, 0, _DEEPEST)
        if not isinstance(self.name, str) or not check_name("inner_hits name", self.name):
            raise ConfigError(f"inner_hits name: expected a name, got {quote(self.name)}")
        self.source_filter()

    @classmethod
    def parse(cls, given: object) -> "InnerHits":
        """Parse one of the engines' ``inner_hits`` objects."""
        if not isinstance(given, Mapping):
            raise ConfigError(f'inner_hits: expected {{"name": …, "size": …}}, got {quote(given)}')
        check_known("key of inner_hits", given, _KNOWN)
        search = {name: given[name] for name in _SEARCH if name in given}
        if "collapse" in given:
            search["collapse"] = _second_level(given["collapse"])
        return cls(
            given.get("name", DUPLICATES),
            given.get("from", 0),
            given.get("size", 3),
            given.get("_source"),
            search,
        )

    def source_filter(self) -> SourceFilter:
        """Return the filter of the members' sources."""
        return read_source_filter(self.source)

    @property
    def by_rank(self) -> bool:
        """Whether the hits are in the order of the results."""
        return not {"sort", "collapse"} & (self.search or {}).keys()

    def body(self, query: JSON, source: Any) -> JSON:  # noqa: ANN401 - JSON
        """Return the search for the hits of a group.

        Args:
            query: matches all of them.
            source: the ``_source`` of the request; None if it has none.
        """
        body = {"query": query, "from": self.start, "size": self.size, "track_total_hits": False}
        return body | ({} if source is None else {"_source": source}) | dict(self.search or {})


def read_inner_hits(given: object) -> tuple[InnerHits, ...]:
    """Parse ``inner_hits``, one or a list of them.

    Raises:
        ConfigError: two have the same name, there are too many, or one is not valid.
    """
    several = given if isinstance(given, list | tuple) else [given]
    check_count("inner_hits", several, _MOST_INNER_HITS)
    found = tuple(one if isinstance(one, InnerHits) else InnerHits.parse(one) for one in several)
    check_names(found)
    return found


def check_names(several: Sequence[InnerHits]) -> None:
    """Raise ``ConfigError`` if two inner hits have the same name."""
    check_count("inner_hits", several, _MOST_INNER_HITS)
    names = [one.name for one in several]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"inner_hits: two are called {quote(name)}; give each a name of its own")


def _second_level(given: object) -> JSON:
    if not isinstance(given, Mapping) or given.keys() != {"field"} or not isinstance(given["field"], str):
        raise ConfigError(
            'collapse of inner_hits: expected {"field": NAME} and nothing below it, as the engines do, '
            f"got {quote(given)}"
        )
    return {"field": check_name("collapse of inner_hits", given["field"])}
