"""The options of commands over files without an index, and the fingerprints of these files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shinglefold.cli.framework.command import DONE, FAILED, PARTLY, Invocation
from shinglefold.cli.framework.next_commands import again
from shinglefold.cli.framework.output import printable, remark
from shinglefold.cli.options.definitions import (
    chosen_scheme,
    decision_options,
    fields_option,
    options,
    preset_option,
    workers_option,
)
from shinglefold.cli.options.sources import make_read_options, page_prefixes, reading_notes, reading_options
from shinglefold.cli.render.run_summary import NO_DOCUMENTS
from shinglefold.options.remedies import suggest

if TYPE_CHECKING:
    from shinglefold.cli.framework.progress import Report
    from shinglefold.ingest import ReadOptions
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.model.scheme import Scheme
    from shinglefold.offline.dedupe.fingerprint_table import DocumentNames, FingerprintTable
    from shinglefold.offline.dedupe.link import Linking

collection_options = options(
    click.argument("sources", nargs=-1, required=True, metavar="FILE..."),
    reading_options,
    fields_option("Field compared", "title and body"),
    click.option(
        "--language-field",
        default="lang",
        show_default=True,
        metavar="FIELD",
        help="Field with the language.",
    ),
    click.option(
        "--html", is_flag=True, help="Take every document for HTML, not only those whose format says so."
    ),
    preset_option,
    decision_options,
    workers_option,
)
scale_options = options(
    click.option(
        "--signed/--texts",
        "signed",
        default=None,
        help="Take the fingerprints that sign wrote, or make them of texts; by default as the first document "
        "of each file says.",
    ),
    click.option(
        "--memory",
        default="4G",
        show_default=True,
        metavar="SIZE",
        help="Memory that documents and pairs may take; fingerprints are in temporary files.",
    ),
    click.option(
        "--most-shared",
        type=click.IntRange(2),
        metavar="N",
        help="Documents that may share a supershingle for all their pairs to be compared; of more, a few "
        "stand for the others. By default 1000, and no limit for up to 20,000 documents.",
    ),
)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Scale:
    """The values of ``scale_options``; by default for texts."""

    signed: bool | None = False
    memory: str = "4G"
    most_shared: int | None = None

    def bytes(self) -> int:
        """Return the memory in bytes.

        Raises:
            UsageError: it is no size.
        """
        number, unit = self.memory.upper().removesuffix("B"), 1
        if number[-1:] in _UNITS:
            number, unit = number[:-1], _UNITS[number[-1]]
        try:
            size = int(float(number) * unit)
        except (ValueError, OverflowError):
            size = 0
        # Nobody means so little who leaves out the unit.
        if size < 1 << 10:
            raise click.UsageError(f"--memory {self.memory}: give a size such as 500M or 4G")
        return size


@dataclass(slots=True)
class Collected:
    """The fingerprints of a collection, what finds its pairs, and the names of its documents.

    ``check``: raises where the command is to end. ``in_vain``: a named field is in no document, or no text.
    """

    table: "FingerprintTable"
    linking: "Linking"
    names: "DocumentNames"
    check: Callable[[], None]
    in_vain: bool = False

    @property
    def scheme(self) -> "Scheme":
        """The scheme the fingerprints were made with."""
        return self.table.scheme

    def going(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Go through them until the command is to end.

        Raises:
            Interrupted: it is.
        """
        for item in items:
            self.check()
            yield item


@dataclass(frozen=True, slots=True)
class _Asked:
    """The sources, and how they are read."""

    sources: tuple[str, ...]
    fields: tuple[str, ...]
    named: bool
    language_field: str
    html: bool
    reading: "ReadOptions"
    workers: int
    target: str


