"""JSON lines: one document a line."""

import json
from collections.abc import Iterator
from typing import NoReturn

from shinglefold.errors import InputError
from shinglefold.ingest.decode import decode, without_surrogates
from shinglefold.ingest.lines import Line, Source, lines
from shinglefold.ingest.records import ReadOptions, Record, to_document

_BOM = b"\xef\xbb\xbf"


def read_jsonl(source: Source, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each line that is not blank."""
    for line in lines(source.stream, options.max_bytes):
        raw = line.raw.removeprefix(_BOM) if line.number == 1 else line.raw
        if raw.strip() or line.reason:
            yield parse_line(line._replace(raw=raw), source.name, options, source.fraction())


def parse_line(line: Line, name: str, options: ReadOptions, fraction: float = 0.0) -> Record:
    """Return the record of one line, which says why where it holds no document."""
    if line.reason:
        return Record(None, name, line.number, line.reason, fraction=fraction)
    text, replaced = decode(line.raw, options.encoding)
    try:
        value = json.loads(text, parse_constant=_refuse)
        # Only an escape can bring a lone surrogate into decoded text.
        if "\\ud" in text or "\\uD" in text:
            value, lone = without_surrogates(value)
            replaced += lone
        document = to_document(value, options.id_field)
    except (ValueError, RecursionError, InputError) as error:
        raw = line.raw.decode("utf-8", "surrogateescape")
        return Record(None, name, line.number, _reason(text, error), raw, replaced, fraction)
    return Record(document, name, line.number, "", "", replaced, fraction)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _reason(text: str, error: Exception) -> str:
    if isinstance(error, InputError):
        hint = " (an array: write one object a line)" if text.lstrip().startswith("[") else ""
        return f"{error}{hint}"
    if isinstance(error, RecursionError):
        return "invalid JSON: nested too deeply"
    if "integer string conversion" in str(error):
        return "invalid JSON: a number of more digits than can be read"
    return f"invalid JSON: {error}"
