"""Pages and texts as files: a folder of them, or one."""

import html
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from gzip import BadGzipFile
from pathlib import Path

from shinglefold.contracts.engine import Document
from shinglefold.errors import reason_of
from shinglefold.ingest.readers.encodings import decoded, without_mark
from shinglefold.ingest.readers.record import ReadOptions, Record
from shinglefold.ingest.readers.streams import InputSource

HTML = (".html", ".htm", ".xhtml")
TEXT = (".txt", ".md", ".text")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_TITLE_WITHIN = 65_536


def read_folder(path: str, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each HTML or text file below a folder, by name; its id is its path from there."""
    failures: list[OSError] = []
    files = sorted(_files(path, options, failures.append))
    for error in failures:
        yield Record(None, str(error.filename), 1, f"the folder cannot be read: {error.strerror}")
    for number, file in enumerate(files, 1):
        name = Path(file).relative_to(path).as_posix()
        yield _read_file(file, name, options, number / len(files))


def read_page(source: InputSource, options: ReadOptions, html_page: bool) -> Iterator[Record]:
    """Yield the one record of a stream that is one document."""
    try:
        raw = source.stream.read(options.max_bytes + 1)
    except (EOFError, BadGzipFile, zlib.error) as error:
        yield Record(None, source.name, 1, f"the file is damaged: {reason_of(error)}")
        return
    except OSError as error:
        yield Record(None, source.name, 1, f"cannot be read: {reason_of(error)}")
        return
    yield _record(
        raw, Path(source.name).name, source.name, html_page=html_page, options=options, fraction=1.0
    )


def _files(path: str, options: ReadOptions, failed: Callable[[OSError], None]) -> Iterator[str]:
    """Yield pages and texts; what begins with a dot, other files and links to folders are counted only."""
    passed_over = options.passed_over
    for folder, folders, names in os.walk(path, onerror=failed):
        hidden = [name for name in (*folders, *names) if name.startswith(".")]
        passed_over["hidden_skipped"] += len(hidden)
        folders[:] = [name for name in folders if not name.startswith(".")]
        passed_over["linked_folders_skipped"] += sum(
            os.path.islink(os.path.join(folder, name)) for name in folders
        )
        for name in names:
            if is_page(name) and not name.startswith(".") and not _waits(os.path.join(folder, name)):
                yield os.path.join(folder, name)
            elif not name.startswith("."):
                passed_over["other_files_skipped"] += 1


def _waits(file: str) -> bool:
    """Tell whether reading a file may wait for ever, as a pipe does that nobody writes to."""
    try:
        mode = os.stat(file).st_mode
    except OSError:
        return False  # Reading it says why it can't be read.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_page(name: str) -> bool:
    """Tell whether a file's name says HTML or text."""
    return name.lower().endswith((*HTML, *TEXT))


def _read_file(file: str, name: str, options: ReadOptions, fraction: float) -> Record:
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(options.max_bytes + 1)
    except OSError as error:
        reason_of = "a link that leads nowhere" if os.path.islink(file) else error.strerror
        return Record(None, file, 1, f"cannot be read: {reason_of}", fraction=fraction)
    return _record(raw, name, file, html_page=name.lower().endswith(HTML), options=options, fraction=fraction)


def _record(
    raw: bytes, name: str, source: str, *, html_page: bool, options: ReadOptions, fraction: float
) -> Record:
    if len(raw) > options.max_bytes:
        return Record(None, source, 1, f"longer than {options.max_bytes:,} bytes", fraction=fraction)
    raw, encoding = without_mark(raw, options.encoding, html_page)
    text, replaced = decoded(raw, encoding)
    if (replaced or encoding != "utf-8") and (mistaken := options.guess.mistaken(raw, encoding)):
        return Record(None, source, 1, mistaken, "", replaced, fraction)
    # Names are bytes on disk; those that are no UTF-8 arrive as surrogates, which nothing can store.
    identity = f"{options.prefix}/{name}" if options.prefix else name
    document: Document = {"_id": identity.encode("utf-8", "replace").decode("utf-8")}
    if html_page:
        document |= {"title": _title(text), "format": "html", "body": text}
    else:
        # Its name is no title: that counts as text, and equal texts under two names would not be equal.
        document |= {"format": "text", "body": text}
    return Record(document, source, 1, "", "", replaced, fraction)


def _title(page: str) -> str:
    match = _TITLE.search(page[:_TITLE_WITHIN])
    return " ".join(html.unescape(match[1]).split()) if match else ""
