"""Fields and recipe in the mappings of an index; checks that the fields of requests are there."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

from shinglefold.contracts.engine import DATE_FORMAT
from shinglefold.errors import ConfigError, PermissionDenied, RecipeMismatch, SchemeMismatch, chain, suggest
from shinglefold.model.recipe import (
    LANGUAGE,
    Recipe,
    language_options,
    signed_fields,
    stored_recipe,
    stores_keywords,
)
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.options.validation import check_str
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.hits import Hit, language_code, stored_value
from shinglefold.rerank.representatives import load_policies
from shinglefold.rerank.request.fold_options import Explain, FoldOptions

#: Sort keys that are not fields: hits have no values of them.
_POSITIONS = ("_score", "_doc", "_shard_doc")
#: Fields of every document that no mapping names.
_METADATA = ("_id", "_index", "_seq_no", "_routing", "_version", "_ignored", *_POSITIONS)
_FLATTENED = ("flattened", "flat_object")
#: Objects whose keys no mapping names.
_FLAT = (*_FLATTENED, "object")
_UNMAPPED = ("false", "runtime")
#: Types of running text: their values can't be read with a window of hits.
TEXT_TYPES = ("text", "match_only_text", "annotated_text", "search_as_you_type")
_NO_DOC_VALUES = (*TEXT_TYPES, "completion", "flat_object", "percolator", "rank_feature", "rank_features")
#: Why an index has no values of a field that another may have.
_ABSENT = ("an object", "not mapped")
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
_DATES = ("date", "date_nanos")
_KEYWORDS = ("keyword", "constant_keyword", "wildcard")
#: Types of fields whose values may be read as dates: as milliseconds, or as text in ISO 8601.
_WITH_DATES = frozenset(
    {
        *_DATES, "byte", "short", "integer", "long", "unsigned_long", "double", "float", "half_float",
        "scaled_float", *_KEYWORDS,
    }
)  # fmt: skip
#: Formats of dates whose doc values ``moment`` reads: ISO 8601, or milliseconds since 1970.
_READABLE = (
    None,
    DATE_FORMAT,
    "strict_date_optional_time",
    "strict_date_optional_time_nanos||epoch_millis",
    "epoch_millis",
)
#: Formats, each a part of a mapping's, in which documents write dates as ``moment`` reads them.
ISO_FORMATS = {
    "strict_date_optional_time",
    "strict_date_optional_time_nanos",
    "date_optional_time",
    "strict_date",
    "date",
    "yyyy-MM-dd",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss",
    "epoch_millis",
}
#: Seconds after which the mappings of an index are read again, as other processes change them, too.
_VALID_SECONDS = 10.0
#: When this process last changed a recipe.
_changed = [0.0]
_REMEDY = (
    "Search with the scheme of the index (Recipe.of its mappings has it), "
    "or index its documents again with the scheme in use."
)
Mappings = Mapping[str, Any]
#: Takes the scheme of a search from the recipe of its index.
SchemeOf = Callable[[Recipe], Scheme]


def check_fields(mappings: Iterable[Mapping[str, Any]], index: str, names: Iterable[str], where: str) -> None:
    """Raise ``ConfigError`` if a field is in no mapping of an index, or of several; name the nearest one.

    Accepted unchecked: names with ``*``, names below objects that are not parsed, and all names in an index
    that stores new fields without a mapping.
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


def check_values(mappings: Mapping[str, Mappings], names: Iterable[str]) -> None:
    """Refuse fields whose values hits do not return: no hit would fold by them, or be preferred.

    One index of several may lack a field, or have an object instead; none may have it without doc values.

    Args:
        mappings: those of each index, by its name.
    """
    for name in names:
        reasons = [(own, why) for own, one in sorted(mappings.items()) if (why := _valueless(one, name))]
        wrong = [one for one in reasons if one[1] not in _ABSENT]
        if wrong or (reasons and len(reasons) == len(mappings)):
            own, why = (wrong or reasons)[0]
            path, found = (why.startswith("mapped") and definition_of(mappings[own], name)) or ("", {})
            better = [sub for sub, one in (found.get("fields") or {}).items() if one.get("type") == "keyword"]
            raise ConfigError(
                f"index {own!r}: {name!r} is {why}, so hits do not return its values; name "
                + (repr(f"{path}.{min(better)}") if better else "a keyword, a number or a date")
                + " for the scope or policy"
            )


