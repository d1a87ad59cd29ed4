"""The fingerprints of files without an index: options, reading, and the pairs among them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shinglefold.cli.shared.command import DONE, FAILED, PARTLY, Invocation
from shinglefold.cli.shared.definitions import (
    chosen_facts,
    chosen_scheme,
    content_options,
    decision_options,
    fields_option,
    html_option,
    options,
    preset_option,
    workers_option,
)
from shinglefold.cli.shared.hits import shown_value
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import ProgressPace, printable, progress_bar, remark, warn
from shinglefold.cli.shared.run_summary import NO_DOCUMENTS, lacks_text, named_language_field, text_warnings
from shinglefold.cli.shared.sources import make_read_options, page_prefixes, reading_notes, reading_options
from shinglefold.errors import ConfigError, InputError, OutputError, counted, is_full, suggest
from shinglefold.model.profiles import PROFILES, profile_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.ingest.readers.record import ReadOptions
    from shinglefold.model.scheme import Scheme
    from shinglefold.offline.dedupe.collect import TaskReader
    from shinglefold.offline.dedupe.fingerprint_table import DocumentNames, FingerprintTable
    from shinglefold.offline.dedupe.link import Linking
    from shinglefold.offline.sign.signer import SignOptions
    from shinglefold.offline.sign.tasks import Task

#: How documents of files are read and compared.
comparison_options = options(
    reading_options,
    fields_option("Field to compare", "title and body"),
    click.option(
        "--language-field",
        default="lang",
        show_default=True,
        metavar="FIELD",
        help="Field with the language.",
    ),
    html_option,
    preset_option,
    decision_options,
    content_options,
    workers_option,
)
collection_options = options(
    click.argument("sources", nargs=-1, required=True, metavar="FILE..."), comparison_options
)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_Item = TypeVar("_Item")


def _parse_size(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """Return the bytes of a size such as ``4G``."""
    number, unit = value.upper().removesuffix("B"), 1
    if number[-1:] in _UNITS:
        number, unit = number[:-1], _UNITS[number[-1]]
    try:
        size = int(float(number) * unit)
    except (ValueError, OverflowError):
        size = 0
    # Less than a kilobyte means that the unit was forgotten.
    if size < 1 << 10:
        raise click.UsageError(f"--memory {value}: give a size such as 500M or 4G")
    return size


scale_options = options(
    click.option(
        "--signed/--texts",
        "signed",
        default=None,
        help="Read the fingerprints that sign wrote, or make them from texts; by default the first "
        "document of each file decides.",
    ),
    click.option(
        "--memory",
        default="4G",
        show_default=True,
        metavar="SIZE",
        callback=_parse_size,
        help="Memory for documents and pairs; fingerprints are in temporary files.",
    ),
    click.option(
        "--most-shared",
        type=click.IntRange(2),
        metavar="N",
        help="The most documents sharing a supershingle of which all pairs are compared; of more, only "
        "pairs with a few of them. By default 1000, without a limit for up to 20,000 documents.",
    ),
)


@dataclass(slots=True)
class Collection:
    """The fingerprints of a collection, the search for its pairs, and the names of its documents.

    ``check`` raises when the command is interrupted. ``lacks_text``: see the function of this name.
    ``untitled``: titles were shown, and none of the documents has one.
    """

    table: "FingerprintTable"
    linking: "Linking"
    names: "DocumentNames"
    check: Callable[[], None]
    lacks_text: bool = False
    untitled: bool | None = None

    @property
    def scheme(self) -> "Scheme":
        """The scheme the fingerprints were made with."""
        return self.table.scheme

    def titles(self, documents: "NDArray[np.integer]", field: str) -> list[str]:
        """Return the titles of documents, "" for those without one."""
        found = [shown_value(fields.get(field)) for _, fields in self.table.shown_fields(documents)]
        if found:
            self.untitled = self.untitled is not False and not any(found)
        return found

    def until_interrupted(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items.

        Raises:
            Interrupted: the command was interrupted.
        """
        for item in items:
            self.check()
            yield item


