"""Read documents, single texts and JSON files for commands, with the options that say how."""

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.definitions import options
from shinglefold.cli.shared.output import printable, remark
from shinglefold.errors import ConfigError, InputError, ProcessorError, UnknownLanguage, counted

if TYPE_CHECKING:
    from shinglefold.contracts.engine import Document
    from shinglefold.ingest import Pipeline
    from shinglefold.ingest.readers.record import ReadOptions, Record
    from shinglefold.model.recipe import Recipe
    from shinglefold.model.scheme import Scheme

reading_options = options(
    click.option(
        "--format",
        "format",
        type=click.Choice(["auto", "jsonl", "csv", "html", "text"]),
        default="auto",
        show_default=True,
        help="Format of the sources; auto goes by the name, and takes standard input for JSONL.",
    ),
    click.option(
        "--id-field",
        default="",
        metavar="FIELD",
        help="Field of the id, which every record must have; by default _id, else id.",
    ),
    click.option(
        "--encoding",
        default="",
        metavar="NAME",
        help="Encoding; by default what the text declares, else UTF-8.",
    ),
    click.option(
        "--header/--no-header",
        "header",
        default=None,
        help="Whether the first row of CSV names the columns; without names they are numbered.",
    ),
)

routing_option = click.option(
    "--routing-field",
    default="",
    metavar="FIELD",
    help="Field of the routing, such as the parent's id for a join field; by default _routing.",
)


def make_read_options(
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None = None,
    html: bool = False,
) -> "ReadOptions":
    """Return the reading options of a command."""
    from shinglefold.ingest.readers.record import ReadOptions

    return ReadOptions(
        format=format,  # type: ignore[arg-type]  # click knows the choices
        id_field=id_field,
        encoding=encoding,
        header=header,
        html=html,
    )


def read_sources(
    sources: Sequence[str], options: "ReadOptions", replaying: Callable[[str], str] | None = None
) -> Iterator["Record"]:
    """Return the records of all sources in order; ``fraction`` counts each source alike.

    All sources are opened before the first is read, so that a mistyped name is reported at once.

    Args:
        replaying: returns the command that indexes the documents of a dead-letter file again.

    Raises:
        InputError: a source does not exist.
        ConfigError: while reading: a source holds dead letters.
    """
    from shinglefold.ingest import read

    prefixes = page_prefixes(sources, options)
    return _chain_records(
        [
            _documents(source, read(source, replace(options, prefix=prefixes.get(number, ""))), replaying)
            for number, source in enumerate(sources)
        ]
    )


def _documents(
    source: str, records: Iterator["Record"], replaying: Callable[[str], str] | None
) -> Iterator["Record"]:
    """Yield the records of a source, unless the first is a dead letter."""
    from shinglefold.ingest.writing.dead_letters import is_bare_letter

    first = next(records, None)
    if first is None:
        return
    if first.document is not None and is_bare_letter(first.document):
        how = f": they are tried again with: {replaying(source)}" if replaying and source != "-" else ""
        raise ConfigError(f"{first.source} holds dead letters, not documents{how}")
    yield first
    yield from records


def check_sources(sources: Sequence[str], options: "ReadOptions", dead_letters: str | None) -> None:
    """Check all sources before the first is processed."""
    from shinglefold.ingest import read
    from shinglefold.ingest.readers.jsonl import WHOLE
    from shinglefold.offline.sign.tasks import is_parquet, row_groups

    check_dead_letters(dead_letters, sources, "")
    for source in sources:
        if is_parquet(source):
            next(row_groups(source), None)
        else:
            # What is skipped here is counted when it is read again.
            records = read(source, replace(options, skipped=Counter()))
            if source != "-" and Path(source).is_file():
                first = next(_documents(source, records, None), None)
                if first is not None and first.document is None and first.reason.startswith(WHOLE):
                    raise InputError(f"{source}: {first.reason}")


def refuse_index(source: str, remedy: Callable[[str], str]) -> None:
    """Raise ``InputError``, with a remedy, for a missing file whose name may be that of an index."""
    if source and not ("." in source or "/" in source or source == "-" or os.path.exists(source)):
        missing = f"cannot read {printable(source)}: no such file or folder; check the path"
        raise InputError(f"{missing}. {printable(remedy(source))}")


def check_dead_letters(path: str | None, sources: Sequence[str], retried: str) -> None:
    """Refuse a file for dead letters that is a source, too.

    Args:
        retried: the command that retries the letters of this file, "" without one.
    """
    if path is None or not Path(path).is_file():
        return
    if any(Path(source).is_file() and Path(source).samefile(path) for source in sources):
        raise ConfigError(
            f"--dead-letters {path} is a source, too, and would be mixed with what failed: name another"
            + (f"; dead letters are tried again with: {retried}" if retried else "")
        )