def _valueless(mappings: Mappings, name: str) -> str:
    """Return why hits of an index return no values of a field; "" if they do, or may do later."""
    if name in _METADATA or name in (mappings.get("runtime") or {}):
        return "no stored field" if name in _POSITIONS else ""
    if "*" in name:
        return "a pattern"
    if is_nested(mappings, name):
        return "a field of nested documents"
    found = definition_of(mappings, name)
    if found is not None:
        return "an object" if found[1].get("type", "object") == "object" else _without_doc_values(found[1])
    # Servers return the values of the keys of a flattened object.
    above = (definition_of(mappings, name[: at.start()]) for at in re.finditer(r"\.", name))
    if any(one is not None and one[1].get("type") in _FLATTENED for one in above):
        return ""
    return "" if _may_come(mappings, name) else "not mapped"


def _without_doc_values(definition: Mappings) -> str:
    """Return how a field is mapped, if without doc values; else ""."""
    kind = definition.get("type")
    if kind in _NO_DOC_VALUES and definition.get("fielddata") is not True:
        return f"mapped as {kind}"
    return "mapped without doc values" if definition.get("doc_values", kind != "binary") is False else ""


def _may_come(mappings: Mappings, name: str) -> bool:
    """Return whether documents may bring a field that is not mapped yet."""
    node, dynamic = mappings, "true"
    for part in name.split("."):
        dynamic = "false" if node.get("enabled") is False else str(node.get("dynamic", dynamic)).lower()
        node = (node.get("properties") or {}).get(part) or {}
    return dynamic not in ("false", "strict")


def check_dates(mappings: Mapping[str, Mappings], names: Iterable[str]) -> None:
    """Refuse fields whose values can't be read as dates: every hit would count as one without a date.

    Those are of a type that has no dates; or dates with a format in one index and no dates in another, whose
    doc values can't be read as ISO 8601 by one search.

    Args:
        mappings: those of each index, by its name.
    """
    for name in names:
        for own, one in sorted(mappings.items()):
            found = _own_definition(one, name)
            kind = "keyword" if found is None else str(found.get("type", "object"))
            if kind in _WITH_DATES:
                continue
            raise ConfigError(
                f"index {own!r}: {name!r} is of type {kind}, which has no dates; name a date, a number of "
                "milliseconds, or a keyword with dates in ISO 8601"
            )
        dates = [own for own, one in mappings.items() if _is_unreadable_date(one, name)]
        others = [own for own, one in mappings.items() if _is_no_date(one, name)]
        if dates and others:
            raise ConfigError(
                f"{name!r} is a date with a format in the index {dates[0]!r} and no date in {others[0]!r}, "
                "so that its dates can't be compared: map it alike, or search the indices one by one"
            )


