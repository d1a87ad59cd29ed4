"""Records, which readers yield (a document, or why it can't be read), and options of reading."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, isnan
from typing import Any, Literal, get_args

from shinglefold.contracts.engine import Document
from shinglefold.documents import FORMAT, MISSING, get, json_type
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.readers.encodings import EncodingGuess, codec_of
from shinglefold.ingest.readers.streams import REPLACEMENT, SURROGATE
from shinglefold.options.validation import check_bool, check_choice, check_int, check_str

Format = Literal["auto", "jsonl", "csv", "html", "text"]
#: The most levels of objects and lists in a document; servers map 20 by default.
_DEEPEST = 100
#: The most bytes that can be requested of a stream.
_MOST_BYTES = 2**62
_METADATA = ("_id", "_routing")
_CONTAINERS = (dict, list)
_HARMLESS = frozenset((str, int, bool, type(None)))
#: The action lines of a bulk request, and their parameters.
_ACTIONS = frozenset({"index", "create", "update", "delete"})
_OF_ACTIONS = frozenset(
    {"_index", "_id", "_type", "_routing", "routing", "pipeline", "version", "version_type", "op_type"}
    | {"if_seq_no", "if_primary_term", "require_alias", "require_data_stream", "retry_on_conflict"}
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How input is read.

    ``format``: ``auto`` goes by the file's name; standard input is JSONL by default.
    ``id_field``: the field of the id; a document without it is rejected. If empty: ``_id``, else ``id``, else
    the engine assigns an id. Ids of pages and texts are their paths.
    ``encoding``: if empty: by byte order mark, by declaration of an HTML page, else UTF-8. Text in another
    encoding is rejected, with the encoding to try.
    ``max_bytes``: longer lines and files are rejected, not loaded.
    ``header``: whether the first row of CSV has the column names; None rejects a row that looks like data.
    ``html``: every document is HTML, and its ``format`` says so.
    ``prefix``: a path before the ids of pages, if pages of several folders go into one index.
    ``skipped``: counts files, folders and headers of joined files that were skipped on purpose, and pages
    read in another encoding than they declare (``wrong_encodings``).
    ``guess``: guesses the encoding to try.
    """

    format: Format = "auto"
    id_field: str = ""
    encoding: str = ""
    max_bytes: int = 512 * 1024 * 1024
    header: bool | None = None
    html: bool = False
    prefix: str = ""
    guess: EncodingGuess = field(default_factory=EncodingGuess, repr=False, compare=False)
    skipped: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("format", self.format, get_args(Format))
        check_int("max_bytes", self.max_bytes, 1, _MOST_BYTES)
        for name in ("id_field", "encoding", "prefix"):
            check_str(name, getattr(self, name), empty=True)
        check_bool("html", self.html)
        if self.header is not None:
            check_bool("header", self.header)
        if self.encoding:
            try:
                codec_of(self.encoding)
            except (LookupError, ValueError) as error:
                raise ConfigError(f"unknown encoding {self.encoding!r}; try utf-8 or windows-1251") from error


@dataclass(frozen=True, slots=True)
class Record:
    """One document of a source, or the reason why a line or file could not be read as one.

    ``document``: None if there is a ``reason``; ``raw`` is then the original text, for the dead letters.
    ``line``: counts from 1; 1 for a file that is one document. ``replaced``: number of undecodable sequences.
    ``fraction``: the share of the source read so far, 0 if its length is unknown.
    ``id_field``: the field of the id in ``raw``.
    """

    document: Document | None
    source: str
    line: int
    reason: str = ""
    raw: str = ""
    replaced: int = 0
    fraction: float = 0.0
    id_field: str = ""