@contextmanager
def collected(
    invocation: Invocation,
    sources: tuple[str, ...],
    scale: Scale | None = None,
    *,
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None,
    fields: tuple[str, ...],
    language_field: str,
    html: bool,
    preset: str | None,
    workers: int | None,
    **decision: str | float | None,
) -> Iterator[Collected]:
    """Provide the fingerprints of all documents of the sources, as the options say.

    Args:
        scale: how to work on many of them; None is of texts alone.
    """
    from shinglefold.cli.framework.progress import progress_bar
    from shinglefold.model.recipe import TEXTS
    from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable, names_of
    from shinglefold.offline.dedupe.link import Linking
    from shinglefold.offline.dedupe.slots import LinkOptions, RunMonitor
    from shinglefold.runtime.signals import Interrupts

    scale = scale or Scale()
    settings, memory = invocation.settings(), scale.bytes()
    scheme = chosen_scheme(invocation, preset, **decision)
    reading = make_read_options(format, id_field, encoding, header)
    asked = _Asked(
        sources, fields or TEXTS, bool(fields), language_field, html, reading,
        settings.workers if workers is None else workers, settings.field,
    )  # fmt: skip
    signed = _signed(asked, scale.signed)
    if signed:
        _check_signed(asked)
        _check_decision(scheme, decision)
    with _full_disk_named(), closing(FingerprintTable(scheme, whole=not signed)) as table:
        with progress_bar("fingerprints") as bar:
            in_vain = _read(invocation, asked, table, signed, bar)
        names = names_of(table)
        for line in reading_notes(reading, len(names.repeated)):
            remark(f"note: {line}")
        # Nothing that lasts is written from here on, so any step can be broken off.
        with progress_bar("linking") as bar, Interrupts() as interrupts, interrupts.breakable():
            monitor = RunMonitor(
                interrupts.check, lambda stage, done, whole: bar(done / whole, f"{stage} {done}/{whole}")
            )
            linking = Linking(table, LinkOptions(memory, scale.most_shared), monitor)
            yield Collected(table, linking, names, interrupts.check, in_vain)


@contextmanager
def _full_disk_named() -> Iterator[None]:
    """Raise an error that names the remedy where the disk of temporary files is full.

    Raises:
        Unwritable: it is.
    """
    from shinglefold.errors import OutputError, is_full

    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise OutputError(
            "cannot write temporary files: the disk is full; make room, or set TMPDIR to a folder on "
            "another disk"
        ) from error


def _signed(asked: _Asked, told: bool | None) -> bool:
    """Tell whether fingerprints are taken from the sources."""
    from shinglefold.errors import ConfigError, InputError
    from shinglefold.offline.dedupe.collect import are_signed
    from shinglefold.offline.sign.tasks import is_parquet

    if told is False and (tables := [source for source in asked.sources if is_parquet(source)]):
        if not Path(tables[0]).exists():
            raise InputError(f"cannot read {tables[0]}: no such file; check the path")
        raise ConfigError(
            f"{tables[0]}: no texts are read from Parquet here: make a file with "
            f"{suggest('sign', tables[0], output='signed.parquet')}, and give that"
        )
    return are_signed(asked.sources, asked.target, asked.reading) if told is None else told


def _check_signed(asked: _Asked) -> None:
    """Refuse what says how texts are read, where none is."""
    from shinglefold.model.recipe import LANGUAGE

    given = {
        "--field": asked.named,
        "--language-field": asked.language_field != LANGUAGE,
        "--html": asked.html,
    }
    if told := [name for name, is_there in given.items() if is_there]:
        raise click.UsageError(
            f"signed files are compared by their fingerprints, and no text is read: leave {told[0]} out, or "
            "add --texts where the files hold the texts, too"
        )


