"""Read documents from files and folders: JSON lines, CSV, HTML pages, texts."""

import csv
import html
import json
import os
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from email import message_from_bytes
from functools import partial
from gzip import BadGzipFile
from itertools import chain, islice
from pathlib import Path
from typing import Any

from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError, InputError, reason_of, suggest
from shinglefold.ingest.readers.encodings import better_encoding, strip_bom
from shinglefold.ingest.readers.jsonl import read_jsonl
from shinglefold.ingest.readers.record import Format, ReadOptions, Record, as_html, to_document
from shinglefold.ingest.readers.streams import (
    STANDARD_INPUT,
    InputSource,
    decode_lossy,
    join_chunks,
    lines,
    newline_stream,
    open_source,
)
from shinglefold.options.validation import check_options

HTML = (".html", ".htm", ".xhtml", ".mht", ".mhtml")
TEXT = (".txt", ".md", ".text")
_TITLE = re.compile(r"<title(?:\s[^<>]*)?>(.*?)(</title|\Z)", re.IGNORECASE | re.DOTALL)
#: An element without an end takes the rest of the page: a search for each end would be quadratic.
_NO_TITLE = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<(script|style|svg|math|template|textarea|noscript|iframe|xmp)\b(?:(?:[^<>]*[\"'\s])?/>|.*?(?:</\1\s*>|\Z))",
    re.IGNORECASE | re.DOTALL,
)
_TITLE_WITHIN = 65_536
_SUFFIXES: dict[Format, tuple[str, ...]] = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv", ".tsv"),
    "html": HTML,
    "text": TEXT,
}
#: The beginnings of pages of any name: the table of WHATWG's MIME Sniffing Standard, and parts of a head.
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?(?:\s|<!--.*?(?:-->|\Z)|<\?xml.*?>)*+"
    rb"<(?:!doctype\s+html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|link|base)[\s/>]",
    re.IGNORECASE | re.DOTALL,
)
_BEGINNING = 8192
_PIECE = 1 << 20
#: The headers of a page that was saved with those of its server, or as one file (MHTML).
_STATUS = re.compile(rb"HTTP/[\d.]+ \d{3}[^\n]*\n")
_HEADERS = re.compile(rb"(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*+)++\r?\n")
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
#: Bytes of a file's name that are not UTF-8 arrive as surrogates, which no engine can store.
_UNDECODED = re.compile("[\udc80-\udcff]")
#: Suffixes of compressed files other than gzip.
_COMPRESSED = (".zip", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz")
#: Magic bytes of other files that may be valid UTF-8: the offset, the bytes, and the kind of file.
_NO_TEXTS = {(0, b"%PDF-"): "PDF", (0, b"{\\rtf"): "RTF", (257, b"ustar"): "a tar archive"}
_SEPARATORS = ",;\t|"
#: Control characters: UTF-16 that is read in another encoding has one at every second place.
_CONTROL = re.compile("[\0-\b\x0e-\x1f]")
_QUOTED = re.compile(r'"[^"]*"')
#: Values that are not column names: numbers, dates, URLs, e-mail addresses, running text.
_DATA = re.compile(r"^[-+]?\d[\d.,:/ T-]*$|://|\w@\w|^(?:\S+\s+){7}\S|^.{100}")
#: A first line that names the separator for Excel.
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
#: Messages of the csv module, and ours.
_MESSAGES = (
    ("unexpected end of data", "a quote opened in this row never closes"),
    (
        "new-line character",
        r"lines end in carriage returns alone; make newlines of them: tr '\r' '\n' < FILE",
    ),
)


def read(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Yield a record for each document of a file, a folder or standard input (``-``).

    Reads JSONL and CSV, HTML and text files, all also compressed by gzip, and folders of HTML and text files.
    A document that cannot be read yields a record with the reason; blank lines are skipped.

    Raises:
        InputError: there is no such file, or it can't be opened.
        ConfigError: the name is empty, or neither it nor ``format`` determines the format.
    """
    check_options(options, ReadOptions)
    name, options = str(path), options or ReadOptions()
    # An unset shell variable gives an empty name, and Path("") is the current folder.
    if not path:
        raise ConfigError("the name of a source is empty: give a file, a folder, or - for standard input")
    records = _records(name, options)
    return map(as_html, records) if options.html else records


def _records(name: str, options: ReadOptions) -> Iterator[Record]:
    # Unlike the methods of Path, these functions raise for no name, however long it is.
    if name != STANDARD_INPUT and os.path.isdir(name):
        return read_folder(name, options)
    if name != STANDARD_INPUT and not os.path.exists(name):
        raise InputError(f"cannot read {name}: no such file or folder; check the path")
    return _read_stream(name, options, format_of(name, options))


def _read_stream(path: str, options: ReadOptions, kind: Format) -> Iterator[Record]:
    with open_source(path) as source:
        if kind == "jsonl":
            yield from read_jsonl(source, options)
        elif kind == "csv":
            yield from read_csv(source, options)
        else:
            yield from read_page(source, options, kind == "html")


def format_of(path: str, options: ReadOptions) -> Format:
    """Return the format of a source: that of the options, or by its name.

    Raises:
        ConfigError: its name does not determine the format.
    """
    if options.format != "auto":
        return options.format
    if path == STANDARD_INPUT:
        return "jsonl"
    name = path.lower().removesuffix(".gz")
    for kind, suffixes in _SUFFIXES.items():
        if name.endswith(suffixes):
            return kind
    if name.endswith(_COMPRESSED):
        raise ConfigError(f"{path}: .gz is the only supported compression; decompress it first")
    if name.endswith(".parquet"):
        raise ConfigError(
            f"{path}: only sign reads Parquet: convert it to JSON lines with "
            f"{suggest('sign', path, output='FILE.jsonl')}"
        )
    known = ", ".join(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
    raise ConfigError(
        f"{path}: its name does not end in one of {known}; say its format with "
        "--format jsonl, csv, html or text"
    )


def read_folder(path: str, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each HTML or text file below a folder, sorted by path, which is its id."""
    failures: list[OSError] = []
    files = sorted(_files(path, options, failures.append))
    for error in failures:
        yield Record(None, str(error.filename), 1, f"the folder cannot be read: {error.strerror}")
    for number, file in enumerate(files, 1):
        name = Path(file).relative_to(path).as_posix()
        yield _read_file(file, name, options, number / len(files))


def read_page(source: InputSource, options: ReadOptions, html_page: bool) -> Iterator[Record]:
    """Yield the record of a stream that is one document."""
    raw = _whole(source, options)
    yield _record(
        raw, Path(source.name).name, source.name, html_page=html_page, options=options, fraction=1.0
    )


def _whole(source: InputSource, options: ReadOptions) -> bytes | str:
    """Return the bytes of a stream, little more than ``max_bytes`` at most, or why they can't be read."""
    try:
        # One read of everything would allocate ``max_bytes`` at once.
        pieces = iter(partial(source.stream.read, _PIECE), b"")
        return b"".join(islice(pieces, options.max_bytes // _PIECE + 1))
    except (EOFError, BadGzipFile, zlib.error) as error:
        return f"the file is damaged: {reason_of(error)}"
    except OSError as error:
        return f"cannot be read: {reason_of(error)}"


def _files(path: str, options: ReadOptions, failed: Callable[[OSError], None]) -> Iterator[str]:
    """Yield paths of pages and texts; count hidden files, other files and links to folders."""
    skipped = options.skipped
    for folder, folders, names in os.walk(path, onerror=failed):
        hidden = [name for name in (*folders, *names) if name.startswith(".")]
        skipped["hidden_skipped"] += len(hidden)
        folders[:] = [name for name in folders if not name.startswith(".")]
        skipped["linked_folders_skipped"] += sum(
            os.path.islink(os.path.join(folder, name)) for name in folders
        )
        for name in names:
            file = os.path.join(folder, name)
            if not name.startswith(".") and is_page_file(file):
                yield file
            elif not name.startswith("."):
                skipped["other_files_skipped"] += 1


def _may_block(file: str) -> bool:
    """Return whether reading a file may block forever, as a pipe without a writer."""
    try:
        mode = os.stat(file).st_mode
    except OSError:
        return False  # Reading it says why it can't be read.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_page_file(file: str) -> bool:
    """Return whether a file is a page or a text by its name, or begins as a page.

    Files of mirrored sites have names such as ``news.php?id=12``.
    """
    if _may_block(file):
        return False
    if is_page(file):
        return True
    try:
        with open_source(file) as source:
            # Without its zero bytes, UTF-16 of ASCII is ASCII.
            return bool(_PAGE.match(source.stream.read(_BEGINNING).replace(b"\0", b"")))
    except (InputError, OSError, EOFError, zlib.error):
        return False


def is_page(name: str) -> bool:
    """Return whether a file's name is that of an HTML page or a text."""
    return name.lower().removesuffix(".gz").endswith((*HTML, *TEXT))


def _read_file(file: str, name: str, options: ReadOptions, fraction: float) -> Record:
    try:
        with open_source(file) as source:
            raw = _whole(source, options)
    except InputError as error:
        is_broken = os.path.islink(file) and not os.path.exists(file)
        raw = f"cannot be read: {'a broken link' if is_broken else reason_of(error.__cause__ or error)}"
    html_page = not name.lower().removesuffix(".gz").endswith(TEXT)
    return _record(raw, name, file, html_page=html_page, options=options, fraction=fraction)


def _record(
    raw: bytes | str, name: str, source: str, *, html_page: bool, options: ReadOptions, fraction: float
) -> Record:
    if isinstance(raw, str):
        return Record(None, source, 1, raw, fraction=fraction)
    if len(raw) > options.max_bytes:
        return Record(None, source, 1, f"longer than {options.max_bytes:,} bytes", fraction=fraction)
    if kind := next((kind for (at, sign), kind in _NO_TEXTS.items() if raw.startswith(sign, at)), ""):
        return Record(None, source, 1, f"the file is not text: it is {kind}", fraction=fraction)
    raw, label = _without_headers(raw) if html_page else (raw, "")
    raw, encoding = strip_bom(raw, options.encoding, html_page, label)
    if not options.encoding and (better := better_encoding(raw, encoding)):
        encoding = better
        options.skipped["wrong_encodings"] += 1
    text, replaced = decode_lossy(raw, encoding)
    odd = replaced or encoding != "utf-8" or "\0" in text
    if odd and (mismatch := options.guess.mismatch(raw, encoding, whole=True)):
        return Record(None, source, 1, mismatch, "", replaced, fraction)
    identity = f"{options.prefix}/{name}" if options.prefix else name
    document: Document = {"_id": _UNDECODED.sub(lambda byte: f"%{ord(byte[0]) & 0xFF:02X}", identity)}
    if html_page:
        document |= {"title": _title(text), "format": "html", "body": text}
    else:
        # No title from the file name: a title is fingerprinted, and copies under two names would differ.
        document |= {"format": "text", "body": text}
    return Record(document, source, 1, "", "", replaced, fraction)


def _without_headers(raw: bytes) -> tuple[bytes, str]:
    """Return a page without the headers that it was saved with, and the encoding that they declare or ""."""
    status = _STATUS.match(raw)
    headers = _HEADERS.match(raw, status.end() if status else 0)
    if headers is None:
        return raw, ""
    try:
        parts = list(message_from_bytes(raw[headers.start() :]).walk())
    except RecursionError:  # Messages in messages, a thousand deep.
        return raw, ""
    for part in parts:
        if part.get_content_type() in _PAGE_TYPES:
            page: Any = part.get_payload(decode=True)
            chunked = "chunked" in str(part["Transfer-Encoding"]).lower()
            return join_chunks(page) if chunked else page, part.get_content_charset("")
    return raw, ""


def _title(page: str) -> str:
    # Titles of scripts, pictures and comments are not titles of the document.
    match = _TITLE.search(_NO_TITLE.sub("", page[:_TITLE_WITHIN]))
    return " ".join(html.unescape(match[1]).split()) if match and match[2] else ""


class _Text:
    """Decoded lines for the csv module; counts replaced characters and keeps the lines of the current row."""

    def __init__(self, source: InputSource, options: ReadOptions) -> None:
        stream, self._encoding = newline_stream(source.stream, options.encoding)
        self._lines = lines(stream, options.max_bytes)
        self._guess = options.guess
        self.number = 0
        self.broken = ""
        self.replaced = 0
        self.row: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number = line.number
            self.broken = self.broken or line.reason
            text, replaced = decode_lossy(line.raw, self._encoding)
            self.replaced += replaced
            if replaced or self._encoding != "utf-8":
                self.broken = self.broken or self._guess.mismatch(line.raw, self._encoding)
            if not self.row:
                # Files joined to one have byte order marks in the middle.
                text = text.removeprefix("\ufeff")
            self.row.append(text)
            yield text + "\n"

    def skip_blank(self, stream: Iterator[str], blank: str) -> str:
        """Return the next line with other characters than ``blank``, "" at the end; none before is kept."""
        while (line := next(stream, "")) and not self.broken and not line.strip(blank):
            self.take()
        return line

    def take(self) -> tuple[str, int, str]:
        """Return the raw row, its number of replaced characters and its error, and start the next row."""
        taken = "\n".join(self.row), self.replaced, self.broken
        self.row, self.replaced, self.broken = [], 0, ""
        return taken


def read_csv(source: InputSource, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each row after the header.

    The separator is the most frequent of , ; | and tab in the header, a tab in a file ``.tsv``, or that of a
    first line ``sep=;``. A row that has the names of the columns is the header of a joined file; it is
    counted. Rows of empty cells are skipped as blank lines are, also before the header.
    """
    # Pages are often longer than the csv module's limit of 128 kB, which is global.
    csv.field_size_limit(max(csv.field_size_limit(), options.max_bytes))
    text = _Text(source, options)
    stream = iter(text)
    # A header that was announced may name no column.
    blank = " \r\n" if options.header else f"{_SEPARATORS} \r\n"
    first = text.skip_blank(stream, blank)
    separator = _separator(first, source.name)
    if match := _SEPARATOR_LINE.fullmatch(first.strip("\r\n ")):
        text.take()
        separator, first = match[1], text.skip_blank(stream, blank)
    start = text.number
    # Strict: an unclosed quote would silently swallow all following rows.
    rows = csv.reader(chain([first] if first else [], stream), delimiter=separator, strict=True)
    header, error = _next_row(rows)
    raw, replaced, broken = text.take()
    row = header
    header = header and _names(header, options)
    if wrong := broken or error or (row and header and _header_error(row, header, options)):
        yield Record(None, source.name, start, f"the header: {wrong}", raw, replaced)
        return
    if row and options.header is False:
        place = Record(None, source.name, start, "", raw, replaced, source.fraction(), options.id_field)
        yield _to_record(place, header or [], row)
    while True:
        start = text.number + 1
        row, error = _next_row(rows)
        if row is None and not error:
            return
        raw, replaced, broken = text.take()
        if reason := broken or error:
            yield Record(None, source.name, start, reason, raw, replaced, source.fraction(), options.id_field)
        elif not any(map(str.strip, row or [])):
            continue  # Spreadsheets end with such rows.
        elif row and (again := _header_again(row, header or [], options)):
            header = again
            options.skipped["repeated_headers"] += 1
        elif row:
            place = Record(None, source.name, start, "", raw, replaced, source.fraction(), options.id_field)
            yield _to_record(place, header or [], row)


def _separator(header: str, name: str) -> str:
    bare = _QUOTED.sub("", header)
    # The name of a column may have a comma in it, but no tab.
    is_tsv = name.lower().removesuffix(".gz").endswith(".tsv")
    return "\t" if is_tsv and "\t" in bare else max(_SEPARATORS, key=bare.count)


def _next_row(rows: Iterator[list[str]]) -> tuple[list[str] | None, str]:
    try:
        return next(rows, None), ""
    except csv.Error as error:
        return None, "invalid CSV: " + next(
            (ours for theirs, ours in _MESSAGES if theirs in str(error)), str(error)
        )


def _names(row: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the names of the columns; unnamed columns, such as index columns of dumps, are numbered."""
    named = [""] * len(row) if options.header is False else row
    return [name.strip() or f"column{number}" for number, name in enumerate(named, 1)]


def _header_again(row: Sequence[str], header: Sequence[str], options: ReadOptions) -> list[str] | None:
    """Return the names of columns if a row has them again, in any order, as in joined files; else None."""
    if options.header is False or len(row) != len(header):
        return None
    names = _names(row, options)
    return names if sorted(names) == sorted(header) else None


def _header_error(row: Sequence[str], header: Sequence[str], options: ReadOptions) -> str:
    id_field = options.id_field
    if found := next((one for one in row if one and 4 * len(_CONTROL.findall(one)) > len(one)), None):
        return f"{found[:80]!r} has control characters: say the --encoding, such as utf-16"
    if options.header is None and (found := next(filter(_DATA.search, header), None)):
        return (
            f"{found[:80]!r} looks like data, not like a column name; "
            "give --no-header if it is, else --header"
        )
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        return f"the column {twice[0]!r} occurs twice; give each column a name of its own"
    if id_field and id_field not in header:
        return f"no column {id_field!r}, the id field; the columns are {', '.join(header)}"
    return ""


def _to_record(place: Record, header: Sequence[str], row: Sequence[str]) -> Record:
    if len(row) != len(header):
        hint = "; columns are separated by , ; | or tab" if len(header) == 1 else ""
        return replace(place, reason=f"{len(row)} values in a row, the header has {len(header)}{hint}")
    # Empty cells have no value, but an empty id is an error.
    named = place.id_field or ("_id" if "_id" in header else "id")
    fields = {name: value for name, value in zip(header, row, strict=True) if value or name == named}
    try:
        return replace(place, document=to_document(fields, place.id_field), raw="", id_field="")
    except InputError as error:
        # As a JSON object, the row can be corrected and read again without its header.
        return replace(place, reason=str(error), raw=json.dumps(fields, ensure_ascii=False))
