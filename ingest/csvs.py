"""CSV: the first row names the fields, every other row is a document."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from shinglefold.errors import InputError
from shinglefold.ingest.decode import decode
from shinglefold.ingest.lines import Source, lines
from shinglefold.ingest.records import ReadOptions, Record, to_document

_SEPARATORS = ",;\t"


class _Text:
    """Decoded lines for the csv module, counting what was replaced and keeping what a row was made of."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self._lines = lines(source.stream, options.max_bytes)
        self._encoding = options.encoding
        self.number = 0
        self.broken = ""
        self.replaced = 0
        self.row: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number = line.number
            self.broken = self.broken or line.reason
            text, replaced = decode(line.raw, self._encoding)
            self.replaced += replaced
            self.row.append(text)
            yield text + "\n"

    def take(self) -> tuple[str, int, str]:
        """Return the raw row, the places replaced in it and what is wrong with it, and start the next."""
        taken = "\n".join(self.row), self.replaced, self.broken
        self.row, self.replaced, self.broken = [], 0, ""
        return taken


def read_csv(source: Source, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each row after the header; of , ; and tab, its commonest separates."""
    # The module's limit is the process's; a page is often longer than its 128 kB.
    csv.field_size_limit(max(csv.field_size_limit(), options.max_bytes))
    text = _Text(source, options)
    stream = iter(text)
    first = next(stream, "")
    # Strict: a quote that never closes would swallow all rows after it without a word.
    rows = csv.reader(chain([first] if first else [], stream), delimiter=_separator(first), strict=True)
    header, error = _next(rows)
    raw, replaced, broken = text.take()
    if wrong := broken or error or _repeated(header or []):
        yield Record(None, source.name, 1, f"the header: {wrong}", raw, replaced)
        return
    while True:
        start = text.number + 1
        row, error = _next(rows)
        if row is None and not error:
            return
        raw, replaced, broken = text.take()
        if row or error or broken:
            document, reason = None, broken or error
            if not reason:
                document, reason = _document(header or [], row or [], options.id_field)
            yield Record(
                document, source.name, start, reason, raw if reason else "", replaced, source.fraction()
            )


def _separator(header: str) -> str:
    return max(_SEPARATORS, key=header.count)


def _next(rows: Iterator[list[str]]) -> tuple[list[str] | None, str]:
    try:
        return next(rows, None), ""
    except csv.Error as error:
        unclosed = "unexpected end of data" in str(error)
        return None, "invalid CSV: " + ("a quote opened in this row never closes" if unclosed else str(error))


def _repeated(header: Sequence[str]) -> str:
    twice = [name for name, count in Counter(header).items() if count > 1]
    return f"the column {twice[0]!r} is there twice; give each a name of its own" if twice else ""


def _document(header: Sequence[str], row: Sequence[str], id_field: str) -> tuple[dict[str, str] | None, str]:
    if len(row) != len(header):
        return None, f"{len(row)} values in a row, the header has {len(header)}"
    try:
        return to_document(dict(zip(header, row, strict=True)), id_field), ""
    except InputError as error:
        return None, str(error)