def _check_decision(scheme: "Scheme", given: dict[str, Any]) -> None:
    """Refuse to let texts decide where only fingerprints are read, and note what is different then."""
    told = given.get("verify") == "text" or given.get("facts") == "numbers"
    if told or given.get("min_similarity") is not None:
        raise click.UsageError(
            "signed files are compared by their fingerprints: leave --verify text and --min-similarity out, "
            "or add --texts where the files hold the texts, too"
        )
    decision, sketch = scheme.decision, scheme.sketch
    if decision.verify == "text":
        least = decision.min_resemblance
        remark(f"note: signed files: signatures decide (--min-resemblance {least:g}), no text is read")
    count = sketch.values // sketch.group_size
    if decision.verify != "keywords" and decision.min_shared == 1 and count > sketch.groups:
        remark(
            f"note: signed files hold {sketch.groups} of the {count} supershingles that texts have: a few "
            "pairs are found only in the texts (--texts)"
        )


def _read(
    invocation: Invocation, asked: _Asked, table: "FingerprintTable", signed: bool, bar: "Report"
) -> bool:
    """Fill the table; tell whether that was in vain, as no text was found."""
    from shinglefold.cli.framework.progress import ProgressPace
    from shinglefold.cli.render.warnings import is_in_vain, named_language, text_warnings
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.offline.sign.run_journal import SourceStates

    found, pace = SourceStates(asked.sources), ProgressPace("documents")
    watch = FieldWatch(asked.fields, language=named_language(asked.language_field))

    def progress(fraction: float) -> None:
        bar(fraction, pace.told(len(table), fraction))

    if signed:
        _read_signed(asked, table, progress)
    else:
        _read_texts(invocation, asked, table, watch, progress)
    found.check()
    unsigned = len(table) - int(table.valid().sum())

    def other(names: Sequence[str]) -> str:
        return again(invocation.arguments, field=tuple(names))

    for line in text_warnings(watch, unsigned, asked.named, other):
        remark(f"warning: {printable(line)}")
    return is_in_vain(watch, named=asked.named)


def _read_signed(asked: _Asked, table: "FingerprintTable", progress: Callable[[float], None]) -> None:
    from shinglefold.offline.dedupe.collect import collect
    from shinglefold.offline.dedupe.decode import SignatureLayout
    from shinglefold.offline.dedupe.read_signed import SignedReader
    from shinglefold.offline.sign.tasks import tasks

    reader = SignedReader(SignatureLayout.of(table.scheme), asked.target, asked.reading)
    collect(tasks(asked.sources, asked.reading, {}), reader, table, asked.workers, progress)


def _read_texts(
    invocation: Invocation,
    asked: _Asked,
    table: "FingerprintTable",
    watch: "FieldWatch",
    progress: Callable[[float], None],
) -> None:
    from shinglefold.offline.dedupe.collect import collect
    from shinglefold.offline.dedupe.read_texts import TextReader, text_tasks
    from shinglefold.offline.sign.signer import SignOptions

    prefixes = page_prefixes(asked.sources, asked.reading)
    tasks = text_tasks(asked.sources, asked.reading, prefixes)
    options = SignOptions(
        asked.fields, asked.language_field, asked.html, only_ids=True, reading=asked.reading
    )
    reader = TextReader(table.scheme, options, watch.language)
    reader.warm(asked.sources, invocation.settings().lexicon_file)
    collect(tasks, reader, table, asked.workers, progress, watch)


def ending(found: Collected) -> int:
    """Say on standard error what could not be compared; return the exit code."""
    failures, skipped = found.table.failures, found.linking.skipped
    if skipped.pairs:
        remark(
            f"note: at most {skipped.pairs:,} candidate pairs were not compared, of {skipped.crowded:,} "
            "supershingles that very many documents have; a larger --most-shared compares more"
        )
    if skipped.copies:
        remark(
            f"note: {skipped.copies:,} pairs of copies of the same texts are not listed, only those with the "
            "first of them"
        )
    if not failures.count and not len(found.table):
        remark(NO_DOCUMENTS)
        return FAILED
    if not failures.count:
        return PARTLY if found.in_vain else DONE
    count = failures.count
    remark(f"{count} document{'s' if count > 1 else ''} left out; first: {printable(failures.first)}")
    return PARTLY if len(found.table) else FAILED
