"""What readers yield: a document and where it came from, or why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from shinglefold.contracts import Document
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.fields import said

Format = Literal["auto", "jsonl", "csv", "html", "text"]
#: Levels of objects and lists in a document; servers map 20 unless told.
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How input is read.

    ``format``: ``auto`` goes by the file's name; standard input is JSONL unless told.
    ``id_field``: holds a document's id; empty means ``_id``, else ``id``.
    ``encoding``: empty means by BOM, by what an HTML page declares, else UTF-8.
    ``max_bytes``: longer lines and files are refused, not loaded.
    """

    format: Format = "auto"
    id_field: str = ""
    encoding: str = ""
    max_bytes: int = 512 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.format not in get_args(Format):
            raise ConfigError.unknown("format", self.format, get_args(Format))
        if self.max_bytes < 1:
            raise ConfigError(f"max_bytes {self.max_bytes} must be at least 1")
        if self.encoding:
            try:
                "".encode(self.encoding)
            except LookupError as error:
                raise ConfigError(f"unknown encoding {self.encoding!r}; try utf-8 or windows-1251") from error


@dataclass(frozen=True, slots=True)
class Record:
    """One document read, or one place where none could be.

    ``document`` is None where ``reason`` says why; ``raw`` is then what stood there, to be kept.
    ``line`` counts from 1 (1 for a file that is one document). ``replaced`` counts undecodable places.
    ``fraction`` is the share of the source read so far, 0 where its length is unknown.
    """

    document: Document | None
    source: str
    line: int
    reason: str = ""
    raw: str = ""
    replaced: int = 0
    fraction: float = 0.0


def to_document(value: object, id_field: str = "") -> Document:
    """Return a JSON value as a document with its ``_id`` beside its fields; a search hit is unwrapped.

    Raises:
        InputError: it is no object, is nested too deeply, or its id is no text and no whole number.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"expected a JSON object, found {said(value)}")
    fields: dict[str, Any] = dict(value)
    if _too_deep(fields):
        raise InputError(f"nested deeper than {_DEEPEST} levels")
    if isinstance(fields.get("_source"), Mapping):
        fields = {**fields["_source"], **({"_id": fields["_id"]} if "_id" in fields else {})}
    name = id_field or ("_id" if "_id" in fields else "id")
    found = fields.get(name)
    fields.pop("_id", None)
    if found is None:
        return fields
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise InputError(f"the id in [{name}] must be text or a whole number, not {found!r:.80}")
    return {"_id": str(found), **fields}


def _too_deep(fields: dict[str, Any]) -> bool:
    """Tell whether a value is nested so deeply that walking it could exhaust the stack."""
    level: list[Any] = [fields]
    for _ in range(_DEEPEST):
        items = (item for node in level for item in (node.values() if isinstance(node, dict) else node))
        level = [item for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True
