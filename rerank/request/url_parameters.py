"""URL parameters of a search: which requests each one goes with, and which move into the body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.contracts.shard_failures import check_complete
from shinglefold.errors import ConfigError, EngineError, IndexMissing, quote
from shinglefold.options.validation import check_name
from shinglefold.rerank.engine_calls import Call, Steps

_PARTIAL = "allow_partial_search_results"
#: Where to search. Under a point in time it was fixed when that was opened.
_WHERE = frozenset(
    {
        "routing",
        "preference",
        "ignore_unavailable",
        "allow_no_indices",
        "expand_wildcards",
        "ignore_throttled",
    }
)
#: Parameters that say how to search; a request with a point in time may have them.
_HOW = frozenset(
    {
        "search_type", _PARTIAL, "request_cache", "batched_reduce_size",
        "max_concurrent_shard_requests", "pre_filter_shard_size",
        "cancel_after_time_interval", "typed_keys", "include_named_queries_score",
    }
)  # fmt: skip
#: Of these, those that decide the hits and their order.
_DECISIVE = _WHERE | {"search_type"}
_NOT_UNDER_PIT = frozenset({"ccs_minimize_roundtrips"})
#: Keys of a body by the same name; as in the engines, the URL wins.
_IN_BODY = frozenset(
    {
        "from", "size", "timeout", "terminate_after", "track_scores", "track_total_hits", "version",
        "seq_no_primary_term", "explain", "stored_fields", "docvalue_fields", "stats", "profile",
        "search_pipeline",
    }
)  # fmt: skip
_LISTS = frozenset({"stored_fields", "docvalue_fields", "stats"})
_SOURCE = frozenset({"_source", "_source_includes", "_source_excludes"})
#: A query in Lucene's syntax and its options → their names in the body.
_QUERY = {
    "q": "query", "df": "default_field", "analyzer": "analyzer", "analyze_wildcard": "analyze_wildcard",
    "default_operator": "default_operator", "lenient": "lenient",
}  # fmt: skip
_AS_NUMBERS = "rest_total_hits_as_int"
_ON_URL = _WHERE | _HOW | _NOT_UNDER_PIT
KNOWN = _ON_URL | _IN_BODY | _SOURCE | _QUERY.keys() | {"sort", _AS_NUMBERS}
_SCROLL = (
    "scroll: a folded search has no scroll context. Page with a cursor instead: "
    '"ext": {"dedup": {"cursor": true}}, then the cursor of each answer, or FoldedSearch.pages'
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a search: ``url`` goes with its requests, ``body`` into their bodies.

    ``as_numbers``: return totals as plain numbers.
    """

    url: Mapping[str, Any]
    body: Mapping[str, Any]
    as_numbers: bool = False

    def for_call(self, call: Call) -> Call:
        """Return a call with its URL parameters."""
        if call.method == "search":
            return Call("search", self._with_url_parameters(call.arguments))
        if call.method == "msearch":
            return Call("msearch", ([self._with_url_parameters(search) for search in call.arguments[0]],))
        if call.method == "open_pit":
            where = self._select(_WHERE)
            return Call("open_pit", (*call.arguments, where)) if where else call
        return call

    @property
    def decisive(self) -> dict[str, Any]:
        """Those that decide the hits and their order."""
        return self._select(_DECISIVE)

    def check_complete(self, call: Call, answer: Any) -> Any:  # noqa: ANN401 - whatever an engine returns
        """Return an answer; in that to an ``msearch`` each partial one is replaced by an error.

        Checked only if the request forbids partial answers. Servers then refuse most of them, but not all:
        a point in time may have been opened without some shards, and a proxy may answer.

        Raises:
            EngineError: the answer is partial, and the request forbids that.
        """
        if _truth(self.url.get(_PARTIAL, True)) is not False:
            return answer
        if call.method == "search":
            return check_complete(answer)
        return [_complete_or_error(one) for one in answer] if call.method == "msearch" else answer

    def _with_url_parameters(self, search: tuple[Any, ...]) -> tuple[Any, ...]:
        fitting = self._select(_HOW if search[0] is None else _ON_URL)
        return (*search, fitting) if fitting else search

    def _select(self, names: frozenset[str]) -> dict[str, Any]:
        return {name: value for name, value in self.url.items() if name in names}


