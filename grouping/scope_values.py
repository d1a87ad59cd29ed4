"""Values of scopes in one form, whether they come from a given document or from the index.

A document that is being decided on is in no index yet, so its values are compared here. That is possible for
field types whose values the index keeps unchanged, or in a form that can be computed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.documents import values_at
from shinglefold.errors import ConfigError, InputError
from shinglefold.rerank.hits import field_values
from shinglefold.rerank.index_knowledge import definition_of, is_nested

Form = Callable[[Any], Any]
#: Bytes of a term at most, in any index.
_LONGEST = 32_766


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(value: Any) -> int:  # noqa: ANN401 - JSON
    return value if isinstance(value, int) else int(float(value)) if "." in str(value) else int(value)


def _truth(value: object) -> str:
    return {"true": "true", "false": "false", "": "false"}[_word(value)]


def _address(value: object) -> str:
    address = ip_address(str(value))
    return str(getattr(address, "ipv4_mapped", None) or address)


_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "keyword": _word,
        **dict.fromkeys(("byte", "short", "integer", "long", "unsigned_long"), _whole),
        "boolean": _truth,
        "ip": _address,
    }
)


class _Field(NamedTuple):
    """A field: the path of its values in documents, and its mapping."""

    source: str
    definition: Mapping[str, Any]


class Values:
    """Reads the values of fields and brings them into one comparable form.

    Args:
        fields: by path.
        strict: whether a value that the index can't have is an error; else it is dropped.
    """

    def __init__(self, fields: Mapping[str, _Field], *, strict: bool = True) -> None:
        self._strict = strict
        self._sources = {path: one.source for path, one in fields.items()}
        self._forms = {path: _FORMS[one.definition["type"]] for path, one in fields.items()}
        self._longest = {path: one.definition.get("ignore_above", _LONGEST) for path, one in fields.items()}

    @classmethod
    def of(cls, mappings: JSON, paths: Sequence[str], index: str) -> "Values":
        """Return the reader of some fields of an index.

        Raises:
            ConfigError: a field is not mapped, or has a type whose values can't be compared here.
        """
        return cls({path: _mapped(mappings, path, index) for path in paths})

    @classmethod
    def of_all(cls, engine: Engine, index: str, paths: Sequence[str]) -> "Values":
        """Return the reader of some fields of all indices of a name; it drops values instead of raising.

        Raises:
            ConfigError: as ``of``, or a field has different types in these indices.
        """
        fields: dict[str, _Field] = {}
        for name, mappings in sorted(engine.all_mappings(index).items()) if paths else ():
            for path in paths:
                found = _mapped(mappings, path, name)
                known = fields.setdefault(path, found)
                kinds = known.definition["type"], found.definition["type"]
                if kinds[0] != kinds[1]:
                    raise ConfigError(
                        f"{index!r}: the scope {path!r} is of type {kinds[0]} in one index and of type "
                        f"{kinds[1]} in {name!r}; name one of them, or a field that is alike in all"
                    )
        return cls(fields, strict=False)

    def source(self, path: str) -> str:
        """Return the path of a field's values in documents: for a multi-field that of its parent."""
        return self._sources[path]

    def told(self, hit: Mapping[str, Any], path: str) -> list[Any]:
        """Return the values of a field in a hit, from ``fields`` or else from ``_source``."""
        if path in (hit.get("fields") or ()):
            return field_values(hit, path)
        return values_at(hit.get("_source") or {}, self._sources[path])

    def given(self, path: str, values: Sequence[Any]) -> list[Any]:
        """Return the comparable values of a document that is not stored yet.

        Raises:
            InputError: the index would not take one of them, or not keep it.
        """
        if not self._strict:
            return self.kept(path, values)
        made: list[Any] = []
        for value in values:
            try:
                made.append(self._forms[path](value))
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                raise InputError(f"its scope {path!r} has a value that the field can't have") from error
            if isinstance(made[-1], str) and len(made[-1]) > self._longest[path]:
                raise InputError(
                    f"its scope {path!r} has {len(made[-1]):,} characters, and the index keeps values of "
                    f"{self._longest[path]:,} at most"
                )
        return sorted(set(made))

    def kept(self, path: str, values: Sequence[Any]) -> list[Any]:
        """Return the comparable values of a stored document; none where they have another type."""
        try:
            made = {self._forms[path](value) for value in values}
        except (ValueError, TypeError, KeyError, OverflowError):
            return []
        longest = self._longest[path]
        return sorted(one for one in made if not isinstance(one, str) or len(one) <= longest)


