"""Whether every document of an index has a group number, so that the engine can collapse by it."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

from shinglefold.errors import chain, suggest
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.native.collapse_request import group_field, ungrouped_request
from shinglefold.rerank.native.group_counts import ResultSizes
from shinglefold.rerank.request.field_check import mapped_at
from shinglefold.rerank.request.recipe_check import index_names

#: Seconds after which coverage is counted again. Documents written meanwhile without a group number are
#: noticed as soon as a page shows them.
_BELIEVED = 30.0


class GroupCoverage:
    """Coverage of indices by group numbers, by index name; counted again every half minute.

    Args:
        scheme: the id of the scheme that groups must be of.
        dedup: the object field of the fingerprints.

    Attributes:
        sizes: predicts how many results searches have.
    """

    def __init__(self, scheme: str, dedup: str) -> None:
        self._scheme = scheme
        self._dedup = dedup
        self._known: dict[str | None, tuple[float, str]] = {}
        self.sizes = ResultSizes()

    def obstacle(self, index: str | None, mappings: Mapping[str, Mapping[str, Any]]) -> Steps[str]:
        """Return why an index can't be searched by group number; empty where it can.

        Args:
            mappings: by each name in the index expression.

        Cost: one count every half minute.
        """
        when, told = self._known.get(index, (0.0, ""))
        if index in self._known and monotonic() - when < _BELIEVED:
            return told
        told = self._lacking_field(index, mappings) or (yield from self._lacking_groups(index))
        self._known[index] = monotonic(), told
        return told

    def doubt(self, index: str | None) -> None:
        """Count the coverage of an index again at the next search."""
        self._known.pop(index, None)

    def _lacking_field(self, index: str | None, mappings: Mapping[str, Mapping[str, Any]]) -> str:
        names = index_names(index)
        if not names:
            return f"nobody can tell the mappings of {index!r}"
        for name in names:
            field = group_field(self._dedup)
            if (mapped_at(mappings.get(name, {}), field) or {}).get("type") != "long":
                remedy = suggest("setup", name, groups=True)
                return f"index {name!r} has no numbers of groups ({field}, a long); add them: {remedy}"
        return ""

    def _lacking_groups(self, index: str | None) -> Steps[str]:
        answer = yield Call("search", (index, ungrouped_request(self._scheme, self._dedup)))
        count: int = answer["hits"]["total"]["value"]
        if not count:
            return ""
        documents = f"1 document of {index!r} has" if count == 1 else f"{count:,} documents of {index!r} have"
        commands = [suggest(command, index or "") for command in ("backfill", "regroup")]
        return f"{documents} no group of the scheme {self._scheme}; number them: {chain(commands)}"
