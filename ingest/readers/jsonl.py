"""JSON lines: one document a line."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from msgspec import MsgspecError

from shinglefold.contracts import Document
from shinglefold.errors import InputError
from shinglefold.ingest.readers.as_read import as_read, from_line
from shinglefold.ingest.readers.decode import decoded, without_surrogates
from shinglefold.ingest.readers.lines import NAMED, Line, Source, lines
from shinglefold.ingest.readers.records import ReadOptions, Record, to_document
from shinglefold.ingest.readers.transcode import splittable

#: Files joined to one have their byte order marks in the middle.
_BOM = b"\xef\xbb\xbf"
#: How the reason begins why a source as a whole can't be read.
WHOLE = "the input"
#: Bytes of a first line that are looked at.
_LOOK = 200


def read_jsonl(source: Source, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each line that is not blank."""
    stream, encoding = splittable(source.stream, options.encoding)
    options = replace(options, encoding=encoding)
    first, array = True, None
    for line in lines(stream, options.max_bytes):
        raw = line.raw.removeprefix(_BOM) if encoding == "utf-8" else line.raw
        if not (raw.strip() or line.reason):
            continue
        if array is not None:
            # Only a line that is wrong, as others follow.
            yield parse_line(array, source.name, options, source.fraction())
            array = None
        if first and (reason := _not_lines(raw, options.encoding, source.name)):
            if not _ends_array(raw, options.encoding):
                # What follows are parts of it, none of which is a document.
                yield Record(None, source.name, line.number, reason, fraction=source.fraction())
                return
            array = line._replace(raw=raw)
            first = False
            continue
        first = False
        record = parse_line(line._replace(raw=raw), source.name, options, source.fraction(), travels=True)
        # A long line must not be kept while its document is worked on.
        del line, raw
        yield record
    if array is not None:
        reason = _not_lines(array.raw, options.encoding, source.name)
        yield Record(None, source.name, array.number, reason, fraction=source.fraction())


def parse_line(
    line: Line, name: str, options: ReadOptions, fraction: float = 0.0, travels: bool = False
) -> Record:
    """Return the record of one line, which says why where it holds no document.

    Args:
        options: with an encoding in which a newline is one byte.
        travels: the document may go to a worker, as the line it stands in.
    """
    if line.reason:
        return Record(None, name, line.number, line.reason, fraction=fraction)
    if options.encoding == "utf-8" and (quick := _quick(line.raw, options.id_field)) is not None:
        document = as_read(quick, line.raw, options.id_field) if travels else quick
        return Record(document, name, line.number, fraction=fraction)
    text, replaced = decoded(line.raw, options.encoding)
    if replaced and (mistaken := options.guess.mistaken(line.raw, options.encoding)):
        kept = _kept(line.raw, options.encoding)
        return Record(None, name, line.number, mistaken, kept, replaced, fraction, options.id_field)
    try:
        value = json.loads(text, parse_constant=_refuse)
        # Only an escape can bring a lone surrogate into decoded text.
        if "\\ud" in text or "\\uD" in text:
            value, lone = without_surrogates(value)
            replaced += lone
        document = to_document(value, options.id_field)
    except (ValueError, RecursionError, InputError) as error:
        kept = _kept(line.raw, options.encoding)
        reason = _reason(text, error)
        return Record(None, name, line.number, reason, kept, replaced, fraction, options.id_field)
    return Record(document, name, line.number, "", "", replaced, fraction)


def _quick(raw: bytes, id_field: str) -> Document | None:
    """Return the document of a line of UTF-8 in a third of the time; None where something may be wrong.

    What the fast reader refuses is read again with care: half of a surrogate pair, which is replaced, and
    whatever needs a reason.
    """
    try:
        return from_line(raw, id_field)
    except (MsgspecError, ValueError, RecursionError, InputError):
        return None


def _not_lines(raw: bytes, encoding: str, name: str) -> str:
    """Return why a file that begins with this line holds no lines of JSON, and what makes such of it."""
    text, _ = decoded(raw[:_LOOK], encoding)
    text = text.strip()
    if text.startswith("["):
        what, program = "an array", "jq -c '.[]'"
    elif text == "{":
        what, program = "objects over several lines", "jq -c ."
    else:
        return ""
    if name == NAMED:
        return f"{WHOLE} holds {what}, not an object a line; pipe it through {program} first"
    command = f"{program} {shlex.quote(name)} > documents.jsonl"
    return f"{WHOLE} holds {what}, not an object a line; make lines of it: {command}"


def _kept(raw: bytes, encoding: str) -> str:
    """Return a line as it can be read again from UTF-8, undecodable bytes as lone surrogates."""
    try:
        return raw.decode(encoding, "surrogateescape")
    except UnicodeError:
        return raw.decode(encoding, "replace")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON; write null or leave it out")


def _ends_array(raw: bytes, encoding: str) -> bool:
    text, _ = decoded(raw[-_LOOK:], encoding)
    return text.rstrip().endswith("]")


def _reason(text: str, error: Exception) -> str:
    if isinstance(error, InputError):
        return f"{error}{_hint(text)}"
    if isinstance(error, RecursionError):
        return "invalid JSON: nested too deeply"
    if "integer string conversion" in str(error):
        return "invalid JSON: a number of more digits than can be read"
    return f"invalid JSON: {error}{_hint(text)}"


def _hint(text: str) -> str:
    if text.lstrip().startswith("["):
        return " (an array: write one object a line, as jq -c '.[]' does)"
    return (
        " (an object over several lines: write each on one, as jq -c . does)" if text.strip() == "{" else ""
    )
