"""What commands over a collection without an index share: their options, and the fingerprints of it all."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shinglefold.advice import advised
from shinglefold.cli.command import DONE, FAILED, PARTLY, Invocation
from shinglefold.cli.hints import again
from shinglefold.cli.options import (
    chosen_scheme,
    decision_options,
    fields_option,
    options,
    preset_option,
    workers_option,
)
from shinglefold.cli.output import printable, remark
from shinglefold.cli.run_summary import NO_DOCUMENTS
from shinglefold.cli.scale import Scale
from shinglefold.cli.sources import make_read_options, read_sources, reading_notes, reading_options

if TYPE_CHECKING:
    from shinglefold.cli.progress import Report
    from shinglefold.ingest import ReadOptions
    from shinglefold.ingest.linking.linking import Linking
    from shinglefold.ingest.linking.prints import Names, Prints
    from shinglefold.ingest.linking.shelf import Shelf
    from shinglefold.ingest.text_fields import FieldWatch
    from shinglefold.scheme import Scheme

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
_STAGE = "fingerprints"
_Item = TypeVar("_Item")


@dataclass(slots=True)
class Collected:
    """The fingerprints of a collection, what finds its pairs, and what its documents are called.

    ``check``: raises where the command is to end. ``in_vain``: a field named is in no document, or no text.
    """

    prints: "Prints"
    linking: "Linking"
    names: "Names"
    check: Callable[[], None]
    in_vain: bool = False

    @property
    def scheme(self) -> "Scheme":
        """The scheme the fingerprints were made with."""
        return self.prints.scheme

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
    """What is to be collected, and how; the fields as ``SignOptions`` has them."""

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
    from shinglefold.cli.progress import progress_bar
    from shinglefold.ingest.linking.equal import names_of
    from shinglefold.ingest.linking.linking import Linking
    from shinglefold.ingest.linking.prints import Prints
    from shinglefold.ingest.linking.shelf import Shelf
    from shinglefold.ingest.linking.stages import Options, Watch
    from shinglefold.ingest.writing.interrupts import Interrupts
    from shinglefold.recipe import TEXTS

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
    with (
        scale.kept(invocation.arguments),
        closing(Shelf(Path(scale.work) if scale.work else None, scale.restart)) as shelf,
    ):
        prints = Prints(shelf, scheme, whole=not signed)
        with progress_bar("fingerprints") as bar:
            in_vain = _read(invocation, asked, prints, signed, bar)
        names = names_of(prints, memory)
        for line in reading_notes(reading, len(names.repeated)):
            remark(f"note: {line}")
        # What lasts is in files that a run goes on with: all that is done with them can be broken off.
        with progress_bar("linking") as bar, Interrupts() as interrupts, interrupts.breakable():
            watch = Watch(
                interrupts.check, lambda stage, done, whole: bar(done / whole, f"{stage} {done}/{whole}")
            )
            linking = Linking(prints, Options(memory, scale.most_shared), watch)
            yield Collected(prints, linking, names, interrupts.check, in_vain)


def _signed(asked: _Asked, told: bool | None) -> bool:
    """Tell whether fingerprints are taken from the sources."""
    from shinglefold.errors import ConfigError, InputError
    from shinglefold.ingest.linking.gathering import are_signed
    from shinglefold.ingest.signing.tasks import is_parquet

    if told is False and (tables := [source for source in asked.sources if is_parquet(source)]):
        if not Path(tables[0]).exists():
            raise InputError(f"cannot read {tables[0]}: no such file; check the path")
        raise ConfigError(
            f"{tables[0]}: no texts are read from Parquet here: make a file with "
            f"{advised('sign', tables[0], output='signed.parquet')}, and give that"
        )
    return are_signed(asked.sources, asked.target, asked.reading) if told is None else told


def _check_signed(asked: _Asked) -> None:
    """Refuse what says how texts are read, where none is."""
    from shinglefold.recipe import LANGUAGE

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
    """Refuse to let texts decide where only fingerprints are read, and tell what does instead."""
    told = given.get("verify") == "text" or given.get("facts") == "numbers"
    if told or given.get("min_similarity") is not None:
        raise click.UsageError(
            "signed files are compared by their fingerprints: leave --verify text and --min-similarity out, "
            "or add --texts where the files hold the texts, too"
        )
    if scheme.decision.verify == "text":
        least = scheme.decision.min_resemblance
        remark(f"note: signed files: signatures decide (--min-resemblance {least:g}), no text is read")


def _read(invocation: Invocation, asked: _Asked, prints: "Prints", signed: bool, bar: "Report") -> bool:
    """Fill the columns, unless an earlier run did; tell whether that was in vain, as no text was found."""
    from shinglefold.ingest.signing.identity import AsFound, identity
    from shinglefold.ingest.signing.parts import SignOptions
    from shinglefold.ingest.text_fields import FieldWatch

    shelf, found = prints.shelf, AsFound(asked.sources)
    options = SignOptions(asked.fields, asked.language_field, asked.html, False, asked.target, asked.reading)
    made_of = {
        **identity(asked.sources, options, prints.scheme, ""),
        "texts kept": prints.has_texts,
        "facts": prints.scheme.decision.facts,
        "signed": signed,
    }
    state = shelf.noted(_STAGE, made_of)
    if state is None:
        _check_left_over(shelf, made_of)
    prints.resume(state)
    from shinglefold.cli.text_warnings import is_in_vain, named_language, text_warnings

    watch = FieldWatch(asked.fields, language=named_language(asked.language_field))
    if state is None or not state["done"]:
        read = _gather if signed else _collect
        state = read(
            asked, prints, state, watch, bar, lambda at: shelf.note(_STAGE, made_of, at, *prints.files)
        )
        found.check()
        shelf.note(_STAGE, made_of, state, *prints.files)
    unsigned = len(prints) - int(prints.valid().sum())

    def other(names: Sequence[str]) -> str:
        # What was made of other fields stands in the folder.
        return again(invocation.arguments, field=tuple(names), restart=shelf.folder is not None)

    for line in text_warnings(watch, unsigned, asked.named, other):
        remark(f"warning: {printable(line)}")
    return is_in_vain(watch, named=asked.named)


def _check_left_over(shelf: "Shelf", made_of: dict[str, Any]) -> None:
    from shinglefold.errors import ConfigError
    from shinglefold.ingest.signing.journal import difference

    before = shelf.left_over(_STAGE)
    if before is not None:
        raise ConfigError(
            f"{shelf.folder} is left of a run with {difference(before, made_of)}: repeat that one, "
            "begin anew with --restart, or name another folder"
        )


def _gather(
    asked: _Asked, prints: "Prints", state: Any, _: "FieldWatch", bar: "Report", note: Any  # noqa: ANN401
) -> Any:  # noqa: ANN401 - JSON  # fmt: skip
    from shinglefold.cli.progress import Pace
    from shinglefold.ingest.linking.gathering import gather
    from shinglefold.ingest.linking.signed import SignedReader
    from shinglefold.ingest.linking.stored import Layout

    reader = SignedReader(Layout.of(prints.scheme), asked.target, asked.reading)
    pace = Pace("documents", len(prints))

    def progress(fraction: float, due: Any) -> None:  # noqa: ANN401 - JSON
        bar(fraction, pace.told(len(prints), fraction))
        if due is not None:
            note(due)

    return gather(asked.sources, reader, prints, asked.workers, state, progress)


def _collect(  # noqa: PLR0917 - what reading texts takes
    asked: _Asked, prints: "Prints", state: Any, watch: "FieldWatch", bar: "Report", note: Any  # noqa: ANN401
) -> Any:  # noqa: ANN401 - JSON  # fmt: skip
    from shinglefold.cli.progress import Pace
    from shinglefold.ingest.collection import Made, collect, pipeline_for, state_of

    records = read_sources(asked.sources, asked.reading)
    pipeline = pipeline_for(prints.scheme, asked.fields, asked.language_field, asked.html)
    wanted = tuple(dict.fromkeys((*asked.fields, asked.language_field, "format")))
    pace = Pace("documents", len(prints))

    def progress(made: Made, due: bool) -> None:
        bar(made.fraction, pace.told(len(prints), made.fraction))
        if due:
            note(state_of(made, prints, done=False))

    begun = state["records"] if state else 0
    read = collect(watch.watch(records), pipeline, wanted, asked.workers, prints, begun, progress)
    return state_of(Made(read, 1.0), prints, done=True)


def ending(found: Collected) -> int:
    """Say on standard error what could not be compared; return the exit code."""
    failures, skipped = found.prints.failures, found.linking.skipped
    if skipped.pairs:
        remark(
            f"note: at most {skipped.pairs:,} candidate pairs were not looked at, of {skipped.crowded:,} "
            "supershingles that very many documents have; a larger --most-shared looks at more"
        )
    if skipped.copies:
        remark(
            f"note: {skipped.copies:,} pairs of copies of the same texts are not listed, only those with the "
            "first of them"
        )
    if not failures.count and not len(found.prints):
        remark(NO_DOCUMENTS)
        return FAILED
    if not failures.count:
        return PARTLY if found.in_vain else DONE
    count = failures.count
    remark(f"{count} document{'s' if count > 1 else ''} left out; first: {printable(failures.first)}")
    return PARTLY if len(found.prints) else FAILED
