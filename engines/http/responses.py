"""Turn answers of servers into the shapes of the ``Engine`` contract; check indices and ids."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from types import NoneType
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import MsgspecError
from msgspec.json import decode

from shinglefold.contracts.engine import JSON, Search, search_parts
from shinglefold.documents import well_formed
from shinglefold.engines.http.errors import (
    NotRefreshed,
    broken_answer,
    refusal,
    under_pit,
    unexpected_answer,
    unrefreshed_shards,
)
from shinglefold.errors import EngineError, IndexMissing, UnsupportedQuery
from shinglefold.model.recipe import DIFFERING, META_KEY

T = TypeVar("T")
#: The keys of answers, as messages name them.
HITS, ITEMS = "hits.hits, a list of objects", "items, one for each action"
SETTINGS = "the settings of each index"
_PATTERN = frozenset('*?,<>|"\\/ ')


def one_mapping(index: str, answer: Mapping[str, Any], who: str) -> JSON:
    """Return the mappings of an index, or those behind an alias or a pattern combined.

    Keys of ``_meta`` whose values differ are left out.

    Raises:
        IndexMissing: a pattern matches no index.
    """
    found = [entry.get("mappings") or {} for entry in answer.values()]
    if not found:
        raise IndexMissing(f"{who}: no index fits {index!r}. Create it first, or check its name.")
    if len(found) == 1:
        return {"properties": {}, **found[0]}
    together: JSON = {"properties": {}}
    for mappings in found:
        _merge_properties(together["properties"], mappings.get("properties") or {})
        # The combined mapping is as open to unmapped fields as any single one.
        together |= {key: mappings[key] for key in ("dynamic", "runtime") if mappings.get(key)}
    metas = [_without_product(mappings.get("_meta") or {}) for mappings in found]
    common = {key: value for key, value in metas[0].items() if all(meta.get(key) == value for meta in metas)}
    if META_KEY not in common and any(META_KEY in meta for meta in metas):
        common[DIFFERING] = sorted(answer)
    return {**together, "_meta": common} if common else together


def with_objects(mappings: Mapping[str, Any]) -> JSON:
    """Return mappings with objects instead of names with dots, which ``"subobjects": false`` makes."""
    properties = mappings.get("properties")
    return dict(mappings) if not properties else {**mappings, "properties": _in_objects(properties)}


def _in_objects(properties: Mapping[str, Any]) -> JSON:
    made: JSON = {}
    for name, node in properties.items():
        *way, last = name.split(".")
        there = made
        for part in way:
            there = there.setdefault(part, {}).setdefault("properties", {})
        there[last] = with_objects(node) | _merged_children(there.get(last), node)
    return made


def _merged_children(there: Mapping[str, Any] | None, node: Mapping[str, Any]) -> JSON:
    """Return the fields below a field: those of the indices before, and its own."""
    before = (there or {}).get("properties")
    return {"properties": {**before, **_in_objects(node.get("properties") or {})}} if before else {}


def _merge_properties(properties: JSON, more: Mapping[str, Any]) -> None:
    """Add the fields of another index, objects field by field."""
    for name, definition in more.items():
        there = properties.get(name)
        if there is not None and "properties" in there and "properties" in definition:
            properties[name] = {**there, "properties": dict(there["properties"])}
            _merge_properties(properties[name]["properties"], definition["properties"])
        else:
            properties[name] = definition


def _without_product(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``_meta`` without the version that wrote the recipe, which equal indices may not share."""
    recipe = meta.get(META_KEY)
    if not isinstance(recipe, Mapping):
        return meta
    return {**meta, META_KEY: {name: value for name, value in recipe.items() if name != "product"}}


def version_in(answer: Any, who: str) -> str:  # noqa: ANN401 - whatever a server says
    """Return the version in the answer at the root of a server.

    Raises:
        EngineError: it has none, so it is some other server.
    """
    try:
        return str(answer["version"]["number"])
    except (LookupError, TypeError) as error:
        raise EngineError(f"{who} answers, but tells no version; check the address") from error


def check_name(index: object) -> None:
    """Check that a name is that of one index.

    Raises:
        UnsupportedQuery: it is a pattern, a list, or empty.
    """
    if not isinstance(index, str) or not index or index == "_all" or _PATTERN & set(index):
        raise UnsupportedQuery(f"{index!r} does not name one index; give a name without patterns and commas")
    check_given(index)