@contextmanager
def open_collection(
    invocation: Invocation,
    sources: tuple[str, ...],
    *,
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None,
    fields: tuple[str, ...],
    language_field: str,
    preset: str | None,
    workers: int | None,
    html: bool,
    shown: Sequence[str] = (),
    titles: str = "",
    profile: str | None = None,
    never_differ: tuple[str, ...] = (),
    signed: bool | None = False,
    memory: int = 4 << 30,
    most_shared: int | None = None,
    **decision: str | float | None,
) -> Iterator[Collection]:
    """Yield the fingerprints of all documents of the sources.

    Args:
        shown: fields to keep of each document.
        titles: the option that asks for titles, "" without one.
        signed, memory, most_shared: see ``scale_options``; ``memory`` is in bytes.
    """
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.model.recipe import TEXTS
    from shinglefold.offline.dedupe.collect import collect
    from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable, names_of
    from shinglefold.offline.dedupe.link import Linking
    from shinglefold.offline.dedupe.slots import LinkOptions, RunMonitor
    from shinglefold.offline.sign.run_journal import SourceStates
    from shinglefold.offline.sign.signer import SignOptions
    from shinglefold.runtime.signals import Interrupts

    settings, named = invocation.settings(), bool(fields)
    scheme = chosen_scheme(invocation, preset, profile, **decision)
    reading = make_read_options(format, id_field, encoding, header)
    facts = chosen_facts(never_differ, profile)
    options = SignOptions(
        fields or TEXTS, language_field, html, only_ids=True, reading=reading, never_differ=facts
    )
    if signed := _is_signed(sources, settings.field, reading, signed):
        _check_signed(options, titles, named=named, never_differ=never_differ)
        _check_decision(scheme, decision)
    language = named_language_field(language_field)
    watch = FieldWatch(
        options.fields, language=language, stripped=options.fields if html else (), facts=facts.fields
    )
    with _explain_full_disk(), closing(FingerprintTable(scheme, whole=not signed)) as table:
        states, pace = SourceStates(sources), ProgressPace()
        with progress_bar("fingerprints") as bar:
            if signed:
                tasks, reader = _signed_tasks(sources, reading, table, settings.field)
            else:
                tasks, reader = _text_tasks(sources, options, table, language, shown, settings.lexicon_file)
            collect(
                tasks,
                reader,
                table,
                settings.workers if workers is None else workers,
                lambda fraction: bar(
                    fraction, f"{len(table):,} documents, {pace.describe(len(table), fraction)}"
                ),
                watch,
            )
        states.check()
        if signed:
            _warn_of_facts(table, profile, decision)
        _warn_of_texts(invocation, table, watch, named=named)
        names = names_of(table)
        warn(reading_notes(reading, len(names.repeated)), "note")
        # Linking writes temporary files only, so it can be interrupted anywhere.
        with progress_bar("linking") as bar, Interrupts() as interrupts, interrupts.breakable():
            monitor = RunMonitor(
                interrupts.check, lambda stage, done, whole: bar(done / whole, f"{stage} {done}/{whole}")
            )
            linking = Linking(table, LinkOptions(memory, most_shared), monitor)
            yield Collection(table, linking, names, interrupts.check, lacks_text(watch, named=named))


