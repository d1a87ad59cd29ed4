"""The fields that mappings have, and checks of the names that requests give."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shinglefold.errors import ConfigError
from shinglefold.rerank.representatives import load_policies
from shinglefold.rerank.request.fold_options import Explain, FoldOptions

#: Fields of every document that no mapping names.
_METADATA = ("_id", "_index", "_score", "_seq_no", "_doc", "_shard_doc", "_routing", "_version", "_ignored")
#: Objects whose keys no mapping names.
_FLAT = ("flattened", "flat_object", "object")
_UNMAPPED = ("false", "runtime")
#: Queries of the shape {QUERY: {FIELD: …}}.
_BY_FIELD = frozenset(
    {
        "term", "terms", "terms_set", "match", "match_phrase", "match_phrase_prefix", "match_bool_prefix",
        "prefix", "wildcard", "regexp", "fuzzy", "range", "intervals", "span_term",
    }
)  # fmt: skip
#: Keys of such a query that are not its field.
_NOT_FIELDS = frozenset({"boost", "_name"})
#: Queries that name several fields, and options whose value is the name of a field.
_SEVERAL = frozenset(
    {"multi_match", "query_string", "simple_query_string", "combined_fields", "more_like_this"}
)
_ONE = ("field", "default_field")


def check_fields(mappings: Iterable[Mapping[str, Any]], index: str, names: Iterable[str], where: str) -> None:
    """Check that each field is in the mappings of an index, or of one of several.

    Accepted unchecked: names with ``*``, names below objects that are not parsed, and all names in an index
    that stores new fields without a mapping.

    Raises:
        ConfigError: a field is missing; the message names the nearest one.
    """
    several = list(mappings)
    for name in names:
        if not any(knows(one, name) for one in several):
            known = sorted({path for one in several for path in paths(one)})
            raise ConfigError.unknown(f"field (in {where}, index {index!r})", name, known)


def named_fields(options: FoldOptions) -> list[str]:
    """Return the fields that the options of a request name or that its policies read."""
    policies = [name for policy in load_policies(options.representative) for name in policy.fields]
    passages = options.explain.fields if isinstance(options.explain, Explain) else ()
    source = options.member_source
    if isinstance(source, Mapping):
        source = source.get("includes", source.get("include", ()))
    members = [source] if isinstance(source, str) else source if isinstance(source, list | tuple) else []
    return [*(scope.field for scope in options.scope), *policies, *map(str, members), *passages]


def knows(mappings: Mapping[str, Any], name: str) -> bool:
    """Return whether documents of an index with these mappings may have a field."""
    if not name or "*" in name or name in _METADATA or name in (mappings.get("runtime") or {}):
        return True
    node: Mapping[str, Any] = mappings
    for place, part in enumerate(name.split(".")):
        if _may_be_unmapped(node, whole=place == 0):
            return True
        properties = {**(node.get("properties") or {}), **(node.get("fields") or {})}
        if part not in properties:
            return False
        node = properties[part]
    return True


def check_scopes(mappings: Iterable[Mapping[str, Any]], index: str, names: Iterable[str]) -> None:
    """Refuse scopes in nested documents: hits don't return their values, so nothing would fold.

    Raises:
        ConfigError: a scope is such a field.
    """
    several = list(mappings)
    for name in names:
        if any(is_nested(one, name) for one in several):
            raise ConfigError(
                f"index {index!r}: the scope {name!r} is a field of nested documents, whose values hits "
                "do not return; name a field outside of them"
            )


def mapped_at(mappings: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the mapping of a field by its path, which may begin with ``_source.``; None for multi-fields."""
    node: Any = mappings
    for part in name.removeprefix("_source.").split("."):
        node = (node.get("properties") or {}).get(part)
        if not isinstance(node, Mapping):
            return None
    return node  # type: ignore[no-any-return]


def is_nested(mappings: Mapping[str, Any], name: str) -> bool:
    """Return whether a field is in nested documents."""
    node: Mapping[str, Any] = mappings
    for part in name.split("."):
        node = (node.get("properties") or {}).get(part) or {}
        if node.get("type") == "nested":
            return True
    return False


def definition_of(mappings: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the field in which documents have the values of a field, and its mapping; None if unmapped.

    A multi-field has the values of its parent, an alias those of its target.
    """
    node, path = mappings, list[str]()
    for part in name.split("."):
        properties, fields = node.get("properties") or {}, node.get("fields") or {}
        if part in properties:
            path.append(part)
        elif part not in fields:
            return None
        node = properties[part] if part in properties else fields[part]
    if node.get("type") == "alias":
        return definition_of(mappings, str(node.get("path")))
    return ".".join(path), node


def source_of(several: Iterable[Mapping[str, Any]], name: str) -> str:
    """Return the field in which documents have the values of a field; itself if no mapping has it."""
    found = (definition_of(mappings, name) for mappings in several)
    return next((one[0] for one in found if one is not None), name)


def paths(mappings: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    """Yield the dotted paths of all fields with values, multi-fields included."""
    for name, definition in (mappings.get("properties") or {}).items():
        if definition.get("properties") is None:
            yield f"{prefix}{name}"
        yield from paths(definition, f"{prefix}{name}.")
        for sub in definition.get("fields") or ():
            yield f"{prefix}{name}.{sub}"


def _may_be_unmapped(node: Mapping[str, Any], whole: bool) -> bool:
    """Return whether fields below a node may exist without a mapping."""
    if node.get("enabled") is False or str(node.get("dynamic", "true")).lower() in _UNMAPPED:
        return True
    flat = str(node.get("type", "object")) in _FLAT and not node.get("properties") and not node.get("fields")
    return flat and not whole


def query_fields(query: object) -> Iterator[str]:
    """Yield the names of the fields in a query; unknown kinds of queries are skipped."""
    if isinstance(query, Sequence) and not isinstance(query, str):
        for one in query:
            yield from query_fields(one)
    elif isinstance(query, Mapping):
        for kind, options in query.items():
            yield from _field_names(str(kind), options)


def _field_names(kind: str, options: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if kind in _BY_FIELD and isinstance(options, Mapping):
        yield from (str(name) for name in options if name not in _NOT_FIELDS)
    elif kind == "exists" and isinstance(options, Mapping) and isinstance(options.get("field"), str):
        yield options["field"]
    elif kind in _SEVERAL and isinstance(options, Mapping):
        given = options.get("fields", ())
        several = [given] if isinstance(given, str) else given if isinstance(given, Sequence) else ()
        single = [options[name] for name in _ONE if isinstance(options.get(name), str)]
        yield from (str(name).partition("^")[0] for name in (*several, *single))
    elif isinstance(options, Mapping | list | tuple):
        # A query within one: bool, constant_score, nested, function_score …
        yield from query_fields(options)