def check_searched(index: str | None, body: Mapping[str, Any]) -> None:
    """Check that a search names either an index or a point in time.

    Raises:
        UnsupportedQuery: it names both, or neither: servers would search all indices.
    """
    if index is None and "pit" not in body:
        raise UnsupportedQuery("search: name an index, or a point in time in pit")
    if index is not None and "pit" in body:
        raise UnsupportedQuery("search: a point in time has its index; give None as index")
    if index is not None:
        check_given(index)


def check_given(index: object) -> None:
    """Check that a name of one index or several is not empty, and can be sent.

    Raises:
        UnsupportedQuery: it is empty, which means all indices to servers, or has half a surrogate pair.
    """
    if not isinstance(index, str) or not index:
        raise UnsupportedQuery(f"{index!r} names no index; an empty name would mean all of them")
    if well_formed(index) != index:
        raise UnsupportedQuery(f"{index!r} names no index: it is not valid Unicode; check the name")


def may_be_stored(id_: str) -> bool:
    """Return whether a document may have an id: no id is empty, or has half a surrogate pair."""
    return bool(id_) and well_formed(id_) == id_


def check_local(index: str) -> None:
    """Check that a name means indices of this cluster.

    Raises:
        UnsupportedQuery: the indices are of another cluster, which can only be searched from here.
    """
    for name in index.split(","):
        cluster, colon, own = name.partition(":")
        if colon and not name.startswith("<"):
            raise UnsupportedQuery(
                f"{name!r} is of the cluster {cluster!r}, where this one can only search: give the address "
                f"of {cluster!r} itself, and the name {own!r}"
            )


def read_answer(answer: Any, who: str, expected: str, read: Callable[[JSON], T]) -> T:  # noqa: ANN401
    """Return what a request needs of its answer; the Elasticsearch client wraps answers in an object.

    Args:
        expected: the keys that ``read`` needs, for the message.
        read: raises a built-in error if the answer lacks them.

    Raises:
        EngineUnavailable: the answer is empty, a text such as the login page of a proxy, or other JSON.
    """
    body = getattr(answer, "body", answer)
    if body is None or isinstance(body, str | bytes):
        raise broken_answer(who, came=body)
    try:
        return read(_object(body))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        came = error.args[0] if isinstance(error, _WrongType) else body
        raise unexpected_answer(who, expected, came) from error


def _object(value: Any) -> JSON:  # noqa: ANN401 - JSON
    """Return a JSON object as a dictionary.

    Raises:
        TypeError: it is another value.
    """
    if not isinstance(value, Mapping):
        raise TypeError(value)
    return dict(value)


def objects_in(key: str, answer: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the object at a key of each entry of an answer, such as the settings of each index."""
    return {name: _object(entry[key]) for name, entry in answer.items()}


class _WrongType(TypeError):
    """A part of a hit is of a type that engines do not return; the message quotes both."""


_OBJECT = (Mapping, NoneType)
#: The parts of hits that are read here, and their types. Each may be missing.
_OF_HITS: Mapping[str, tuple[type, ...]] = {
    "_index": (str, NoneType),
    "_id": (str, NoneType),
    "_routing": (str, NoneType),
    "_score": (float, int, NoneType),
    "_source": _OBJECT,
    "fields": _OBJECT,
    "sort": (list, NoneType),
    "inner_hits": _OBJECT,
}


def search_answer(answer: JSON) -> JSON:
    """Return the answer to a search, whose hits are objects in a list, with parts as engines return them.

    Cost: .4 µs a hit.
    """
    parts = [answer["hits"]]
    while parts:
        hits = list(chain.from_iterable(map(_hits_in, parts)))
        names = _OF_HITS.keys() & set().union(*hits)
        for name in names:
            for kind in _types(hits, name):
                if not issubclass(kind, _OF_HITS[name]):
                    hit = next(hit for hit in hits if type(hit.get(name)) is kind)
                    raise _WrongType(f"{name}: {hit[name]!r} in {hit}")
        inner = (hit.get("inner_hits") or {} for hit in hits) if "inner_hits" in names else ()
        parts = [one["hits"] for several in inner for one in several.values()]
    return answer


def _types(hits: Sequence[JSON], name: str) -> set[type]:
    """Return the types of the values that hits have at a key; quick where all have it."""
    try:
        return {*map(type, map(itemgetter(name), hits))}
    except KeyError:
        return {type(hit[name]) for hit in hits if name in hit}


def _hits_in(part: Mapping[str, Any]) -> Sequence[JSON]:
    """Return the hits in ``hits``, of a search or of inner hits, whose total is a number."""
    hits, total = part["hits"], part.get("total")
    if not isinstance(hits, list) or not all(issubclass(kind, Mapping) for kind in {*map(type, hits)}):
        raise TypeError(hits)
    if total is not None and not isinstance(total["value"] if isinstance(total, Mapping) else total, int):
        raise _WrongType(f"total: {total}")
    return hits


#: Parameters that the header of a search in ``_msearch`` may have.
_HEADER = frozenset(
    {
        "routing", "preference", "search_type", "request_cache", "allow_partial_search_results",
        "ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled",
        "ccs_minimize_roundtrips",
    }
)  # fmt: skip


def in_address(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as text for a URL: true and false as words, lists with commas."""
    return {name: _url_text(value) for name, value in parameters.items() if value is not None}


def search_path(index: str | None, end: str) -> str:
    """Return the path of a request to an index, or to all of the cluster."""
    return f"/{end}" if index is None else f"/{quote(index, safe=',*')}/{end}"


def _url_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_url_text, value))
    return str(value)


