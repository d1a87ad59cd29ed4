"""Checks and parses what callers pass, before any request is sent; ``inner_hits`` and sort keys included.

Windows are read by sort keys of our own, so that servers lose no hits. Servers skip documents and shards that
can't compete by the first sort key. Some skip too many: OpenSearch 3.8 those of a ``scaled_float`` and of
nested documents, and OpenSearch 2 and 3 shards of a date with a format of its own. A first key with one value
for all documents leaves nothing to skip by.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import DATE_FORMAT, JSON, Search
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
#: The default name of inner hits; the members of every group have it.
DUPLICATES = "duplicates"
#: The most ``inner_hits`` of a request, and the greatest ``from`` and ``size`` of one.
MOST_INNER_HITS, _DEEPEST = 10, 1000
#: Keys that inner hits share with a search.
_SEARCH = (
    "sort", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "version",
    "seq_no_primary_term", "explain", "track_scores",
)  # fmt: skip
_KNOWN = ("name", "from", "size", "_source", "collapse", *_SEARCH)
#: A sort key with one value for all documents: no mapping has the field.
_CONSTANT = MappingProxyType({"shinglefold.none": {"order": "asc", "unmapped_type": "long", "missing": 0}})
#: Types whose values servers skip correctly. Others may be anything: a plugin's, a runtime field.
_EXACT = frozenset(
    {"long", "integer", "short", "byte", "double", "float", "unsigned_long", "boolean"}
    | {"date", "date_nanos", "keyword", "constant_keyword", "ip", "text"}
)
#: Date formats that servers print and parse without loss; with ``yyyy`` they lose the era.
_EXACT_FORMATS = (None, DATE_FORMAT, "epoch_millis")
_EXACT_OPTIONS = {"order", "missing", "mode", "unmapped_type", "format"}


def hits_of(given: Sequence[Hit] | Mapping[str, Any]) -> Sequence[Hit]:
    """Return the hits of a response; a list of hits is returned unchanged."""
    hits: Any = given
    for _ in ("the response", "its hits"):
        hits = hits.get("hits") if isinstance(hits, Mapping) else hits
    if isinstance(hits, str | bytes) or not isinstance(hits, Sequence):
        raise ConfigError('not a list of hits; give the response of a search, or its ["hits"]["hits"]')
    if not (set(map(type, hits)) <= {dict} or all(isinstance(hit, Mapping) for hit in hits)):
        raise ConfigError("not a list of hits: each is an object as engines return it, with its _source")
    return hits


def check_search_arguments(engine: object, seal: object, *, awaited: bool) -> None:
    """Check the arguments that a search is created with."""
    check_engine(engine, awaited=awaited)
    check_seal(seal)


def checked_searches(searches: Iterable[Search]) -> list[Search]:
    """Return searches as a list; refuse anything but pairs of an index and a body."""
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
    """Read a ``_source`` filter in the engines' own forms."""
    if given is None or isinstance(given, bool):
        return SourceFilter(wanted=given is not False)
    if isinstance(given, str):
        return SourceFilter(includes=(check_name("_source", given),))
    if not isinstance(given, Mapping):
        return SourceFilter(includes=check_strings("_source", given, MOST_PATTERNS))
    check_known("key of _source", given, _FILTER_KEYS)
    return SourceFilter(True, _patterns(given, "include"), _patterns(given, "exclude"))


def request_source_filter(given: object) -> SourceFilter:
    """Read the ``_source`` filter of a request; Elasticsearch's option for vectors is left to it."""
    if isinstance(given, Mapping):
        given = {name: value for name, value in given.items() if name != "exclude_vectors"}
    return read_source_filter(given)


def _patterns(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = given.get(f"{name}s", given.get(name)) or ()
    return check_strings(f"_source {name}s", [found] if isinstance(found, str) else found, MOST_PATTERNS)


def check_levels(body: Mapping[str, Any]) -> bool:
    """Refuse a request that is nested too deeply, or has an integer that no engine can parse.

    Returns:
        whether it has tuples.

    Cost: about 50 ns a value.
    """
    level: list[Any] = [body]
    tuples = False
    for _ in range(MOST_LEVELS):
        level = [one for part in level for one in _parts(part) if _is_part(one)]
        tuples = tuples or tuple in map(type, level)
        if not level:
            return tuples
    raise ConfigError(f"the request has more than {MOST_LEVELS} levels of objects and lists: make it flatter")


def with_lists(part: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a part of a request with lists instead of tuples, as clients send them."""
    if isinstance(part, Mapping):
        return {name: with_lists(value) for name, value in part.items()}
    return [with_lists(one) for one in part] if isinstance(part, list | tuple) else part


def _parts(part: Any) -> Iterable[Any]:  # noqa: ANN401 - JSON
    return part.values() if isinstance(part, Mapping) else part


def _is_part(value: object) -> bool:
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ConfigError(f"the request holds {quote(value)}, which no engine can read: take it out")
    return isinstance(value, Mapping | list | tuple)


@dataclass(frozen=True, slots=True)
class InnerHits:
    """One ``inner_hits`` object: which hits of a group are attached under a name, and which parts of them.

    ``start``, ``size``: the engines' ``from`` and ``size``, counted among all hits of the group, the
    representative included. ``source``: a ``_source`` filter within that of the request. ``search``: the
    other keys: order, fields, highlights, versions, a second level of collapse.
    """

    name: str = DUPLICATES
    start: int = 0
    size: int = 3
    source: Any = None
    search: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_int("inner_hits from", self.start, 0, _DEEPEST)
        check_int("inner_hits size", self.size, 0, _DEEPEST)
        if not isinstance(self.name, str) or not check_name("inner_hits name", self.name):
            raise ConfigError(f"inner_hits name: expected a name, got {quote(self.name)}")
        self.source_filter()

    @classmethod
    def parse(cls, given: object) -> "InnerHits":
        """Parse one of the engines' ``inner_hits`` objects."""
        if isinstance(given, InnerHits):
            return given
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
        return not {"sort", "collapse"} & self.search.keys()

    def body(self, query: JSON, source: Any) -> JSON:  # noqa: ANN401 - JSON
        """Return the search for the hits of a group, which a query matches, with a ``_source`` filter."""
        body = {"query": query, "from": self.start, "size": self.size, "track_total_hits": False}
        return body | ({} if source is None else {"_source": source}) | dict(self.search)


def check_names(several: Sequence[InnerHits]) -> None:
    """Raise ``ConfigError`` if two inner hits have the same name."""
    check_count("inner_hits", several, MOST_INNER_HITS)
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

    ``search_after`` a formatted value loses or repeats hits, because many values have the same text. A
    request's own ``search_after`` has such texts, so its keys keep their formats.
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