@contextmanager
def _explain_full_disk() -> Iterator[None]:
    """Replace the error of a full disk by one with the remedy."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise OutputError(
            "cannot write temporary files: the disk is full; make room, or set TMPDIR to a folder on "
            "another disk"
        ) from error


def _is_signed(sources: Sequence[str], field: str, reading: "ReadOptions", given: bool | None) -> bool:
    """Return whether to take fingerprints from the sources instead of making them of texts."""
    from shinglefold.offline.dedupe.collect import are_signed
    from shinglefold.offline.sign.tasks import is_parquet

    if given is False and (tables := [source for source in sources if is_parquet(source)]):
        if not Path(tables[0]).exists():
            raise InputError(f"cannot read {tables[0]}: no such file; check the path")
        raise ConfigError(
            f"{tables[0]}: no texts are read from Parquet here: make a file with "
            f"{suggest('sign', tables[0], output='documents.jsonl')}, and give that"
        )
    return are_signed(sources, field, reading) if given is None else given


def _check_signed(options: "SignOptions", titles: str, *, named: bool, never_differ: Sequence[str]) -> None:
    """Refuse options about texts if only fingerprints are read."""
    from shinglefold.model.recipe import LANGUAGE

    given = {
        "--field": named,
        "--language-field": options.language_field != LANGUAGE,
        "--html": options.html,
        "--never-differ": bool(never_differ),
        titles: bool(titles),
    }
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise click.UsageError(
            f"signed files are compared by their fingerprints, and no text is read: leave {wrong[0]} out, or "
            "add --texts where the files hold the texts, too"
        )


def _check_decision(scheme: "Scheme", given: dict[str, Any]) -> None:
    """Refuse to let texts decide if only fingerprints are read; write notes about what decides instead."""
    if given.get("verify") == "text" or given.get("min_similarity") is not None:
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


def _warn_of_facts(table: "FingerprintTable", profile: str | None, given: Mapping[str, Any]) -> None:
    """Warn if fingerprints lack the facts of a profile, or have facts and no profile sets the threshold."""
    wanted = profile_of(profile or "").never_differ
    if wanted and len(table) and table.facts is None:
        remark(
            f"warning: signed files: made without --profile {profile}, so documents that differ in "
            f"{', '.join(wanted)} fold; sign the files again with it"
        )
    if table.facts is not None and profile is None and given.get("min_resemblance") is None:
        named = " or ".join(f"--profile {name}" for name, one in PROFILES.items() if one.decision)
        remark(
            "note: signed files: facts that differ keep documents apart, but no file names its profile; "
            f"for its threshold add {named}"
        )


def _signed_tasks(
    sources: Sequence[str], reading: "ReadOptions", table: "FingerprintTable", field: str
) -> "tuple[Iterator[Task], TaskReader]":
    from shinglefold.offline.dedupe.decode import SignatureLayout
    from shinglefold.offline.dedupe.read_signed import SignedReader
    from shinglefold.offline.sign.tasks import tasks

    reader = SignedReader(SignatureLayout.of(table.scheme), field, reading)
    return tasks(sources, reading, {}), reader


def _text_tasks(  # noqa: PLR0917 - what is read, and how
    sources: Sequence[str],
    options: "SignOptions",
    table: "FingerprintTable",
    language: str,
    shown: Sequence[str],
    lexicon_file: str,
) -> "tuple[Iterator[Task], TaskReader]":
    from shinglefold.offline.dedupe.read_texts import TextReader, text_tasks

    tasks = text_tasks(sources, options.reading, page_prefixes(sources, options.reading))
    reader = TextReader(table.scheme, options, language, shown)
    reader.warm(sources, lexicon_file)
    return tasks, reader


def _warn_of_texts(
    invocation: Invocation, table: "FingerprintTable", watch: "FieldWatch", *, named: bool
) -> None:
    def with_fields(names: Sequence[str]) -> str:
        return repeat_command(invocation.arguments, field=tuple(names))

    unsigned = len(table) - int(table.valid().sum())
    stripping = repeat_command(invocation.arguments, html=True)
    warn(text_warnings(watch, unsigned, named, with_fields, stripping))


def finish(found: Collection) -> int:
    """Write to standard error what could not be compared; return the exit code."""
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
        return PARTLY if found.lacks_text else DONE
    count = failures.count
    remark(f"{counted(count, 'document')} left out; first: {printable(failures.first)}")
    return PARTLY if len(found.table) else FAILED
