"""URL parameters of a search: those that change nothing in an index of one shard, and none else."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shinglefold.engines.embedded.options import unsupported
from shinglefold.errors import UnsupportedQuery
from shinglefold.quoted import quoted

#: With one copy of one shard these mean the same whatever they say.
_ANY = frozenset(
    {
        "preference", "request_cache", "allow_partial_search_results", "batched_reduce_size",
        "max_concurrent_shard_requests", "pre_filter_shard_size", "ccs_minimize_roundtrips",
    }
)  # fmt: skip
#: These mean what they mean anywhere only with such values.
_VALUES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "search_type": frozenset({"query_then_fetch", "dfs_query_then_fetch"}),
        "ignore_unavailable": frozenset({"false"}),
        "allow_no_indices": frozenset({"true"}),
        "expand_wildcards": frozenset({"open", "all"}),
    }
)


def check_parameters(parameters: Mapping[str, Any] | None) -> None:
    """Refuse what this engine can't do.

    Raises:
        UnsupportedQuery: a parameter that would mean something here, and is not supported.
    """
    for name, value in (parameters or {}).items():
        if name in _ANY:
            continue
        if name not in _VALUES:
            raise unsupported("search parameter", str(name), [*_ANY, *_VALUES])
        if str(value).lower() not in _VALUES[name]:
            has = " or ".join(sorted(_VALUES[name]))
            raise UnsupportedQuery(f"the embedded engine has {name} {has} only, not {quoted(value)}")