def keyword_fields(mappings: Iterable[Mappings], names: Iterable[str]) -> frozenset[str]:
    """Return the fields that are keywords in some index."""
    several = list(mappings)
    return frozenset(
        name
        for name in names
        if any((_own_definition(one, name) or {}).get("type") in _KEYWORDS for one in several)
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


def unreadable_dates(several: Iterable[Mappings], names: Iterable[str]) -> frozenset[str]:
    """Return the fields that are dates in a format that ``moment`` does not read, in some index.

    A field that is of another type in one of the indices is left out: it takes no format of dates.
    """
    mappings = list(several)
    dates = (name for name in names if any(_is_unreadable_date(one, name) for one in mappings))
    return frozenset(name for name in dates if not any(_is_no_date(one, name) for one in mappings))


def _is_unreadable_date(mappings: Mappings, name: str) -> bool:
    found = _own_definition(mappings, name) or {}
    kind, form = found.get("type"), found.get("format")
    # Doc values in milliseconds have a fraction.
    readable = form in _READABLE and (kind, form) != ("date_nanos", "epoch_millis")
    return kind in _DATES and not readable


def _is_no_date(mappings: Mappings, name: str) -> bool:
    found = _own_definition(mappings, name)
    return found is not None and found.get("type") not in _DATES


def _own_definition(mappings: Mappings, name: str) -> Mappings | None:
    """Return the definition of a field; a runtime field hides others of its name."""
    runtime: Mapping[str, Mappings] = mappings.get("runtime") or {}
    found = definition_of(mappings, name)
    return runtime.get(name) or (None if found is None else found[1])


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


def document_language(scheme: Scheme, source: Mapping[str, Any], options: tuple[str, str]) -> str | None:
    """Return the language by which a text was fingerprinted, see ``language_options``; None if it varies."""
    field, fixed = options
    return fixed or language_code(scheme, stored_value(source, field)) or None


def language_by_recipe(recipe: Recipe, source: Mapping[str, Any]) -> str | None:
    """Return the language by which the text of a source is fingerprinted; None if it varies."""
    return document_language(recipe.scheme, source, language_options(recipe.pipeline, recipe.field))


def languages_of(mappings: Mapping[str, Mappings], dedup: str) -> dict[str, tuple[str, str]]:
    """Return what determines the languages of the documents of each index, see ``language_options``."""
    return {
        name: language_options((stored_recipe(one) or {}).get("pipeline"), dedup)
        for name, one in mappings.items()
    }


def hit_language(
    scheme: Scheme, hit: Hit, source: Mapping[str, Any], languages: Mapping[str, tuple[str, str]]
) -> str | None:
    """Return the language by which the text of a hit was fingerprinted, see ``languages_of``."""
    # The mappings of an index in another cluster are unknown.
    return document_language(scheme, source, languages.get(str(hit.get("_index")), (LANGUAGE, "")))


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


def recipes_changed() -> None:
    """Make all searches and writes of this process read mappings again."""
    _changed[0] = monotonic()


def is_valid(when: float) -> bool:
    """Return whether mappings that were read at a time, as of ``monotonic``, may still be used."""
    return _changed[0] < when and monotonic() - when <= _VALID_SECONDS


def check_recipe(
    mappings: Mapping[str, Any], index: str, scheme: Scheme, field: str, seal: Seal | None
) -> None:
    """Check the recipe of an index; an index without one may be searched.

    Raises:
        SchemeMismatch: it was made with another scheme.
        RecipeMismatch: its fingerprints are in another field.
        ConfigError: it is sealed with another key than the one given.
    """
    stored = stored_recipe(mappings) or {}
    if stored.get("id", scheme.id) != scheme.id:
        raise SchemeMismatch(stored["id"], scheme.id, f"index {index}", _REMEDY)
    if stored.get("field", field) != field:
        what, remedy = "fingerprints in the field", "Give the search the field of the index."
        raise RecipeMismatch(what, stored["field"], field, f"index {index}", remedy)
    if stored:
        check_sealed(str(stored.get("sealed", "")), seal, f"index {index!r}")


def check_keywords(mappings: Mapping[str, Any], index: str, field: str) -> None:
    """Raise ``ConfigError`` if an index stores no supershingles; one without a recipe passes."""
    stored = stored_recipe(mappings) or {}
    if not stores_keywords(stored.get("pipeline"), str(stored.get("field", field))):
        raise keywords_missing(index)


def keywords_missing(index: str) -> ConfigError:
    """Return the error for an index that stores no supershingles."""
    commands = chain([suggest("setup", index, keywords=True), suggest("backfill", index)])
    return ConfigError(
        f"index {index!r} stores no supershingles, by which copies are found. Let it store them: "
        f"{commands}; or fold pages by signatures alone"
    )


def index_names(index: str | None) -> list[str]:
    """Return the names whose mappings can be read, one by one.

    Expressions with exclusions (``logs-*,-logs-old``) stay together. Names in other clusters
    (``remote:logs``) are left out: a cluster does not return the mappings of another.
    """
    if index is not None:
        check_str("index", index, empty=True)
    names = [name for name in (index or "").split(",") if name]
    here = [name for name in names if name.startswith("<") or ":" not in name]
    return [",".join(here)] if any(name.startswith("-") for name in here) else here


def mappings_of_each(name: str, *, required: bool = False) -> Steps[Mapping[str, Mappings] | None]:
    """Return the mappings of each index that a name matches; None if a role may not read them."""
    try:
        return (yield Call("all_mappings", (name,)))  # type: ignore[no-any-return]
    except PermissionDenied:
        if required:
            raise
        return None


def text_fields_of(mappings: Mapping[str, Mappings]) -> dict[str, tuple[str, ...]]:
    """Return the fields from whose texts the fingerprints of each index were made."""
    return {index: signed_fields([one]) for index, one in mappings.items()}