def _mapped(mappings: JSON, path: str, index: str) -> _Field:
    found = definition_of(mappings, path)
    source, node = found or ("", {})
    kind = node.get("type")
    if (
        told := _incomparable(node) or _copied(mappings, source) or _nested(mappings, source)
    ) or kind not in _FORMS:
        raise ConfigError(
            f"index {index!r}: the scope {path!r} is {told or _kind(node, path)}; name a keyword without a "
            "normalizer, a whole number, a boolean or an ip, whose values can be compared before a document "
            "is stored"
        )
    if not node.get("doc_values", True) or not node.get("index", True):
        raise ConfigError(f"index {index!r}: the scope {path!r} has no doc values or is not indexed")
    return _Field(source, node)


def _incomparable(node: Mapping[str, Any]) -> str:
    """Return why the index has other values of a field than documents; "" where it has the same."""
    if node.get("normalizer"):
        return "a keyword with a normalizer"
    if node.get("script") is not None:
        return "a field whose values a script makes"
    return "a field with a null_value" if node.get("null_value") is not None else ""


def _nested(mappings: JSON, path: str) -> str:
    """Return in words that a field is nested: searches return no values of it with a hit."""
    return "a field of nested documents" if is_nested(mappings, path) else ""


def _copied(mappings: JSON, path: str) -> str:
    """Return in words which other fields are copied into a field; "" where none is."""
    names = [name for name, targets in _copies(mappings) if path in targets]
    return f"filled by copy_to of {', '.join(sorted(names))}" if names else ""


def _copies(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the paths of copied fields, each with its targets."""
    for name, own in (node.get("properties") or {}).items():
        if targets := own.get("copy_to"):
            yield f"{prefix}{name}", [targets] if isinstance(targets, str) else targets
        yield from _copies(own, f"{prefix}{name}.")


def _kind(node: Mapping[str, Any], path: str) -> str:
    """Return in words which type a field has, and which of its multi-fields can be used."""
    kind = node.get("type")
    fit = [name for name, own in (node.get("fields") or {}).items() if own.get("type") in _FORMS]
    told = "not mapped" if kind is None else f"of type {kind}"
    return f"{told}, and {path}.{fit[0]} would do" if fit else told


_KINDS = ("date", "date_nanos")
#: Formats that ``moment`` reads: ISO 8601, or milliseconds since 1970.
_READ = (
    None,
    "strict_date_optional_time||epoch_millis",
    "strict_date_optional_time",
    "strict_date_optional_time_nanos||epoch_millis",
    "epoch_millis",
)


def asked_dates(several: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[JSON]:
    """Return the ``docvalue_fields`` that give the dates in some fields, in UTC.

    Only for fields that are dates in every mapping that has them; others are read from ``_source``.
    """
    mappings = list(several)
    return [asked for name in dict.fromkeys(names) if (asked := _asked(mappings, name))]


def _asked(several: Sequence[Mapping[str, Any]], name: str) -> JSON:
    found = [one[1] for mappings in several if (one := definition_of(mappings, name)) is not None]
    if not found or any(one.get("type") not in _KINDS or one.get("doc_values") is False for one in found):
        return {}
    plain = all(one.get("format") in _READ for one in found)
    return {"field": name} if plain else {"field": name, "format": "strict_date_time"}
