"""Values of fields as the index would keep them: scopes, hosts, dates.

A new document is in no index yet, so its values are compared here. That is possible for field types whose
values the index keeps unchanged, or in a form that can be computed. Dates are read as doc values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.documents import as_text, values_at
from shinglefold.errors import ConfigError, InputError
from shinglefold.rerank.hits import field_values, moment
from shinglefold.rerank.index_fields import definition_of, is_nested, unreadable_dates
from shinglefold.rerank.request.hit_parts import with_doc_values

Form = Callable[[Any], Any]
#: The limit of bytes of a term, in any index.
_LONGEST = 32_766


def _integer(value: Any) -> int:  # noqa: ANN401 - JSON
    return value if isinstance(value, int) else int(float(value)) if "." in str(value) else int(value)


def _boolean(value: object) -> str:
    return {"true": "true", "false": "false", "": "false"}[as_text(value)]


def _address(value: object) -> str:
    address = ip_address(str(value))
    return str(getattr(address, "ipv4_mapped", None) or address)


_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "keyword": as_text,
        **dict.fromkeys(("byte", "short", "integer", "long", "unsigned_long"), _integer),
        "boolean": _boolean,
        "ip": _address,
    }
)


class _Field(NamedTuple):
    """A field: the path of its values in documents, and its mapping."""

    source: str
    definition: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its type."""
        return str(self.definition["type"])

    @property
    def longest(self) -> int:
        """The most characters of a value that the index keeps."""
        return int(self.definition.get("ignore_above", _LONGEST))


class Values:
    """Reads the values of fields and brings them into one comparable form.

    Args:
        fields: by path.
        strict: whether a value that the index can't store is an error; else it is dropped.
    """

    def __init__(self, fields: Mapping[str, _Field], *, strict: bool = True) -> None:
        self._strict = strict
        self._sources = {path: one.source for path, one in fields.items()}
        self._forms = {path: _FORMS[one.kind] for path, one in fields.items()}
        self._longest = {path: one.longest for path, one in fields.items()}

    @classmethod
    def of(cls, mappings: JSON, paths: Sequence[str], index: str) -> "Values":
        """Return the reader of these fields of an index.

        Raises:
            ConfigError: a field is not mapped, or has a type whose values can't be compared here.
        """
        return cls({path: _field_of_mappings(mappings, path, index) for path in paths})

    @classmethod
    def of_all(cls, engine: Engine, index: str, paths: Sequence[str]) -> "Values":
        """Return the reader of these fields in all indices that a name matches; it drops invalid values.

        Raises:
            ConfigError: as for ``of``, or a field has different types in these indices.
        """
        return cls.of_several(engine.all_mappings(index) if paths else {}, paths)

    @classmethod
    def of_several(cls, indices: Mapping[str, JSON], paths: Sequence[str]) -> "Values":
        """Return the reader of these fields in several indices, given their mappings; see ``of_all``."""
        fields: dict[str, _Field] = {}
        for name, mappings in sorted(indices.items()):
            for path in paths:
                found = _field_of_mappings(mappings, path, name)
                known = fields.get(path, found)
                if known.kind != found.kind:
                    raise ConfigError(
                        f"the scope {path!r} is of type {known.kind} in one index and of type {found.kind} "
                        f"in {name!r}: use one of these indices, or a field of one type in all"
                    )
                # A longer value is in some of the indices.
                fields[path] = max(known, found, key=attrgetter("longest"))
        return cls(fields, strict=False)

    def source(self, path: str) -> str:
        """Return the path of a field's values in documents: for a multi-field that of its parent."""
        return self._sources[path]

    def read(self, hit: Mapping[str, Any], path: str) -> list[Any]:
        """Return the values of a field in a hit, from ``fields`` or else from ``_source``."""
        if path in (hit.get("fields") or ()):
            return field_values(hit, path)
        return values_at(hit.get("_source") or {}, self._sources[path])

    def comparable_values(self, path: str, values: Sequence[Any]) -> list[Any]:
        """Return the comparable values of a document that is not stored yet.

        Raises:
            InputError: the index would refuse or ignore one of them.
        """
        if not self._strict:
            return self.stored(path, values)
        comparable: list[Any] = []
        for value in values:
            try:
                comparable.append(self._forms[path](value))
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                raise InputError(f"its scope {path!r} has a value that the field can't have") from error
            last = comparable[-1]
            if isinstance(last, str) and len(last) > self._longest[path]:
                raise InputError(
                    f"its scope {path!r} has {len(last):,} characters, and the index keeps values of "
                    f"{self._longest[path]:,} at most"
                )
        return sorted(set(comparable))

    def stored(self, path: str, values: Sequence[Any]) -> list[Any]:
        """Return the comparable values of a stored document; none if they have another type."""
        try:
            comparable = {self._forms[path](value) for value in values}
        except (ValueError, TypeError, KeyError, OverflowError):
            return []
        longest = self._longest[path]
        return sorted(one for one in comparable if not isinstance(one, str) or len(one) <= longest)


