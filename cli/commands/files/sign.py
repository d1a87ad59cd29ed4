"""``shinglefold sign SOURCE…``: add fingerprints to the documents of files."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import Invocation, command
from shinglefold.cli.shared.definitions import (
    chosen_facts,
    chosen_scheme,
    content_options,
    fields_option,
    html_option,
    preset_option,
    workers_option,
)
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import (
    ProgressPace,
    flush_output,
    progress_bar,
    remark,
    warn,
    write_json,
    write_line,
)
from shinglefold.cli.shared.run_summary import (
    exit_code_of_run,
    named_language_field,
    run_lines,
    text_warnings,
    with_field_check,
)
from shinglefold.cli.shared.sources import (
    check_sources,
    make_read_options,
    page_prefixes,
    reading_options,
    skipped_counts,
)
from shinglefold.errors import ConfigError

if TYPE_CHECKING:
    from shinglefold.ingest.field_statistics import FieldWatch
    from shinglefold.model.scheme import Scheme
    from shinglefold.offline.sign.run import RunStats, Signed, SignJob
    from shinglefold.offline.sign.signer import SignOptions
    from shinglefold.settings import Settings

#: Suffixes that would make readers expect another format than JSON lines.
_NOT_WRITTEN = (".gz", ".zip", ".bz2", ".xz", ".zst", ".csv", ".tsv", ".html", ".htm", ".xml")

#: The most symbolic links that the system follows.
_LINKS = 40


@command(
    examples="""
    shinglefold sign articles.jsonl.gz -o signed.jsonl
    shinglefold sign pages.parquet --field text -o signed.parquet
    shinglefold sign dump.csv --id-field page_id --only-ids -o prints.parquet
    zcat pages.jsonl.gz | shinglefold sign - | head -1
    """
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Output: Parquet if the name ends in .parquet, else JSONL; by default JSONL to standard output.",
)
@click.option("--only-ids", is_flag=True, help="Write only the id and the fingerprint of each document.")
@click.option("--overwrite", is_flag=True, help="Replace FILE when the new one is complete.")
@click.option(
    "--restart",
    is_flag=True,
    help="Start from the beginning instead of continuing an interrupted run into FILE.",
)
@fields_option("Field with text for the fingerprint", "title and body")
@click.option(
    "--language-field", default="lang", show_default=True, metavar="FIELD", help="Field with the language."
)
@html_option
@reading_options
@click.option("--dead-letters", metavar="FILE", help="File that failed documents are appended to.")
@preset_option
@content_options
@workers_option
@click.pass_obj
def sign(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    output: str | None,
    overwrite: bool,
    restart: bool,
    dead_letters: str | None,
    workers: int | None,
    preset: str | None,
    **given: Any,  # noqa: ANN401 - what is signed, and how it is read
) -> int:
    """Write documents with their fingerprints, for any loader.

    SOURCE is JSONL, CSV (both also .gz), Parquet, an HTML or text file, a folder of such files, or - for
    standard input. The same command continues an interrupted run. Exit code 3 says that some documents
    failed.
    """
    from shinglefold.cli.shared.open_index import load_lexicon, save_lexicon
    from shinglefold.offline.sign.run import sign as signed
    from shinglefold.offline.sign.tasks import is_repeatable

    settings = invocation.settings()
    options = _sign_options(settings, **given)
    _check_output(output, sources, options, overwrite=overwrite, restart=restart)
    if output and dead_letters and os.path.realpath(output) == os.path.realpath(dead_letters):
        raise ConfigError(f"--dead-letters {dead_letters} is the output, too: name another")
    check_sources(sources, options.reading, dead_letters)
    scheme = chosen_scheme(invocation, preset)
    job = _make_job(sources, options, scheme, settings, output)
    canonicalizer = job.signer.tools.canonicalizer
    load_lexicon(canonicalizer, settings)
    job = replace(
        job,
        restart=restart,
        workers=settings.workers if workers is None else workers,
        dead_letters=dead_letters,
    )
    pace = ProgressPace()
    with progress_bar("signing") as bar:
        summary = signed(job, lambda stats: bar(stats.fraction, _progress(stats, pace)))
    summary = replace(summary, counts={**summary.counts, **skipped_counts(options.reading)})
    if not summary.stopped:
        save_lexicon(canonicalizer, settings)
    # A pipe can't be read again, so that a run which read one can't be continued.
    anew = not all(map(is_repeatable, sources))
    return _finish(invocation, summary, options, output, named=bool(given["fields"]), anew=anew)


def _sign_options(
    settings: "Settings",
    *,
    fields: tuple[str, ...],
    language_field: str,
    html: bool,
    only_ids: bool,
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None,
    profile: str | None,
    never_differ: tuple[str, ...],
) -> "SignOptions":
    """Return the options of signing from flags and settings."""
    from shinglefold.model.recipe import TEXTS
    from shinglefold.offline.sign.signer import SignOptions

    reading = make_read_options(format, id_field, encoding, header)
    facts = chosen_facts(never_differ, profile)
    return SignOptions(fields or TEXTS, language_field, html, only_ids, settings.field, reading, facts)


def _check_output(
    output: str | None, sources: tuple[str, ...], options: "SignOptions", *, overwrite: bool, restart: bool
) -> None:
    """Refuse an output that can't be written, or would overwrite something."""
    from shinglefold.offline.sign.run_journal import is_named
    from shinglefold.offline.sign.tasks import is_parquet

    if output is None:
        if overwrite or restart:
            raise click.UsageError("--overwrite and --restart are of a file: name it with -o FILE")
        return
    place = Path(output)
    if place.is_dir():
        raise ConfigError(f"{output} is a folder: name a file in it")
    if _is_descriptor(place) or (place.exists() and not place.is_file()):
        raise ConfigError(
            f"{output} is not a file, and the result would take its place: leave out -o, and add > {output}"
        )
    if output.lower().endswith(_NOT_WRITTEN):
        raise ConfigError(
            f"{output}: JSON lines are written, or Parquet, so that its name would deceive whoever reads it; "
            "end it in .jsonl or .parquet, or pack what goes to standard output: leave out -o, and add "
            "| gzip > FILE.jsonl.gz"
        )
    if any(Path(source).is_file() and place.exists() and Path(source).samefile(place) for source in sources):
        raise ConfigError(f"{output} is a source, too: name another file with -o")
    if place.exists() and not overwrite and not is_named(_place(place)):
        raise ConfigError(f"{output} is there already: name another file, or replace it with --overwrite")
    if is_parquet(output) and not options.only_ids and not all(map(is_parquet, sources)):
        raise ConfigError(
            f"{output}: JSON and CSV do not say of which types the columns of a Parquet file are; "
            "add --only-ids, or write JSONL"
        )


