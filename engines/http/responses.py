"""Answers of servers in the shapes of the ``Engine`` contract, and the names they are asked by."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import MsgspecError
from msgspec.json import decode

from shinglefold.contracts.engine import JSON, Search, search_parts
from shinglefold.engines.http.errors import NotRefreshed, refusal, shards_told, under_pit
from shinglefold.errors import EngineError, IndexMissing, UnsupportedQuery
from shinglefold.model.recipe import DIFFERING, META_KEY

_PATTERN = frozenset('*?,<>|"\\/ ')


def one_mapping(index: str, answer: Mapping[str, Any], who: str) -> JSON:
    """Return the mappings of an index, or what those behind an alias or a pattern have together.

    Where several differ in a key of ``_meta``, it is left out: none of them speaks for all.

    Raises:
        IndexMissing: a pattern fits none.
    """
    found = [entry.get("mappings") or {} for entry in answer.values()]
    if not found:
        raise IndexMissing(f"{who}: no index fits {index!r}. Create it first, or check its name.")
    if len(found) == 1:
        return {"properties": {}, **found[0]}
    together: JSON = {"properties": {}}
    for mappings in found:
        _join(together["properties"], mappings.get("properties") or {})
        # Where one of them stores fields without mapping them, so may all.
        together |= {key: mappings[key] for key in ("dynamic", "runtime") if mappings.get(key)}
    metas = [_alike(mappings.get("_meta") or {}) for mappings in found]
    common = {key: value for key, value in metas[0].items() if all(meta.get(key) == value for meta in metas)}
    if META_KEY not in common and any(META_KEY in meta for meta in metas):
        common[DIFFERING] = sorted(answer)
    return {**together, "_meta": common} if common else together


def with_objects(mappings: Mapping[str, Any]) -> JSON:
    """Return mappings whose fields stand in their objects: with ``"subobjects": false`` names have points."""
    properties = mappings.get("properties")
    return dict(mappings) if not properties else {**mappings, "properties": _in_objects(properties)}


def _in_objects(properties: Mapping[str, Any]) -> JSON:
    made: JSON = {}
    for name, node in properties.items():
        *way, last = name.split(".")
        there = made
        for part in way:
            there = there.setdefault(part, {}).setdefault("properties", {})
        there[last] = with_objects(node) | _below(there.get(last), node)
    return made


def _below(there: Mapping[str, Any] | None, node: Mapping[str, Any]) -> JSON:
    """Return the fields below a field that were met before it, together with its own."""
    before = (there or {}).get("properties")
    return {"properties": {**before, **_in_objects(node.get("properties") or {})}} if before else {}


def _join(properties: JSON, more: Mapping[str, Any]) -> None:
    """Add fields to those of other indices, objects field by field."""
    for name, definition in more.items():
        there = properties.get(name)
        if there is not None and "properties" in there and "properties" in definition:
            properties[name] = {**there, "properties": dict(there["properties"])}
            _join(properties[name]["properties"], definition["properties"])
        else:
            properties[name] = definition


def _alike(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``_meta`` without what may differ between indices that are made alike: who noted the recipe."""
    recipe = meta.get(META_KEY)
    if not isinstance(recipe, Mapping):
        return meta
    return {**meta, META_KEY: {name: value for name, value in recipe.items() if name != "product"}}


def version_in(answer: Any, who: str) -> str:  # noqa: ANN401 - whatever a server says
    """Return the version that the answer at the root of a server tells.

    Raises:
        EngineError: it tells none, so it is another server.
    """
    try:
        return str(answer["version"]["number"])
    except (LookupError, TypeError) as error:
        raise EngineError(f"{who} answers, but tells no version; check the address") from error


def check_name(index: object) -> None:
    """Check that a name is one index's, before it is created or deleted.

    Raises:
        UnsupportedQuery: it is a pattern, a list, or none at all.
    """
    if not isinstance(index, str) or not index or index == "_all" or _PATTERN & set(index):
        raise UnsupportedQuery(f"{index!r} is no name for one index; give one without patterns and commas")


def check_searched(index: str | None, body: Mapping[str, Any]) -> None:
    """Check that a search says where: an index or a point in time.

    Raises:
        UnsupportedQuery: it says neither, which servers take for all indices, or both.
    """
    if index is None and "pit" not in body:
        raise UnsupportedQuery("search: name an index, or a point in time in pit")
    if index is not None and "pit" in body:
        raise UnsupportedQuery("search: a point in time has its index; give None as index")


def check_given(index: object) -> None:
    """Check that there is a name, of one index or several.

    Raises:
        UnsupportedQuery: there is none, which servers take for all indices.
    """
    if not isinstance(index, str) or not index:
        raise UnsupportedQuery(f"{index!r} names no index; an empty name would mean all of them")