def _field_of_mappings(mappings: JSON, path: str, index: str) -> _Field:
    found = definition_of(mappings, path)
    source, node = found or ("", {})
    obstacle = _incomparable(node) or _copy_phrase(mappings, source)
    if not obstacle and is_nested(mappings, source):
        # Searches return no values of such a field with a hit.
        obstacle = "a field of nested documents"
    if obstacle or node.get("type") not in _FORMS:
        raise ConfigError(
            f"index {index!r}: the scope {path!r} is {obstacle or _kind(node, path)}; name a keyword without "
            "a normalizer, a whole number, a boolean or an ip, whose values can be compared before a "
            "document is stored"
        )
    if not node.get("doc_values", True) or not node.get("index", True):
        raise ConfigError(f"index {index!r}: the scope {path!r} has no doc values or is not indexed")
    return _Field(source, node)


def _incomparable(node: Mapping[str, Any]) -> str:
    """Return why the index may have other values of a field than documents; "" if they are the same."""
    if node.get("normalizer"):
        return "a keyword with a normalizer"
    if node.get("script") is not None:
        return "a field whose values a script makes"
    return "a field with a null_value" if node.get("null_value") is not None else ""


def _copy_phrase(mappings: JSON, path: str) -> str:
    """Return a phrase with the fields that are copied into a field; "" if there are none."""
    names = [name for name, targets in _copies(mappings) if path in targets]
    return f"filled by copy_to of {', '.join(sorted(names))}" if names else ""


def _copies(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the paths of copied fields, each with its targets."""
    for name, own in (node.get("properties") or {}).items():
        if targets := own.get("copy_to"):
            yield f"{prefix}{name}", [targets] if isinstance(targets, str) else targets
        yield from _copies(own, f"{prefix}{name}.")


def _kind(node: Mapping[str, Any], path: str) -> str:
    """Return a phrase with the type of a field, and its multi-fields that can be used."""
    kind = node.get("type")
    fit = [name for name, own in (node.get("fields") or {}).items() if own.get("type") in _FORMS]
    type_ = "not mapped" if kind is None else f"of type {kind}"
    return f"{type_}, and {path}.{fit[0]} would do" if fit else type_


_DATE_TYPES = ("date", "date_nanos")


def date_doc_values(several: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[JSON]:
    """Return the ``docvalue_fields`` that read the date fields among ``names``, in UTC.

    A field is left out if a mapping has another type for it: read such a field from ``_source``.
    """
    mappings = list(several)
    dates = [name for name in dict.fromkeys(names) if _is_date(mappings, name)]
    return with_doc_values({}, dates, unreadable_dates(mappings, dates))


def _is_date(several: Sequence[Mapping[str, Any]], name: str) -> bool:
    found = [one[1] for mappings in several if (one := definition_of(mappings, name)) is not None]
    dates = (one.get("type") in _DATE_TYPES and one.get("doc_values") is not False for one in found)
    return bool(found) and all(dates)


#: Formats of dates that are not ISO 8601. 01/02/2024 is not read: countries differ in what it means.
_WRITTEN = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y, %H:%M",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
)


def first_value(hit: Mapping[str, Any], names: Iterable[str]) -> Any:  # noqa: ANN401 - JSON
    """Return the first value of the first of these fields that a document has; None if it has none."""
    return next((values[0] for name in names if (values := field_values(hit, name))), None)


def title_of(hit: Mapping[str, Any], name: str) -> str:
    """Return the title of a hit; several values are joined."""
    return ", ".join(map(as_text, field_values(hit, name)))


def host_of(value: object) -> str:
    """Return the host of an address or of a bare host name, without a port; "" if there is none."""
    text = "" if value is None else str(value).strip().lower()
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        # Raises ValueError if the part after the colon is not a port, as in other kinds of addresses.
        _ = parts.port
        mail = "//" not in text and parts.username is not None
        return "" if mail else parts.hostname or ""
    except ValueError:
        return ""


def first_date(hit: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, float | None]:
    """Return the first value of these fields, and the date that it is, in seconds since 1970.

    The date is None if it cannot be read. In a document it may be ISO 8601, milliseconds, a year,
    ``1.2.2024``, ``2024/02/01``, or as in mails.
    """
    found = next(((name, values[0]) for name in names if (values := field_values(hit, name))), None)
    if found is None:
        return None, None
    name, value = found
    # The index has read a doc value by the format of the field: 2026 can only be milliseconds.
    when = moment(value) if name in (hit.get("fields") or ()) else _read_date(value)
    return value, when if day_of(when) else None


def _read_date(value: object) -> float | None:
    # Whole numbers in a column with missing values are read as floats.
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    text = "" if isinstance(value, bool | float) else as_text(value).strip()
    if text.isdigit() and len(text) in (4, 8):
        # A year, or 20240201; as milliseconds both would be in 1970.
        text = f"{text}0101" if len(text) == 4 else text
        return moment(f"{text[:4]}-{text[4:6]}-{text[6:]}")
    when = moment(value)
    return _as_written(text) if when is None and text else when


def _as_written(text: str) -> float | None:
    for form in _WRITTEN:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except (ValueError, OverflowError):
            continue
    try:
        read = parsedate_to_datetime(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def day_of(when: float | None) -> str:
    """Return the day of a moment as ``YYYY-MM-DD``, "" if there is none."""
    if when is None:
        return ""
    try:
        return datetime.fromtimestamp(when, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
