"""Read and check the body of a search; nothing in it is ignored."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shinglefold.documents import SourceFilter
from shinglefold.engines.embedded.schema.body_options import (
    bool_option,
    check_options,
    int_option,
    strings_option,
)
from shinglefold.engines.embedded.search.aggregations import Collapse, read_collapse
from shinglefold.engines.embedded.search.highlight import HighlightOptions, read_highlight
from shinglefold.engines.embedded.search.sorting import SortKey, read_sort
from shinglefold.errors import UnsupportedQuery


def read_source_filter(given: object) -> SourceFilter:
    """Read the ``_source`` of a search body.

    Raises:
        UnsupportedQuery: it is not valid.
    """
    if isinstance(given, bool):
        return SourceFilter(wanted=given)
    if not isinstance(given, Mapping):
        return SourceFilter(includes=strings_option("_source", given))
    check_options("_source", given, ("includes", "excludes"))
    includes, excludes = (
        strings_option(f"_source {name}", given.get(name, ())) for name in ("includes", "excludes")
    )
    return SourceFilter(True, includes, excludes)


_KNOWN = (
    "query", "from", "size", "sort", "search_after", "_source", "docvalue_fields", "stored_fields",
    "highlight", "track_total_hits", "track_scores", "pit", "aggs", "aggregations", "collapse",
)  # fmt: skip
_NO_AGGREGATIONS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a search.

    ``after`` is the cursor of ``search_after``. ``total`` is True for an exact total, False for none, or the
    number up to which it is exact. ``bare`` leaves out ``_id`` and source (``stored_fields: "_none_"``).
    """

    query: Any
    start: int
    size: int
    sort: tuple[SortKey, ...]
    after: tuple[Any, ...] | None
    source: SourceFilter
    docvalues: tuple[str, ...]
    bare: bool
    highlight: HighlightOptions | None
    total: bool | int
    track_scores: bool
    aggregations: Mapping[str, Any]
    collapse: Collapse | None = None

    @property
    def scored(self) -> bool:
        """Whether hits have scores: not if they are sorted only by other keys."""
        return not self.sort or self.track_scores or any(key.name == "_score" for key in self.sort)

    @property
    def by_rank(self) -> bool:
        """Whether the order is that of tantivy: by score, then by position in the index."""
        names = [(key.name, key.descending) for key in self.sort]
        return not names or (names[0] == ("_score", True) and names[1:] in ([], *_TIES))


_TIES = ([("_shard_doc", False)], [("_doc", False)])


def read_request(body: Mapping[str, Any], under_pit: bool) -> Request:
    """Read a search body.

    Raises:
        UnsupportedQuery: something in it is not supported, or not valid.
    """
    check_options("search", body, _KNOWN)
    sort = read_sort(body.get("sort"), under_pit)
    after = _after(body, sort)
    start = int_option("from", body.get("from", 0))
    if after is not None and start:
        raise UnsupportedQuery("from can't be used with search_after; leave it out")
    bare = _bare(body)
    return Request(
        query=body.get("query", {"match_all": {}}),
        start=start,
        size=int_option("size", body.get("size", 10)),
        sort=sort,
        after=after,
        source=read_source_filter(body.get("_source", not bare)),
        docvalues=_docvalues(body.get("docvalue_fields", ())),
        bare=bare,
        highlight=read_highlight(body["highlight"]) if "highlight" in body else None,
        total=_total(body.get("track_total_hits", True)),
        track_scores=bool_option("track_scores", body.get("track_scores", False)),
        aggregations=_aggregations(body),
        collapse=_collapse(body),
    )


def _after(body: Mapping[str, Any], sort: tuple[SortKey, ...]) -> tuple[Any, ...] | None:
    given = body.get("search_after")
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != len(sort) or not sort:
        raise UnsupportedQuery(
            f"search_after: expected the last hit's sort values, one for each of the {len(sort)} sort keys, "
            f"got {given!r}"
        )
    return tuple(given)


def _collapse(body: Mapping[str, Any]) -> Collapse | None:
    if "collapse" not in body:
        return None
    if body.get("search_after") is not None:
        raise UnsupportedQuery("collapse can't be used with search_after; page with from and size")
    return read_collapse(body["collapse"])


def _bare(body: Mapping[str, Any]) -> bool:
    if "stored_fields" not in body:
        return False
    if strings_option("stored_fields", body["stored_fields"]) != ("_none_",):
        raise UnsupportedQuery('stored_fields: only "_none_" is supported; take fields from _source instead')
    if body.get("_source"):
        raise UnsupportedQuery(
            'stored_fields "_none_" leaves out the source; leave out _source, or give false'
        )
    return True


def _docvalues(given: object) -> tuple[str, ...]:
    items = given if isinstance(given, list | tuple) else [given]
    names: list[str] = []
    for item in items:
        if isinstance(item, Mapping):
            names.extend(
                strings_option(
                    "docvalue_fields", check_options("docvalue_fields", item, ("field",)).get("field")
                )
            )
        else:
            names.extend(strings_option("docvalue_fields", item))
    return tuple(names)


def _total(given: object) -> bool | int:
    return given if isinstance(given, bool) else int_option("track_total_hits", given)


def _aggregations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = body.get("aggs", body.get("aggregations", _NO_AGGREGATIONS))
    if not isinstance(given, Mapping):
        raise UnsupportedQuery(f"aggs: expected an object, got {given!r}")
    return given