def _is_descriptor(place: Path) -> bool:
    """Return whether a path is a file descriptor of this process, as ``/dev/stdout`` is."""
    given = place
    for _ in range(_LINKS):
        folder = os.path.realpath(place.absolute().parent)
        if folder == "/dev/fd" or (folder.startswith("/proc/") and folder.endswith("/fd")):
            return True
        if not place.is_symlink():
            return False
        place = place.parent / os.readlink(place)

    raise ConfigError(f"{given} is a link that leads back to itself: name another file")


def _make_job(
    sources: tuple[str, ...],
    options: "SignOptions",
    scheme: "Scheme",
    settings: "Settings",
    output: str | None,
) -> "SignJob":
    """Return the job of a run, with the identity that a later run must have to continue it."""
    from shinglefold.cli.shared.open_index import seal_of_settings
    from shinglefold.offline.sign.run import SignJob
    from shinglefold.offline.sign.run_journal import identity
    from shinglefold.offline.sign.signer import Signer
    from shinglefold.offline.sign.tasks import is_parquet

    seal = seal_of_settings(settings)
    prefixes = page_prefixes(sources, options.reading)
    target = sys.stdout.buffer if output is None else _place(Path(output))
    run_identity = identity(sources, options, scheme, "" if seal is None else seal.id)
    parquet = output is not None and is_parquet(output)
    return SignJob(sources, Signer(scheme, options, seal=seal), target, run_identity, prefixes, parquet)


def _place(output: Path) -> Path:
    """Return the file to write: the target of a symbolic link, so that the link stays."""
    return output.resolve() if output.is_symlink() else output


def _progress(stats: "RunStats", pace: ProgressPace) -> str:
    """Return the progress of a run as a phrase."""
    failed = f", {stats.failed:,} failed" if stats.failed else ""
    here = stats.signed + stats.failed - stats.resumed
    return f"{stats.signed:,} signed{failed}, {pace.describe(here, stats.fraction)}"


def _finish(
    invocation: Invocation,
    summary: "Signed",
    options: "SignOptions",
    output: str | None,
    *,
    named: bool,
    anew: bool,
) -> int:
    """Write the summary of a run and return the exit code.

    If documents went to standard output, the summary goes to standard error.
    """
    warnings = list(_warnings(invocation, summary, options, named=named, filed=output is not None))
    if output is not None and not (summary.signed or summary.stopped):
        warnings.append(f"{output} was not written, as no document is signed")
    if output is None:
        flush_output()
        for line in _lines(summary):
            remark(line)
    elif invocation.json:
        write_json({**summary.to_json(), "warnings": warnings})
    else:
        for line in _lines(summary):
            write_line(line)
    warn(warnings)

    code = _code(invocation, summary, output, anew=anew)
    return with_field_check(code, _watch(summary, options), named=named)


def _watch(summary: "Signed", options: "SignOptions") -> "FieldWatch":
    """Return the fields that the signed documents have."""
    from shinglefold.ingest.field_statistics import FieldWatch

    language = named_language_field(options.language_field)
    return FieldWatch(
        options.fields,
        summary.signed,
        set(summary.present),
        list(summary.sample),
        language,
        stripped=options.fields if options.html else (),
        facts=options.never_differ.fields,
    )


def _code(invocation: Invocation, summary: "Signed", output: str | None, *, anew: bool) -> int:
    purpose = "start from the beginning" if anew else "continue"
    continues = f"; to {purpose}: {repeat_command(invocation.arguments, restart=anew)}"
    return exit_code_of_run(
        summary.stopped, summary.read, summary.failed, summary.signed, "" if output is None else continues
    )


def _warnings(
    invocation: Invocation, summary: "Signed", options: "SignOptions", *, named: bool, filed: bool
) -> Iterator[str]:
    watch = _watch(summary, options)
    unsigned = summary.counts.get("without_signature", 0)
    # The same command with other fields replaces the output and starts from the beginning.
    anew = {"overwrite": filed, "restart": filed and bool(summary.stopped)}
    yield from text_warnings(
        watch,
        unsigned,
        named,
        lambda names: repeat_command(invocation.arguments, field=tuple(names), **anew),
        repeat_command(invocation.arguments, html=True, **anew),
    )


def _lines(summary: "Signed") -> Iterator[str]:
    resumed = f", {summary.resumed:,} of them by the run before" if summary.resumed else ""
    yield f"{summary.signed:,} signed, {summary.failed:,} failed, of {summary.read:,} read{resumed}"
    yield from run_lines(summary, summary.read - summary.resumed)
    if summary.dead_letters:
        yield f"failed ones are kept in {summary.dead_letters}"
