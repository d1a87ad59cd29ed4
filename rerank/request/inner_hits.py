"""Members in the engines' own form: ``inner_hits`` with an order, a filter and a name of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.documents import SourceFilter
from shinglefold.errors import ConfigError, quote
from shinglefold.options.validation import check_count, check_int, check_known, check_name
from shinglefold.rerank.request.arguments import read_source_filter

#: The name of inner hits that have none, which is that of the members every group has.
DUPLICATES = "duplicates"
#: Inner hits of different names, and hits down to the last one of a group.
_MOST, _DEEPEST = 10, 1000
#: What inner hits say as a search says it.
_SEARCH = (
    "sort", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "version",
    "seq_no_primary_term", "explain", "track_scores",
)  # fmt: skip
_KNOWN = ("name", "from", "size", "_source", "collapse", *_SEARCH)


@dataclass(frozen=True, slots=True)
class InnerHits:
    """Which hits of a group are told under a name, and what of them.

    ``start``, ``size``: from and size, among all hits of the group, the one shown included. ``source``: a
    ``_source`` filter that shows part of what the request's own shows. ``search``: what else a search may
    say of its hits: their order, fields, highlights, versions, a second level of collapse.
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
        """Read one of the engines' ``inner_hits`` objects."""
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
        """Return what members show of what the request shows."""
        return read_source_filter(self.source)

    @property
    def by_rank(self) -> bool:
        """Whether the hits stand in the order of the results."""
        return not {"sort", "collapse"} & (self.search or {}).keys()

    def body(self, query: JSON, source: Any) -> JSON:  # noqa: ANN401 - JSON
        """Return the search for the hits of a group.

        Args:
            query: finds all of them; ``source``: the request's own ``_source``, None for none.
        """
        asked = {"query": query, "from": self.start, "size": self.size, "track_total_hits": False}
        return asked | ({} if source is None else {"_source": source}) | dict(self.search or {})


def read_inner_hits(given: object) -> tuple[InnerHits, ...]:
    """Read ``inner_hits``, one or a list of them.

    Raises:
        ConfigError: two have the same name, there are too many, or one is not valid.
    """
    several = given if isinstance(given, list | tuple) else [given]
    check_count("inner_hits", several, _MOST)
    found = tuple(one if isinstance(one, InnerHits) else InnerHits.parse(one) for one in several)
    check_names(found)
    return found


def check_names(several: Sequence[InnerHits]) -> None:
    """Raise ``ConfigError`` where two inner hits have the same name, or none of them has one."""
    check_count("inner_hits", several, _MOST)
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
