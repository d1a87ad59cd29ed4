"""CSV: the first row names the fields, every other row is a document."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from shinglefold.errors import InputError
from shinglefold.ingest.readers.encodings import decoded
from shinglefold.ingest.readers.record import ReadOptions, Record, to_document
from shinglefold.ingest.readers.streams import InputSource, lines, splittable

_SEPARATORS = ",;\t"
#: Names of columns are no numbers, dates, addresses, running text.
_DATA = re.compile(r"^[-+]?\d[\d.,:/ T-]*$|://|\w@\w|^(?:\S+\s+){7}\S|^.{100}")

#: How files say to Excel what parts their columns.
_SAYS = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)

#: What the csv module says, and what it means here.
_SAID = (
    ("unexpected end of data", "a quote opened in this row never closes"),
    (
        "new-line character",
        r"lines end in carriage returns alone; make newlines of them: tr '\r' '\n' < FILE",
    ),
)


class _Text:
    """Decoded lines for the csv module, counting what was replaced and keeping what a row was made of."""

    def __init__(self, source: InputSource, options: ReadOptions) -> None:
        stream, self._encoding = splittable(source.stream, options.encoding)
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
            text, replaced = decoded(line.raw, self._encoding)
            self.replaced += replaced
            if replaced or self._encoding != "utf-8":
                self.broken = self.broken or self._guess.mistaken(line.raw, self._encoding)
            self.row.append(text)
            yield text + "\n"

    def take(self) -> tuple[str, int, str]:
        """Return the raw row, the places replaced in it and what is wrong with it, and start the next."""
        taken = "\n".join(self.row), self.replaced, self.broken
        self.row, self.replaced, self.broken = [], 0, ""
        return taken


def read_csv(source: InputSource, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each row after the header; of , ; and tab, its commonest separates.

    A first line ``sep=;``, as Excel writes and reads it, says so itself and is no header.
    """
    # The module's limit is the process's; a page is often longer than its 128 kB.
    csv.field_size_limit(max(csv.field_size_limit(), options.max_bytes))
    text = _Text(source, options)
    stream = iter(text)
    first = next(stream, "")
    separator = _separator(first)
    if said := _SAYS.fullmatch(first.strip("\r\n ")):
        # A line for Excel alone; the header is the next.
        text.take()
        separator, first = said[1], next(stream, "")
    # Strict: a quote that never closes would swallow all rows after it without a word.
    rows = csv.reader(chain([first] if first else [], stream), delimiter=separator, strict=True)
    header, error = _next(rows)
    raw, replaced, broken = text.take()
    row = header
    header = header and _names(header, options)
    if wrong := broken or error or (header and _misnamed(header, options)):
        yield Record(None, source.name, 1, f"the header: {wrong}", raw, replaced)
        return
    if row and options.header is False:
        place = Record(None, source.name, 1, "", raw, replaced, source.fraction(), options.id_field)
        yield _filled(place, header or [], row)
    while True:
        start = text.number + 1
        row, error = _next(rows)
        if row is None and not error:
            return
        raw, replaced, broken = text.take()
        if reason := broken or error:
            yield Record(None, source.name, start, reason, raw, replaced, source.fraction(), options.id_field)
        elif row:
            place = Record(None, source.name, start, "", raw, replaced, source.fraction(), options.id_field)
            yield _filled(place, header or [], row)


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _next(rows: Iterator[list[str]]) -> tuple[list[str] | None, str]:
    try:
        return next(rows, None), ""
    except csv.Error as error:
        return None, "invalid CSV: " + next(
            (ours for theirs, ours in _SAID if theirs in str(error)), str(error)
        )


def _names(row: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the names of the columns; those that have none are numbered, as index columns of dumps are."""
    named = [""] * len(row) if options.header is False else row
    return [name if name.strip() else f"column{number}" for number, name in enumerate(named, 1)]


def _misnamed(header: Sequence[str], options: ReadOptions) -> str:
    id_field = options.id_field
    if options.header is None and (found := next(filter(_DATA.search, header), None)):
        return (
            f"{found[:80]!r} looks like data, not like the name of a column; "
            "give --no-header if it is, else --header"
        )
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        return f"the column {twice[0]!r} is there twice; give each a name of its own"
    if id_field and id_field not in header:
        return f"no column {id_field!r}, which ids are to come from; the columns are {', '.join(header)}"
    return ""


def _filled(place: Record, header: Sequence[str], row: Sequence[str]) -> Record:
    if len(row) != len(header):
        parted = "; columns are parted by , ; or tab" if len(header) == 1 else ""
        return replace(place, reason=f"{len(row)} values in a row, the header has {len(header)}{parted}")
    # A row can leave nothing else out: what is empty has no value. An id that is empty is a mistake.
    named = place.id_field or ("_id" if "_id" in header else "id")
    fields = {name: value for name, value in zip(header, row, strict=True) if value or name == named}
    try:
        return replace(place, document=to_document(fields, place.id_field), raw="", id_field="")
    except InputError as error:
        # As an object it can be mended and read again without its header.
        return replace(place, reason=str(error), raw=json.dumps(fields, ensure_ascii=False))
