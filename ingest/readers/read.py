"""Read documents from wherever they are."""

from collections.abc import Iterator
from pathlib import Path

from shinglefold.errors import ConfigError, InputError, suggest
from shinglefold.ingest.readers.csv_rows import read_csv
from shinglefold.ingest.readers.jsonl import read_jsonl
from shinglefold.ingest.readers.pages import HTML, TEXT, read_folder, read_page
from shinglefold.ingest.readers.record import Format, ReadOptions, Record
from shinglefold.ingest.readers.streams import STANDARD_INPUT, InputSource, opened
from shinglefold.options.validation import check_options

_SUFFIXES: dict[Format, tuple[str, ...]] = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "csv": (".csv", ".tsv"),
    "html": HTML,
    "text": TEXT,
}
#: How files end that are packed otherwise than by gzip; ``.gz`` itself is off by then.
_PACKED = (".zip", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz")


def read(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Yield a record for each document of a file, a folder or standard input (``-``).

    JSONL and CSV (both also ``.gz``), HTML and text files, and folders of HTML and text files. What is wrong
    with a single document is said in its record; blank lines are nothing.

    Raises:
        InputError: there is no such file or it can't be opened.
        ConfigError: its name is empty, or does not say what it is and ``format`` doesn't either.
    """
    check_options(options, ReadOptions)
    name, options = str(path), options or ReadOptions()
    # An empty name is what a shell makes of an unset variable; the path of it would be this folder.
    if not path:
        raise ConfigError("the name of a source is empty: give a file, a folder, or - for standard input")
    if name != STANDARD_INPUT and Path(name).is_dir():
        return read_folder(name, options)
    if name != STANDARD_INPUT and not Path(name).exists():
        raise InputError(f"cannot read {name}: no such file or folder; check the path")
    return _read_stream(name, options, format_of(name, options))


def _read_stream(path: str, options: ReadOptions, kind: Format) -> Iterator[Record]:
    with opened(path) as source:
        yield from _records(source, options, kind)


def _records(source: InputSource, options: ReadOptions, kind: Format) -> Iterator[Record]:
    if kind == "jsonl":
        return read_jsonl(source, options)
    if kind == "csv":
        return read_csv(source, options)
    return read_page(source, options, kind == "html")


def format_of(path: str, options: ReadOptions) -> Format:
    """Return how a source is written: as told, or by its name.

    Raises:
        ConfigError: its name does not say it, and nobody does.
    """
    if options.format != "auto":
        return options.format
    if path == STANDARD_INPUT:
        return "jsonl"
    name = path.lower().removesuffix(".gz")
    for kind, suffixes in _SUFFIXES.items():
        if name.endswith(suffixes):
            return kind
    if name.endswith(_PACKED):
        raise ConfigError(f"{path}: of packed files .gz alone is read; unpack it first")
    if name.endswith(".parquet"):
        raise ConfigError(
            f"{path}: Parquet is read by sign alone: make JSON lines of it with "
            f"{suggest('sign', path, output='FILE.jsonl')}"
        )
    known = ", ".join(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
    raise ConfigError(
        f"{path}: its name does not end in one of {known}; say its format with "
        "--format jsonl, csv, html or text"
    )