def to_document(value: object, id_field: str = "") -> Document:
    """Return a JSON value as a document with ``_id`` and ``_routing``; a search hit is unwrapped.

    Raises:
        InputError: it is an action line of a bulk request, or not an object; it is nested too deeply, or has
            a number that JSON lacks; it has fields besides ``_source`` and is not a hit; ``id_field`` is
            missing, or the id is neither text nor a whole number.
    """
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InputError(f"expected a JSON object, found {json_type(value)}")
    fields: dict[str, Any] = dict(value)
    if _is_action(fields):
        raise InputError(
            "an action line of a bulk request, no document: leave such lines out, and give each document its "
            "id in a field"
        )
    if "_source" in fields and isinstance(fields["_source"], Mapping):
        is_hit = "_id" in fields or "_index" in fields
        if "routing" in fields and "_routing" not in fields:
            raise InputError("a [routing] is beside [_source], where hits have [_routing]: name it so")
        if not is_hit and (lost := next((one for one in map(str, fields) if not one.startswith("_")), "")):
            raise InputError(
                f"the field {lost[:80]!r} is beside [_source], and there is no [_id] as in a search hit: "
                "put the field into [_source], or give [_source] another name"
            )
        fields = {**fields["_source"], **{name: fields[name] for name in _METADATA if name in fields}}
    _check(fields)
    name = id_field or ("id" if fields.get("_id") is None else "_id")
    found = fields.get(name)
    if found is None and id_field:
        raise InputError(f"no [{id_field}], the id field; add it or name another id field")
    fields.pop("_id", None)
    if found is None:
        return fields
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise InputError(f"the id in [{name}] must be text or a whole number, not {found!r:.80}")
    return {"_id": str(found), **fields}


def without_surrogates(value: Any) -> tuple[Any, int]:  # noqa: ANN401 - JSON
    """Return a JSON value with lone surrogates replaced, which no engine can store, and their number.

    A key that another one has already gets further replacements, so that no value is lost.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return SURROGATE.subn(REPLACEMENT, value)
        return value, 0
    if isinstance(value, dict):
        if _encodable(value):
            return value, 0
        pairs = [(without_surrogates(key), without_surrogates(item)) for key, item in value.items()]
        count = sum(key[1] + item[1] for key, item in pairs)
        found = {key: item[0] for (key, replaced), item in pairs if not replaced}
        for (key, replaced), item in pairs:
            name = key
            while replaced and name in found:
                name += REPLACEMENT
            found[name] = item[0]
        return (found if count else value), count
    if isinstance(value, list):
        items = [without_surrogates(item) for item in value]
        count = sum(item[1] for item in items)
        return ([item[0] for item in items] if count else value), count
    return value, 0


def as_html(record: Record) -> Record:
    """Return a record whose document says by its ``format`` that it is HTML."""
    if record.document is None:
        return record
    return replace(record, document={**record.document, FORMAT: "html"})


def with_routing(record: Record, field: str = "") -> Record:
    """Return a record whose document has the value of a field as its ``_routing``, or the reason if it can't.

    Args:
        field: ``_routing`` if empty. A document without the field has no routing.
    """
    document, name = record.document, field or "_routing"
    if document is None or (not field and "_routing" not in document):
        return record
    found = get(document, name)
    if found is None or found is MISSING:
        bare = {key: value for key, value in document.items() if key != "_routing"}
        return replace(record, document=bare) if "_routing" in document else record
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        why = f"the routing in [{name}] must be text or a whole number, not {found!r:.80}"
        return replace(record, document={**document, "_routing": found}, reason=why)
    return replace(record, document={**document, "_routing": str(found)})


def _encodable(fields: dict[Any, Any]) -> bool:
    """Return whether an object is flat and has no lone surrogates; a fast path for nearly all documents."""
    try:
        "".join(fields).encode()
        for value in fields.values():
            if isinstance(value, str):
                if not value.isascii():
                    value.encode()
            elif isinstance(value, dict | list):
                return False
    except (UnicodeEncodeError, TypeError):
        return False
    return True


def _is_action(fields: dict[str, Any]) -> bool:
    if len(fields) != 1:
        return False
    ((name, what),) = fields.items()
    return name in _ACTIONS and isinstance(what, Mapping) and what.keys() <= _OF_ACTIONS


def _check(fields: dict[str, Any]) -> None:
    """Check that numbers are valid JSON, and that nesting does not overflow the stack."""
    if set(map(type, fields.values())) <= _HARMLESS:
        return
    level: list[Any] = [fields]
    for _ in range(_DEEPEST):
        deeper: list[Any] = []
        for node in level:
            for item in node.values() if isinstance(node, dict) else node:
                if isinstance(item, float):
                    if not isfinite(item):
                        raise InputError(_beyond(item))
                elif isinstance(item, _CONTAINERS):
                    deeper.append(item)
        if not deeper:
            return
        level = deeper
    raise InputError(f"nested deeper than {_DEEPEST} levels")


def _beyond(number: float) -> str:
    if isnan(number):
        return "NaN is no JSON; write null or leave it out"
    return "a number too large for JSON, beyond 1.8e308; write it as text, or leave it out"