def page_prefixes(sources: Sequence[str], options: "ReadOptions") -> dict[int, str]:
    """Return prefixes for the ids of pages, by the number of their source; none for a single source.

    The id of a page is its path in its folder. With several folders, the differing parts of their paths are
    put in front, so that no two pages have the same id.
    """
    places = {
        number: Path(os.path.abspath(one))
        for number, one in enumerate(sources)
        if is_page_source(one, options)
    }
    if len(places) < 2:
        return {}
    common = Path(os.path.commonpath([place.parent for place in places.values()]))
    found = {}
    for number, place in places.items():
        folder = place if place.is_dir() else place.parent
        found[number] = "" if folder == common else folder.relative_to(common).as_posix()
    return found


def is_page_source(source: str, options: "ReadOptions") -> bool:
    """Return whether a source is a page or text file, or a folder of them."""
    from shinglefold.ingest.readers.read import is_page

    if source == "-":
        return False
    return (
        Path(source).is_dir()
        or options.format in ("html", "text")
        or (options.format == "auto" and is_page(source))
    )


def _chain_records(streams: Sequence[Iterator["Record"]]) -> Iterator["Record"]:
    for number, stream in enumerate(streams):
        for record in stream:
            yield replace(record, fraction=(number + record.fraction) / len(streams))


def are_pages(sources: Sequence[str], options: "ReadOptions") -> bool:
    """Return whether all sources are HTML or text files, each of which is one document."""
    return options.format in ("html", "text") or all(is_page_source(one, options) for one in sources)


def skipped_counts(options: "ReadOptions") -> dict[str, int]:
    """Return how many files and rows were not read, by the reason, for the counts of a summary."""
    return {name: count for name, count in sorted(options.skipped.items()) if count}


def reading_notes(options: "ReadOptions", equal_ids: int = 0) -> Iterator[str]:
    """Yield notes about files that were skipped, and about documents of equal ids."""
    skipped = skipped_counts(options)
    if headers := skipped.pop("repeated_headers", 0):
        yield f"{headers:,} more rows have the names of the columns and are not documents: headers"
    if pages := skipped.pop("wrong_encodings", 0):
        yield f"read in another encoding than they declare: {pages:,}"
    if skipped:
        counts = ", ".join(f"{name.replace('_', ' ')}: {count:,}" for name, count in skipped.items())
        yield f"not read in folders: {counts}"
    if equal_ids:
        several = equal_ids > 1
        have = counted(equal_ids, "document has", "documents have")
        yield (
            f"{have} the id of another one; {'they are' if several else 'it is'} shown with where "
            f"{'they stand' if several else 'it stands'}, and an index keeps only the last one of an id"
        )


