"""Read one text from the command line, a file or standard input."""

import os
import shlex
from itertools import islice

import click

from shinglefold.canon import strip_html
from shinglefold.cli.framework.output import printable, remark
from shinglefold.contracts.engine import Document
from shinglefold.errors import InputError, UnknownLanguage
from shinglefold.ingest import ReadOptions, read
from shinglefold.model.recipe import TEXTS, Recipe
from shinglefold.model.scheme import Scheme

_PAGES = (".html", ".htm", ".xhtml")
#: The most characters of a name in a message; it may be a text given without ``--text``.
_SHOWN = 200
_RECORDS = (".jsonl", ".ndjson", ".json", ".csv")


def read_text(path: str, kind: str, encoding: str = "") -> str:
    """Return the text of a file or of standard input (``-``) without markup.

    A file of documents (JSON lines, CSV) must hold one; its text is title and body.

    Args:
        kind: ``html``, ``text``, or ``auto`` to go by the name.
        encoding: "" to take what the file declares.

    Raises:
        InputError: it can't be read.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give one file, or see: shinglefold groups --help")
    if path != "-" and not os.path.exists(path):
        raise InputError(
            f"cannot read {printable(path[:_SHOWN])}: no such file; check the path, or add --text where the "
            "text itself is given"
        )
    name = path.lower().removesuffix(".gz")
    if kind == "auto" and name.endswith(_RECORDS):
        return _only_text(path, encoding)
    kind = _kind(path, kind)
    return _plain(kind, _only_document(path, kind, encoding))


def text_as_indexed(path: str, kind: str, encoding: str, recipe: Recipe) -> str:
    """Return the text that an index would make the fingerprint of a file or of standard input from.

    An HTML page goes through the pipeline of the index, so that the file of a stored page equals it. If the
    index reads other fields than a page has, it is the body.

    Raises:
        InputError: it can't be read.
    """
    from shinglefold.ingest import Pipeline, default_definition
    from shinglefold.ingest.processors.texts import gather

    if _kind(path, kind) != "html":
        return read_text(path, kind, encoding)
    page = _only_document(path, "html", encoding)
    pipeline = Pipeline.from_json(recipe.pipeline or default_definition(recipe.field), recipe.scheme)
    (outcome,) = pipeline.run([page])
    other_fields = [name for name in recipe.fields if name != "title"]
    if outcome.document is None or not gather(outcome.document, other_fields, True):
        return _plain("html", page)
    return gather(outcome.document, recipe.fields, True) or ""


def _plain(kind: str, document: Document) -> str:
    body = str(document["body"])
    return strip_html(body, keep_hidden=True) if kind == "html" else body


def _kind(path: str, kind: str) -> str:
    if kind != "auto":
        return kind
    return "html" if path.lower().removesuffix(".gz").endswith(_PAGES) else "text"


def _only_document(path: str, kind: str, encoding: str) -> Document:
    options = ReadOptions(format="html" if kind == "html" else "text", encoding=encoding)
    record = next(iter(read(path, options)), None)
    if record is None or record.document is None:
        raise InputError(f"{path}: {record.reason if record else 'nothing in it'}; give another file")
    if "\0" in str(record.document["body"]):
        remark(
            f"warning: {printable(path)} holds NUL characters, as binary files do, and texts in UTF-16 that "
            "do not say so (--encoding utf-16-le): what is read of it may be no words"
        )
    return record.document


def _only_text(path: str, encoding: str) -> str:
    records = list(islice(read(path, ReadOptions(encoding=encoding)), 2))
    if len(records) > 1:
        raise InputError(
            f"{path} has several documents; give a file with one text, or find pairs among them: "
            f"shinglefold groups --pairs {shlex.quote(path)}"
        )
    if not records or records[0].document is None:
        raise InputError(f"{path}: {records[0].reason if records else 'nothing in it'}; give another file")
    found = [records[0].document.get(field) for field in TEXTS]
    texts = [text for text in found if isinstance(text, str) and text]
    if not texts:
        raise InputError(f"{path}: its document has no text in {' or '.join(TEXTS)}; give another file")
    return "\n".join(texts)


def two_texts(
    a: str, b: str, kind: str, encoding: str, *, itself: bool
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return two texts and their names.

    Args:
        kind, encoding: of both, see ``read_text``.
        itself: ``a`` and ``b`` are texts, not files.

    Raises:
        UsageError: both are standard input.
        InputError: one can't be read.
    """
    if itself:
        return (a, b), ("A", "B")
    if a == b == "-":
        raise click.UsageError("only one of the two can be standard input")
    return (read_text(a, kind, encoding), read_text(b, kind, encoding)), (a, b)


def check_language(scheme: Scheme, language: str | None) -> None:
    """Raise ``UnknownLanguage`` unless the scheme has the language."""
    codes = [reference.code for reference in scheme.languages]
    if language is not None and language not in codes:
        raise UnknownLanguage.unknown("language", language, codes)
