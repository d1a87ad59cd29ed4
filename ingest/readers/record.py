"""What readers yield: a document and where it came from, or why there is none."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any, Literal, get_args

from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.field_paths import json_type
from shinglefold.ingest.readers.streams import EncodingGuess
from shinglefold.options.validation import check_bool, check_choice, check_int, check_str

Format = Literal["auto", "jsonl", "csv", "html", "text"]
#: Levels of objects and lists in a document; servers map 20 unless told.
_DEEPEST = 100
_CONTAINERS = (dict, list)
_HARMLESS = frozenset((str, int, bool, type(None)))
#: What the lines between the documents of a bulk request say, and of what.
_ACTIONS = frozenset({"index", "create", "update", "delete"})
_OF_ACTIONS = frozenset(
    {"_index", "_id", "_type", "_routing", "routing", "pipeline", "version", "version_type", "op_type"}
    | {"if_seq_no", "if_primary_term", "require_alias", "require_data_stream", "retry_on_conflict"}
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How input is read.

    ``format``: ``auto`` goes by the file's name; standard input is JSONL unless told.
    ``id_field``: holds a document's id; one without it is refused. Empty means ``_id``, else ``id``, else
    the engine gives one. Pages and texts are named by their files.
    ``encoding``: empty means by BOM, by what an HTML page declares, else UTF-8.
    Text that is not UTF-8 but was taken for it is refused, with the encoding to try.
    ``max_bytes``: longer lines and files are refused, not loaded.
    ``header``: whether the first row of CSV has the columns' names; None refuses one that looks like data.
    ``prefix``: a path that the ids of pages begin with, where pages of several folders come together.
    ``passed_over``: gets the number of files and folders that were not read on purpose.
    ``guess``: what the encoding to try is told by.
    """

    format: Format = "auto"
    id_field: str = ""
    encoding: str = ""
    max_bytes: int = 512 * 1024 * 1024
    header: bool | None = None
    prefix: str = ""
    guess: EncodingGuess = field(default_factory=EncodingGuess, repr=False, compare=False)
    passed_over: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("format", self.format, get_args(Format))
        check_int("max_bytes", self.max_bytes, 1)
        for name in ("id_field", "encoding", "prefix"):
            check_str(name, getattr(self, name), empty=True)
        if self.header is not None:
            check_bool("header", self.header)
        if self.encoding:
            try:
                # One that can't replace what it does not understand would end the run there.
                b"\xff".decode(self.encoding, "replace")
            except (LookupError, ValueError) as error:
                raise ConfigError(f"unknown encoding {self.encoding!r}; try utf-8 or windows-1251") from error


@dataclass(frozen=True, slots=True)
class Record:
    """One document read, or one place where none could be.

    ``document`` is None where ``reason`` says why; ``raw`` is then what stood there, to be kept.
    ``line`` counts from 1 (1 for a file that is one document). ``replaced`` counts undecodable places.
    ``fraction`` is the share of the source read so far, 0 where its length is unknown.
    ``id_field`` is where ``raw``, once mended, has its id.
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
    """Return a JSON value as a document with its ``_id`` beside its fields; a search hit is unwrapped.

    Raises:
        InputError: it is no object, or an action of a bulk request; it is nested too deeply, or has a number
            that JSON can't hold; or its id is missing
            where ``id_field`` says it should be, or is no text and no whole number.
    """
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InputError(f"expected a JSON object, found {json_type(value)}")
    fields: dict[str, Any] = dict(value)
    if _is_action(fields):
        raise InputError(
            "a line of a bulk request that says what to do, no document: leave such lines out, and give each "
            "document its id in a field"
        )
    if "_source" in fields and isinstance(fields["_source"], Mapping):
        fields = {**fields["_source"], **({"_id": fields["_id"]} if "_id" in fields else {})}
    _check(fields)
    name = id_field or ("_id" if "_id" in fields else "id")
    found = fields.get(name)
    if found is None and id_field:
        raise InputError(f"no [{id_field}], which the id is to come from; add it or name another id field")
    fields.pop("_id", None)
    if found is None:
        return fields
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise InputError(f"the id in [{name}] must be text or a whole number, not {found!r:.80}")
    return {"_id": str(found), **fields}


def _is_action(fields: dict[str, Any]) -> bool:
    if len(fields) != 1:
        return False
    ((name, what),) = fields.items()
    return name in _ACTIONS and isinstance(what, Mapping) and what.keys() <= _OF_ACTIONS


def _check(fields: dict[str, Any]) -> None:
    """Refuse what no engine takes, and what is so deep that walking it could exhaust the stack."""
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