def read_json(path: str, what: str) -> Any:  # noqa: ANN401 - JSON
    """Return the contents of a JSON file.

    Args:
        what: its name in an error, such as "pipeline".

    Raises:
        InputError: it can't be read.
        ConfigError: it is not JSON.
    """
    try:
        return json.loads(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read the {what} {path}: {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the {what} {path} is no JSON: {error}") from error


def read_definition(path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON of a pipeline file.

    Raises:
        InputError: it can't be read.
        ConfigError: it is not a JSON object.
    """
    found = read_json(path, "pipeline")
    if not isinstance(found, dict):
        raise ConfigError(f"the pipeline {path} is not an object with a list 'processors'")
    return found


#: The most characters of a name in a message; it may be a text given without ``--text``.
_SHOWN = 200
_DOCUMENTS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


def read_text(path: str, kind: str, encoding: str = "") -> str:
    """Return the text of a file or of standard input (``-``) without markup.

    A file of documents (JSON lines, CSV) must hold one; its text is title and body.

    Args:
        kind: ``html``, ``text``, or ``auto`` to go by the name.
        encoding: "" means the declared one.

    Raises:
        InputError: it can't be read.
    """
    return _plain(path, kind, _only_document(path, kind, encoding))


def text_as_indexed(path: str, kind: str, encoding: str, recipe: "Recipe") -> tuple[str, str | None]:
    """Return the text of a file or of standard input of which an index would make the fingerprint.

    An HTML page and a document go through the pipeline of the index, so that the file of a stored one equals
    it. If they lack the fields that the index reads, the text is that of ``read_text``.

    Returns:
        The text, and the language that the document declares in the field that the index reads; None without.

    Raises:
        InputError: it can't be read.
    """
    from shinglefold.ingest import Pipeline, default_definition
    from shinglefold.model.recipe import language_options

    document = _only_document(path, kind, encoding)
    if _kind(path, kind) == "text":
        # A plain text declares nothing, and needs no other step of the pipeline.
        return _plain(path, kind, document), language_options(recipe.pipeline, recipe.field)[1] or None
    pipeline = Pipeline.from_json(recipe.pipeline or default_definition(recipe.field), recipe.scheme)
    (outcome,) = pipeline.run([document])
    lacking = outcome.document is None or not any(
        _joined_text(path, outcome.document, [name])
        for name in recipe.fields
        if name != "title" or recipe.fields == (name,)
    )
    if outcome.document is None or lacking:
        return _plain(path, kind, document), _declared_language(document, pipeline)
    return _joined_text(path, outcome.document, recipe.fields), _declared_language(outcome.document, pipeline)


def _declared_language(document: "Document", pipeline: "Pipeline") -> str | None:
    """Return the language in which the pipeline signs a document; None if it is chosen word by word."""
    from shinglefold.ingest.processors.texts import Supershingle, declared_language

    signing = [step.processor for step in pipeline.steps if isinstance(step.processor, Supershingle)]
    found = [declared_language(document, one.language_field, one.language, pipeline.tools) for one in signing]
    return found[0] if found else None


def _plain(path: str, kind: str, document: "Document") -> str:
    if _kind(path, kind) != "documents":
        return _joined_text(path, document, ["body"])
    from shinglefold.ingest.processors.texts import with_joined_lists
    from shinglefold.model.recipe import TEXTS

    # A text needs no pipeline that joins its values.
    found = _joined_text(path, with_joined_lists(document, TEXTS), TEXTS)
    if not found.strip():
        raise InputError(f"{path}: its document has no text in {' or '.join(TEXTS)}; give another file")
    return found


def _joined_text(path: str, document: "Document", fields: Sequence[str]) -> str:
    """Return the texts of fields without markup, "" without any."""
    from shinglefold.ingest.processors.texts import joined_text, without_markup

    try:
        return joined_text(without_markup(document, fields), fields, True) or ""
    except ProcessorError as error:
        raise InputError(f"{path}: {error}; give another file") from error


def _kind(path: str, kind: str) -> str:
    """Return what a file holds: ``html``, ``text``, or ``documents``."""
    from shinglefold.ingest.readers.read import HTML

    name = path.lower().removesuffix(".gz")
    if kind != "auto":
        return kind
    return "documents" if name.endswith(_DOCUMENTS) else "html" if name.endswith(HTML) else "text"


def _only_document(path: str, kind: str, encoding: str) -> "Document":
    """Return the document of a file that holds one."""
    from shinglefold.ingest import read
    from shinglefold.ingest.readers.record import ReadOptions

    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; give one file, or see: shinglefold groups --help")
    if path != "-" and not os.path.exists(path):
        raise InputError(
            f"cannot read {printable(path[:_SHOWN])}: no such file; check the path, or add --text where the "
            "text itself is given"
        )
    found = _kind(path, kind)
    options = ReadOptions(format="auto" if found == "documents" else found, encoding=encoding)  # type: ignore[arg-type]
    records = list(islice(read(path, options), 2))
    if len(records) > 1:
        raise InputError(
            f"{path} has several documents; give a file with one text, or find pairs among them: "
            f"shinglefold groups --pairs {shlex.quote(path)}"
        )
    if not records or records[0].document is None:
        raise InputError(f"{path}: {records[0].reason if records else 'nothing in it'}; give another file")
    document = records[0].document
    if "\0" in str(document.get("body")):
        remark(
            f"warning: {printable(path)} holds NUL characters, as binary files do, and texts in UTF-16 that "
            "do not say so (--encoding utf-16-le): what is read of it may be no words"
        )
    return document


def refuse_options_of_files(kind: str, encoding: str) -> None:
    """Raise ``UsageError`` for an option about files together with ``--text``."""
    if kind != "auto" or encoding:
        raise click.UsageError("--format and --encoding are of a file: leave them out, or --text")


def two_texts(
    a: str, b: str, kind: str, encoding: str, *, itself: bool
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return two texts and their names.

    Args:
        kind, encoding: the same for both texts, see ``read_text``.
        itself: ``a`` and ``b`` are texts, not files.

    Raises:
        UsageError: both are standard input, or an option is of files only.
        InputError: one can't be read.
    """
    if itself:
        refuse_options_of_files(kind, encoding)
        return (a, b), ("A", "B")
    if a == b == "-":
        raise click.UsageError("only one of the two can be standard input")
    return (read_text(a, kind, encoding), read_text(b, kind, encoding)), (a, b)


def check_language(scheme: "Scheme", language: str | None) -> None:
    """Raise ``UnknownLanguage`` unless the scheme has the language."""
    codes = [reference.code for reference in scheme.languages]
    if language is not None and language not in codes:
        raise UnknownLanguage.unknown("language", language, codes)