def read_parameters(given: Mapping[str, Any]) -> Parameters:
    """Parse URL parameters, named as in the engines' API or as their clients spell them.

    Raises:
        ConfigError: a name is unknown, or has no meaning for a folded search.
    """
    named = {name.rstrip("_") if name in ("from_",) else name: value for name, value in given.items()}
    for name in ("source_includes", "source_excludes"):
        if name in named:
            named[f"_{name}"] = named.pop(name)
    if "scroll" in named:
        raise ConfigError(_SCROLL)
    for name in named:
        if name not in KNOWN:
            raise ConfigError.unknown("search parameter", str(name), KNOWN)
    body = {name: _value(name, value) for name, value in named.items() if name in _IN_BODY}
    if "sort" in named:
        body["sort"] = _sort(named["sort"])
    if "q" in named:
        body["query"] = {"query_string": {_QUERY[name]: named[name] for name in _QUERY if name in named}}
    elif orphans := sorted(_QUERY.keys() & named.keys()):
        raise ConfigError(f"{', '.join(orphans)}: needs a query in q; give one, or leave it out")
    if _SOURCE & named.keys():
        body["_source"] = _source(named)
    url = {name: value for name, value in named.items() if name in _ON_URL}
    return Parameters(url, body, _truth(named.get(_AS_NUMBERS, False)) is True)


def with_parameters(steps: Steps[JSON], parameters: Parameters) -> Steps[JSON]:
    """Run a search and add its URL parameters to each request."""
    tolerant = _truth(parameters.url.get("ignore_unavailable", False)) is True
    try:
        call = next(steps)
        while True:
            try:
                answer = parameters.check_complete(call, (yield parameters.for_call(call)))
            except BaseException as error:
                if tolerant and call.method == "all_mappings" and isinstance(error, IndexMissing):
                    call = steps.send({})
                else:
                    call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        found: JSON = end.value
    finally:
        steps.close()
    return _with_plain_totals(found) if parameters.as_numbers else found


def _complete_or_error(answer: Any) -> Any:  # noqa: ANN401 - an answer or an error
    try:
        return answer if isinstance(answer, BaseException) else check_complete(answer)
    except EngineError as error:
        return error


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    if name in _LISTS:
        return _names(name, value)
    if isinstance(value, str) and value.lstrip("-").isdecimal() and name != "timeout":
        return int(check_name(name, value, 20))
    return _truth(value)


def _truth(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a value; the texts of true and false become booleans."""
    return {"true": True, "false": False, "": True}.get(value, value) if isinstance(value, str) else value


def _names(name: str, value: object) -> list[Any]:
    if isinstance(value, str):
        return check_name(name, value, 10_000).split(",")
    if isinstance(value, list | tuple):
        return list(value)
    raise ConfigError(f"{name}: expected names separated by commas, got {quote(value)}")


def _sort(value: object) -> list[Any]:
    """Return the keys of a sort; as text they are ``field:asc``, separated by commas."""
    keys: list[Any] = []
    for key in _names("sort", value):
        field, _, order = key.rpartition(":") if isinstance(key, str) else (key, "", "")
        keys.append({field: order} if field and order in ("asc", "desc") else key)
    return keys


def _source(named: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    if "_source" in named:
        value = _truth(named["_source"])
        if isinstance(value, bool | Mapping):
            return value
        includes = _names("_source", value)
        if "_source_excludes" not in named:
            return includes
    else:
        includes = (
            _names("_source_includes", named["_source_includes"]) if "_source_includes" in named else []
        )
    found = {"includes": includes} if includes else {}
    if "_source_excludes" in named:
        found["excludes"] = _names("_source_excludes", named["_source_excludes"])
    return found


def _with_plain_totals(answer: JSON) -> JSON:
    """Return an answer with totals as plain numbers, those of inner hits included."""
    hits = answer.get("hits")
    if not isinstance(hits, Mapping):
        return answer
    total = hits.get("total")
    # Engines return -1 for a total that was not counted.
    plain = {**hits, "total": total.get("value", -1) if isinstance(total, Mapping) else -1}
    plain["hits"] = [
        {**hit, "inner_hits": {name: _with_plain_totals(inner) for name, inner in hit["inner_hits"].items()}}
        if "inner_hits" in hit
        else hit
        for hit in hits.get("hits", ())
    ]
    return {**answer, "hits": plain}
