"""Dates as the index understands them: what ``_source`` tells may be in any format that a mapping names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.request.field_check import definition_of

_KINDS = ("date", "date_nanos")
#: Formats in which values are told as ``moment`` reads them: ISO 8601, or milliseconds since 1970.
_READ = (
    None,
    "strict_date_optional_time||epoch_millis",
    "strict_date_optional_time",
    "strict_date_optional_time_nanos||epoch_millis",
    "epoch_millis",
)


def asked_dates(several: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[JSON]:
    """Return the ``docvalue_fields`` by which an index tells the dates in some fields, in UTC.

    Only of fields that are dates in each of several mappings that have them: others are told by ``_source``.
    """
    mappings = list(several)
    return [asked for name in dict.fromkeys(names) if (asked := _asked(mappings, name))]


def _asked(several: Sequence[Mapping[str, Any]], name: str) -> JSON:
    found = [one[1] for mappings in several if (one := definition_of(mappings, name)) is not None]
    if not found or any(one.get("type") not in _KINDS or one.get("doc_values") is False for one in found):
        return {}
    plain = all(one.get("format") in _READ for one in found)
    return {"field": name} if plain else {"field": name, "format": "strict_date_time"}
