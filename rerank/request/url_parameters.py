"""URL parameters of a search: which requests each one goes with, and which move into the body.

One of them names a search pipeline of OpenSearch. Its request processors decide what is found, so windows go
through them. Its response processors shape a page, so only the hits of the page go through these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, EngineError, quote
from shinglefold.options.validation import check_name
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.hits import check_complete
from shinglefold.rerank.request.arguments import sort_keys

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
        "cancel_after_time_interval", "typed_keys", "include_named_queries_score", "phase_took",
        "verbose_pipeline", "min_compatible_shard_node", "force_synthetic_source", "human", "pretty",
        "error_trace",
    }
)  # fmt: skip
#: Parameters of these that decide the hits and their order.
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
#: Keys of a body that no URL has; the clients of Elasticsearch take them as arguments.
_BODY_ALONE = frozenset(
    {
        "query", "aggs", "aggregations", "highlight", "suggest", "fields", "collapse", "post_filter",
        "rescore", "knn", "min_score", "search_after", "script_fields", "runtime_mappings", "pit", "ext",
    }
)  # fmt: skip
_LISTS = frozenset({"stored_fields", "docvalue_fields", "stats"})
_SOURCE = frozenset({"_source", "_source_includes", "_source_excludes"})
#: A query in Lucene's syntax and its options → their names in the body.
_QUERY = {
    "q": "query", "df": "default_field", "analyzer": "analyzer", "analyze_wildcard": "analyze_wildcard",
    "default_operator": "default_operator", "lenient": "lenient",
}  # fmt: skip
#: A suggestion of terms and its options → their names in the body.
_SUGGEST = {"suggest_text": "text", "suggest_size": "size", "suggest_mode": "suggest_mode"}
_AS_NUMBERS = "rest_total_hits_as_int"
_ON_URL = _WHERE | _HOW | _NOT_UNDER_PIT
KNOWN = (
    _ON_URL | _IN_BODY | _SOURCE | _QUERY.keys() | _SUGGEST.keys() | {"sort", "suggest_field", _AS_NUMBERS}
)
_SCROLL = (
    "scroll: a folded search has no scroll context. Page with a cursor instead: "
    '"ext": {"dedup": {"cursor": true}}, then the cursor of each answer, or FoldedSearch.pages'
)
#: Parts of hits that documents or the request name themselves.
_OF_DOCUMENTS = frozenset(
    {"_source", "fields", "highlight", "sort", "_explanation", "suggest", "profile", "dedup"}
)
#: The key of a body, and its value that skips the pipeline of an index.
KEY, NONE = "search_pipeline", "_none"
#: Response processors that change each hit by itself. All others may remove hits, or change their order.
_EACH_HIT = ("rename_field", "split", "sort")
#: Raises the number of hits read, which folding chooses itself.
_OVERSAMPLE = "oversample"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a search: ``url`` goes with its requests, ``body`` into their bodies.

    ``as_numbers``: return totals as plain numbers.
    """

    url: Mapping[str, Any]
    body: Mapping[str, Any]
    as_numbers: bool = False

    def in_body(self, given: Mapping[str, Any]) -> JSON:
        """Return a body with those that belong into it; as in the engines, lists of fields are added."""
        body = {**given, **self.body}
        if "sort" in self.body:
            body["sort"] = [*sort_keys(given), *self.body["sort"]]
        if "docvalue_fields" in self.body:
            body["docvalue_fields"] = [*(given.get("docvalue_fields") or ()), *self.body["docvalue_fields"]]
        if self.as_numbers and _truth(body.setdefault("track_total_hits", True)) not in (True, False):
            raise ConfigError(
                f"{_AS_NUMBERS}: a plain number can't say that hits are counted up to "
                f"{quote(body['track_total_hits'])} only; leave out track_total_hits, or give true or false"
            )
        return body

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

    None means that a parameter is not given, as in the clients.
    """
    given = {name: value for name, value in given.items() if value is not None}
    named = {name.rstrip("_") if name in ("from_",) else name: value for name, value in given.items()}
    for name in ("source_includes", "source_excludes"):
        if name in named:
            named[f"_{name}"] = named.pop(name)
    _check(named)
    body = {name: _value(name, value) for name, value in named.items() if name in _IN_BODY}
    if "sort" in named:
        body["sort"] = _sort(named["sort"])
    if "q" in named:
        body["query"] = {"query_string": {_QUERY[name]: named[name] for name in _QUERY if name in named}}
    if "suggest_field" in named:
        body["suggest"] = _suggestion(named)
    if _SOURCE & named.keys():
        body["_source"] = _source(named)
    url = {name: value for name, value in named.items() if name in _ON_URL}
    return Parameters(url, body, _truth(named.get(_AS_NUMBERS, False)) is True)


def _check(named: Mapping[str, Any]) -> None:
    if "scroll" in named:
        raise ConfigError(_SCROLL)
    for name in named:
        if name in _BODY_ALONE:
            raise ConfigError(f"{name} belongs into the body: search({{{name!r}: …}})")
        if name not in KNOWN:
            raise ConfigError.unknown("search parameter", str(name), KNOWN)
    for main, options in (("q", _QUERY), ("suggest_field", _SUGGEST)):
        if main not in named and (orphans := sorted(options.keys() & named.keys())):
            raise ConfigError(f"{', '.join(orphans)}: needs {main}; give it, or leave this out")


def with_parameters(steps: Steps[JSON], parameters: Parameters) -> Steps[JSON]:
    """Run a search and add its URL parameters to each request."""
    try:
        call = next(steps)
        while True:
            try:
                answer = parameters.check_complete(call, (yield parameters.for_call(call)))
            except BaseException as error:
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
    value = _truth(named.get("_source", True))
    if value is False or isinstance(value, Mapping):
        return value
    includes = [] if value is True else _names("_source", value)
    includes = _names("_source_includes", named.get("_source_includes", includes))
    excludes = _names("_source_excludes", named.get("_source_excludes", ()))
    if includes and not excludes:
        return includes if "_source_includes" not in named else {"includes": includes}
    found = {"includes": includes} if includes else {}
    return (found | ({"excludes": excludes} if excludes else {})) or True


def _suggestion(named: Mapping[str, Any]) -> JSON:
    """Return the suggestion of terms that the URL asks for, under the name of its field as in the engines."""
    field = check_name("suggest_field", named["suggest_field"])
    given = {_SUGGEST[name]: _value(name, named[name]) for name in _SUGGEST if name in named}
    text = {"text": given.pop("text")} if "text" in given else {}
    return {field: {**text, "term": {"field": field, **given}}}


def _with_plain_totals(part: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a part of an answer with totals of hits as plain numbers, at every depth."""
    if isinstance(part, list):
        return [_with_plain_totals(one) for one in part]
    if not isinstance(part, Mapping):
        return part
    found = {
        name: value if name in _OF_DOCUMENTS else _with_plain_totals(value) for name, value in part.items()
    }
    if isinstance(part.get("hits"), list) and "max_score" in part:
        total = part.get("total")
        # Engines return -1 for a total that was not counted.
        found["total"] = total.get("value", -1) if isinstance(total, Mapping) else -1
    return found


