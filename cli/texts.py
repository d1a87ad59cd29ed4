"""One text from a file or standard input, as ``compare`` wants it."""

from pathlib import Path

from shinglefold.canon import strip_html
from shinglefold.errors import InputError, UnknownLanguage
from shinglefold.ingest import ReadOptions, read
from shinglefold.scheme import Scheme

_PAGES = (".html", ".htm", ".xhtml")


def read_text(path: str, kind: str) -> str:
    """Return the text of a file or of standard input (``-``), markup out.

    Args:
        kind: ``html``, ``text``, or ``auto`` to go by the name.

    Raises:
        InputError: it can't be read.
    """
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder; give one file, or see: shinglefold pairs --help")
    if kind == "auto":
        kind = "html" if path.lower().endswith(_PAGES) else "text"
    record = next(iter(read(path, ReadOptions(format="html" if kind == "html" else "text"))), None)
    if record is None or record.document is None:
        raise InputError(f"{path}: {record.reason if record else 'nothing in it'}; give another file")
    body = str(record.document["body"])
    return strip_html(body, keep_hidden=True) if kind == "html" else body


def check_language(scheme: Scheme, language: str | None) -> None:
    """Raise ``UnknownLanguage`` unless the scheme has the language."""
    codes = [reference.code for reference in scheme.languages]
    if language is not None and language not in codes:
        raise UnknownLanguage.unknown("language", language, codes)