def read_json(answer: str | bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the content of an answer.

    The standard library reads what the fast reader refuses and sources may contain: halves of a surrogate
    pair, numbers beyond a double, NaN.

    Raises:
        json.JSONDecodeError: it is not JSON.

    Cost: 2 ns a byte; the standard library takes 3 to 4.
    """
    try:
        return decode(answer)
    except (MsgspecError, ValueError, RecursionError):
        return json.loads(answer)


#: Seconds after which a missing shard counts as one without a primary. A server waits a minute for the
#: primary, by a coarse clock, and then leaves the shard out.
_PRIMARY_TIMEOUT = 50.0


def check_refreshed(answer: Mapping[str, Any], seconds: float, who: str) -> None:
    """Check that a refresh reached every copy that answers searches.

    A copy whose refresh failed still answers searches. A copy that is on no node counts as neither successful
    nor failed. It does no harm, as it will be made from its refreshed primary. A shard without a primary is
    counted the same way, but only after a minute, and its copies may answer searches.

    Args:
        answer: the answer of the server to the refresh.
        seconds: how long the answer took.

    Raises:
        NotRefreshed: some copies were not refreshed.
    """
    shards = answer["_shards"]
    missing = int(shards.get("total") or 0) - int(shards.get("successful") or 0)
    if shards.get("failed") or (missing > 0 and seconds >= _PRIMARY_TIMEOUT):
        raise NotRefreshed(unrefreshed_shards(shards, who))


def check_searches(searches: Sequence[Search]) -> tuple[list[UnsupportedQuery | None], list[Search]]:
    """Return for each search why it can't be sent, or None; and the searches that can be sent."""
    refusals = [_refusal_of(search) for search in searches]
    return refusals, [search for search, no in zip(searches, refusals, strict=True) if no is None]


def msearch_lines(searches: Sequence[Search]) -> list[JSON]:
    """Return the lines of an ``_msearch`` request: a header and a body for each search."""
    return [line for search in searches for line in (_header(search), dict(search[1]))]


def fits_msearch(search: Search) -> bool:
    """Return whether a search may be one of several in an ``_msearch`` request."""
    return (search_parts(search)[2] or {}).keys() <= _HEADER


def parse_msearch(searches: Sequence[Search], answer: JSON, who: str) -> list[JSON | EngineError]:
    """Return the result or error of each search in an ``_msearch`` answer, as if it was sent alone."""
    return [_result_of(*each, who) for each in zip(searches, answer["responses"], strict=True)]


def insert_refusals(
    refusals: Sequence[UnsupportedQuery | None], answers: Sequence[JSON | EngineError]
) -> list[JSON | EngineError]:
    """Return one result for each search: its refusal, or else the next of the answers."""
    others = iter(answers)
    return [next(others) if refusal is None else refusal for refusal in refusals]


def _header(search: Search) -> JSON:
    index, _, parameters = search_parts(search)
    return {**({} if index is None else {"index": index}), **in_address(parameters or {})}


def _refusal_of(search: Search) -> UnsupportedQuery | None:
    try:
        check_searched(search[0], search[1])
    except UnsupportedQuery as error:
        return error
    return None


def _result_of(search: Search, answer: JSON, who: str) -> JSON | EngineError:
    if "error" in answer:
        error = refusal(int(answer.get("status", 500)), answer, who)
        return under_pit(error) if search[0] is None else error
    return {name: value for name, value in search_answer(answer).items() if name != "status"}
