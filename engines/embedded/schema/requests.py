"""Check options of bodies, URL parameters and bulk actions; an unknown one is refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from shinglefold.contracts.exclusive_writes import PreparedDocument
from shinglefold.documents import random_id
from shinglefold.errors import UnsupportedQuery, nearest, quote
from shinglefold.options.validation import check_bool, check_int, check_number, check_object, expected

#: Without effect here, because there is one copy of one shard.
_WITHOUT_EFFECT = frozenset(
    {
        "preference", "request_cache", "allow_partial_search_results", "batched_reduce_size",
        "max_concurrent_shard_requests", "pre_filter_shard_size", "ccs_minimize_roundtrips",
        "human", "pretty", "error_trace",
    }
)  # fmt: skip
#: Supported with these values only.
_VALUES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "search_type": frozenset({"query_then_fetch", "dfs_query_then_fetch"}),
        "ignore_unavailable": frozenset({"false"}),
        "allow_no_indices": frozenset({"true"}),
        "expand_wildcards": frozenset({"open", "all"}),
    }
)
_VERBS = ("index", "create", "update", "delete")
#: Metadata that servers know and this engine does not.
_REFUSED = frozenset(
    {"_routing", "routing", "_version", "version", "version_type", "if_seq_no", "if_primary_term", "pipeline",
     "_parent", "parent", "script", "retry_on_conflict", "require_alias", "dynamic_templates"}
)  # fmt: skip
_LONGEST_ID = 512
_META = frozenset({"_op_type", "_index", "_id", "_ready"})
#: Names that no field of a document may have; servers refuse them, too.
METADATA = frozenset(
    {"_id", "_index", "_routing", "_source", "_version", "_seq_no", "_primary_term", "_field_names",
     "_ignored", "_nested_path", "_doc_count", "_feature", "_data_stream_timestamp"}
)  # fmt: skip


def unsupported_error(what: str, name: str, known: Iterable[str]) -> UnsupportedQuery:
    """Return the error for an unknown name, with the most similar known one."""
    names = sorted(known)
    near = nearest(name, names)
    hint = f"; did you mean {near!r}?" if near else "."
    return UnsupportedQuery(
        f"the embedded engine supports no {what} {name!r}{hint} Supported: {', '.join(names) or 'none'}."
    )


def check_options(what: str, given: object, known: Iterable[str]) -> Mapping[str, Any]:
    """Return an object of options after checking that every key is known.

    Raises:
        UnsupportedQuery: it is not an object, or has an unknown key.
    """
    names = tuple(known)
    found = check_object(what, given, f"an object with {', '.join(names)}", UnsupportedQuery)
    for key in found:
        if key not in names:
            raise unsupported_error(f"option of {what}", str(key), names)
    return found


def single_entry(what: str, given: object) -> tuple[str, Any]:
    """Return key and value of an object with exactly one key."""
    if not isinstance(given, Mapping) or len(given) != 1:
        raise expected(what, "an object with exactly one key", given, UnsupportedQuery)
    key, value = next(iter(given.items()))
    return str(key), value


def int_option(what: str, value: object, low: int = 0) -> int:
    """Return an integer of 32 bits that is at least ``low``."""
    check_int(what, value, low, 2**31 - 1, error=UnsupportedQuery)
    return cast("int", value)


def number_option(what: str, value: object, low: float = 0.0) -> float:
    """Return a number that is at least ``low`` and fits in a float of 32 bits."""
    check_number(what, value, low, 3.4e38, error=UnsupportedQuery)
    return float(cast("float", value))


def bool_option(what: str, value: object) -> bool:
    """Return true or false."""
    check_bool(what, value, UnsupportedQuery)
    return cast("bool", value)


def strings_option(what: str, value: object) -> tuple[str, ...]:
    """Return strings that are given as one or as a list."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise expected(what, "a string or a list of strings", value, UnsupportedQuery)
    return tuple(items)


def check_parameters(parameters: Mapping[str, Any] | None) -> None:
    """Check that the URL parameters of a search are supported.

    Raises:
        UnsupportedQuery: one is not, and would change the result.
    """
    for name, value in (parameters or {}).items():
        if name in _WITHOUT_EFFECT:
            continue
        if name not in _VALUES:
            raise unsupported_error("search parameter", str(name), [*_WITHOUT_EFFECT, *_VALUES])
        if str(value).lower() not in _VALUES[name]:
            has = " or ".join(sorted(_VALUES[name]))
            raise UnsupportedQuery(f"the embedded engine has {name} {has} only, not {quote(value)}")


class RefusedAction(Exception):
    """An action that is refused, with HTTP status and reason. Callers of the engine never see it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Action:
    """An action on one document.

    ``source`` is the document, or the partial document of an update. ``upsert`` is what an update of a
    missing document writes; None makes it fail. ``prepared`` is the document as a worker prepared it.
    """

    verb: str
    index: str
    id: str
    source: Mapping[str, Any]
    upsert: Mapping[str, Any] | None = None
    prepared: PreparedDocument | None = None


def read_action(given: Mapping[str, Any]) -> Action:
    """Read an action.

    Raises:
        RefusedAction: it is not valid.
    """
    verb = given.get("_op_type", "index")
    if verb not in _VERBS:
        raise RefusedAction(400, f"unknown _op_type {verb!r}; known: {', '.join(_VERBS)}")
    for name in given.keys() & _REFUSED:
        raise RefusedAction(400, f"the embedded engine has no {name!r} for bulk actions; leave it out")
    index = given.get("_index")
    if not isinstance(index, str) or not index:
        raise RefusedAction(400, "_index is missing")
    id_ = _id(verb, given.get("_id"))
    if verb == "delete":
        return Action(verb, index, id_, {})
    source = given["_source"] if "_source" in given else _rest(given)
    if verb == "update":
        return _update(index, id_, source, given)
    return Action(verb, index, id_, _document("_source", source), prepared=given.get("_ready"))


def _update(index: str, id_: str, source: object, given: Mapping[str, Any]) -> Action:
    body = dict(_object("update", source))
    if "doc" in given:
        body = {name: given[name] for name in ("doc", "upsert", "doc_as_upsert") if name in given}
    unknown = body.keys() - {"doc", "upsert", "doc_as_upsert"}
    if unknown or "doc" not in body:
        raise RefusedAction(400, f"an update takes doc, upsert and doc_as_upsert, got {sorted(body)}")
    changes = _document("doc", body["doc"])
    upsert = changes if body.get("doc_as_upsert") is True else body.get("upsert")
    return Action("update", index, id_, changes, None if upsert is None else _document("upsert", upsert))


def _id(verb: str, given: object) -> str:
    if given is None and verb in ("index", "create"):
        return random_id()
    if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
        raise RefusedAction(400, f"{given!r} is not a valid _id for {verb}; give a non-empty string")
    id_ = str(given)
    try:
        size = len(id_.encode())
    except UnicodeEncodeError:
        raise RefusedAction(400, "the _id is not valid Unicode") from None
    if size > _LONGEST_ID:
        raise RefusedAction(400, f"the _id has {size} bytes, {_LONGEST_ID} are allowed")
    return id_


def _rest(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that are not metadata: they are the document if there is no ``_source``."""
    return {name: value for name, value in given.items() if name not in _META}


def _document(what: str, value: object) -> Mapping[str, Any]:
    document = _object(what, value)
    for name in document.keys() & METADATA:
        raise RefusedAction(400, f"{name!r} is metadata and can't be a field of a document; leave it out")
    return document


def _object(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RefusedAction(400, f"{what}: expected an object, got {type(value).__name__}")
    return value