def check_local(index: str) -> None:
    """Check that a name is of this cluster: what is asked of another one's indices would go unanswered.

    Raises:
        UnsupportedQuery: it is another cluster's.
    """
    for name in index.split(","):
        cluster, colon, own = name.partition(":")
        if colon and not name.startswith("<"):
            raise UnsupportedQuery(
                f"{name!r} is of the cluster {cluster!r}, where this one can only search: give the address "
                f"of {cluster!r} itself, and the name {own!r}"
            )


def plain(answer: Any) -> JSON:  # noqa: ANN401 - the clients' own types
    """Return an answer as a dictionary: one client wraps it, the other does not."""
    return dict(getattr(answer, "body", answer))


#: What the header of a search among several may say.
_HEADER = frozenset(
    {
        "routing", "preference", "search_type", "request_cache", "allow_partial_search_results",
        "ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled",
        "ccs_minimize_roundtrips",
    }
)  # fmt: skip


def in_address(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as an address has them: words for true and false, commas between several."""
    return {name: _text(value) for name, value in parameters.items() if value is not None}


def fits_header(parameters: Mapping[str, Any]) -> bool:
    """Tell whether a search with these may be one of several in a request."""
    return parameters.keys() <= _HEADER


def search_path(index: str | None, end: str) -> str:
    """Return the path of a search, ``_search``, or of opening a point in time."""
    return f"/{end}" if index is None else f"/{quote(index, safe=',*')}/{end}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)


def read_json(answer: str | bytes) -> Any:  # noqa: ANN401 - JSON
    """Return what an answer holds.

    What the fast reader refuses and the standard library takes (halves of a surrogate pair, numbers beyond a
    double, NaN) stands in sources as they were indexed, and is read as before.

    Raises:
        json.JSONDecodeError: it is no JSON.

    Cost: 2 ns a byte of a window, where the standard library takes 3 to 4.
    """
    try:
        return decode(answer)
    except (MsgspecError, ValueError, RecursionError):
        return json.loads(answer)


#: A server waits a minute for a shard without a primary and then leaves it out of what was done. In seconds,
#: fewer than these, as its clock is coarse.
_WAITED = 50.0


def check_refreshed(answer: Mapping[str, Any], seconds: float, who: str) -> None:
    """Check that searches see everything now, whichever copies they ask.

    A copy on which a refresh fails stays what it is and is asked by searches as before. Copies that no node
    has are neither successful nor failed, and nobody asks them: each is made from its primary, refreshed.
    A shard that has no primary is told in the same way, but only after a minute, and its copies may be asked.

    Args:
        answer: to the request for the refresh.
        seconds: after which it came.

    Raises:
        NotRefreshed: some copies may not have it.
    """
    shards = answer.get("_shards") or {}
    missing = int(shards.get("total") or 0) - int(shards.get("successful") or 0)
    if shards.get("failed") or (missing > 0 and seconds >= _WAITED):
        raise NotRefreshed(shards_told(shards, who))


def checked(searches: Sequence[Search]) -> tuple[list[UnsupportedQuery | None], list[Search]]:
    """Return, for each search, why it can't be sent, or None; and those that can be."""
    refusals = [_refused(search) for search in searches]
    return refusals, [search for search, no in zip(searches, refusals, strict=True) if no is None]


def lines(searches: Sequence[Search]) -> list[JSON]:
    """Return the lines of a request: for each search where and with what parameters, and its body."""
    return [line for search in searches for line in (_header(search), dict(search[1]))]


def fits(search: Search) -> bool:
    """Tell whether a search may stand beside others in one request."""
    return fits_header(search_parts(search)[2] or {})


def meant(searches: Sequence[Search], answer: JSON, who: str) -> list[JSON | EngineError]:
    """Return what a server's answer says of each search, as if it had been sent alone."""
    return [_meant(*each, who) for each in zip(searches, answer["responses"], strict=True)]


def in_place(
    refusals: Sequence[UnsupportedQuery | None], answers: Sequence[JSON | EngineError]
) -> list[JSON | EngineError]:
    """Return the answers in order, each refusal in the place of its search."""
    others = iter(answers)
    return [next(others) if refusal is None else refusal for refusal in refusals]


def _header(search: Search) -> JSON:
    index, _, parameters = search_parts(search)
    return {**({} if index is None else {"index": index}), **in_address(parameters or {})}


def _refused(search: Search) -> UnsupportedQuery | None:
    try:
        check_searched(search[0], search[1])
    except UnsupportedQuery as error:
        return error
    return None


def _meant(search: Search, answer: JSON, who: str) -> JSON | EngineError:
    if "error" in answer:
        error = refusal(int(answer.get("status", 500)), answer, who)
        return under_pit(error) if search[0] is None else error
    return {name: value for name, value in answer.items() if name != "status"}