@dataclass(frozen=True, slots=True)
class SearchPipeline:
    """The pipelines that stand for one of an index or a request.

    ``window``: of requests that find hits. ``hits``: of the request for the hits of a page and their members.
    ``page``: of a further request for the hits shown alone, which it may cut or reorder; None without one.
    """

    window: Any = NONE
    hits: Any = NONE
    page: JSON | None = field(default=None)

    @property
    def complete(self) -> Any:  # noqa: ANN401 - JSON
        """The pipeline of a window whose hits come with everything that is shown of them."""
        parts = [one for one in (self.window, self.hits) if one != NONE]
        return {key: value for one in parts for key, value in one.items()} or NONE

    @classmethod
    def of(cls, definition: Mapping[str, Any], name: str) -> "SearchPipeline":
        """Return what a definition means; refuse a script, which may change any part of a request."""
        requests = _processors(definition, "request_processors")
        if any("script" in one for one in requests):
            raise ConfigError(
                f"the search pipeline {name} has the request processor 'script', which may change how many "
                'hits a window has; name another pipeline ("search_pipeline": "_none" takes none)'
            )
        finding = {
            "request_processors": [one for one in requests if _OVERSAMPLE not in one],
            "phase_results_processors": _processors(definition, "phase_results_processors"),
        }
        responses = _processors(definition, "response_processors")
        each = [one for one in responses if one.keys() <= set(_EACH_HIT)]
        sampled = [one for one in requests if _OVERSAMPLE in one]
        return cls(
            {key: value for key, value in finding.items() if value} or NONE,
            {"response_processors": each} if each else NONE,
            {"request_processors": sampled, "response_processors": responses}
            if len(each) < len(responses)
            else None,
        )


def _processors(definition: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    return definition.get(name) or []
