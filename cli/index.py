"""``shinglefold index SOURCE…``: documents into an index, with their fingerprints."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.command import DONE, FAILED, PARTLY, Invocation, command, stopped_code
from shinglefold.cli.options import chosen_scheme, engine_options, preset_option, workers_option
from shinglefold.cli.output import printable, remark, write_json, write_line
from shinglefold.cli.sources import make_read_options, read_sources, reading_options

if TYPE_CHECKING:
    from shinglefold.canon import Lexicon
    from shinglefold.contracts import Engine
    from shinglefold.ingest import Pipeline, Progress, Summary

#: Fields that dynamic mapping would take for running text.
PROPERTIES = {
    "title": {"type": "text"},
    "body": {"type": "text"},
    "url": {"type": "keyword"},
    "host": {"type": "keyword"},
    "lang": {"type": "keyword"},
    "format": {"type": "keyword"},
}


@command(
    examples="""
    shinglefold index articles.jsonl.gz
    shinglefold index site/ --index site --recreate
    shinglefold index dump.csv --id-field page_id --dead-letters failed.jsonl
    zcat pages.jsonl.gz | shinglefold index - --pipeline pipeline.json
    shinglefold index --replay failed.jsonl
    """
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@engine_options
@click.option(
    "--recreate", is_flag=True, help="Delete the index first, with all its documents, where there is one."
)
@click.option("--pipeline", metavar="FILE", help="Ingest pipeline as JSON; by default the one for pages.")
@reading_options
@click.option("--dead-letters", metavar="FILE", help="Where failed documents are appended, to be replayed.")
@click.option("--replay", is_flag=True, help="The sources are dead-letter files: try their documents again.")
@preset_option
@workers_option
@click.pass_obj
def index(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    index: str,
    engine: str | None,
    recreate: bool,
    pipeline: str | None,
    replay: bool,
    dead_letters: str | None,
    preset: str | None,
    workers: int | None,
    **reading: str,
) -> int:
    """Index documents with their fingerprints.

    SOURCE is JSONL or CSV (also .gz), an HTML or text file, a folder of such files, or - for standard input.
    The index is made where it is missing. Exit code 3 says that some documents failed.
    """
    from dataclasses import replace

    from shinglefold.cli.pipelines import load_pipeline
    from shinglefold.cli.stores import search_canonicalizer
    from shinglefold.engines import open_engine

    settings = invocation.settings()
    scheme = chosen_scheme(invocation, preset)
    chosen = load_pipeline(pipeline, scheme, settings.field)
    options = make_read_options(**reading)
    records = read_sources(sources, options, replayed=replay)
    lexicon = chosen.tools.canonicalizer.lexicon
    if settings.lexicon_file:
        lexicon.load(settings.lexicon_file)
    opened = open_engine(engine or settings.data_dir, search_canonicalizer(scheme))
    try:
        if recreate and opened.index_exists(index):
            opened.delete_index(index)
        summary = run(
            opened,
            index,
            records,
            chosen,
            field=settings.field,
            dead_letters=dead_letters,
            workers=settings.workers if workers is None else workers,
        )
    finally:
        unclosed = close(opened)
    if unclosed and not summary.stopped:
        summary = replace(summary, stopped=unclosed)
    # One that was broken off in the middle of learning a word is not to be trusted.
    if settings.lexicon_file and not summary.stopped:
        keep_lexicon(lexicon, settings.lexicon_file)
    if invocation.json:
        write_json(summary.to_json())
    else:
        _print(summary)
    return exit_code(summary)


def close(engine: "Engine") -> str:
    """Close an engine and return what went wrong with that: a summary must not get lost over it."""
    from shinglefold.errors import EngineError

    try:
        engine.close()
    except EngineError as error:
        return str(error)
    return ""


def keep_lexicon(lexicon: "Lexicon", path: str) -> None:
    """Keep the words learned for the next run."""
    from shinglefold.errors import InputError

    try:
        lexicon.save(path)
    except InputError as error:
        # The documents are indexed; what is lost is only learned again.
        remark(f"note: {printable(error)}")


def run(engine: "Engine", index: str, records: Any, pipeline: "Pipeline", **options: Any) -> "Summary":  # noqa: ANN401
    """Index documents with a progress bar."""
    from shinglefold.cli.progress import progress_bar
    from shinglefold.ingest import index_documents

    with progress_bar("indexing") as bar:
        return index_documents(
            engine,
            index,
            records,
            pipeline,
            properties=PROPERTIES,
            progress=indexing_progress(bar),
            **options,
        )


def indexing_progress(bar: Callable[[float, str], None]) -> Callable[["Progress"], None]:
    """Return what shows the progress of indexing on a bar."""

    def report(progress: "Progress") -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        bar(progress.fraction, f"{progress.indexed:,} indexed{failed}")

    return report


def exit_code(summary: "Summary") -> int:
    """Return the exit code of a run; why it is none of the good ones goes to standard error."""
    if summary.stopped:
        remark(f"stopped: {printable(summary.stopped)}")
        return stopped_code(summary.stopped)
    if not summary.read:
        remark("no documents found; check the sources, or say their --format")
        return FAILED
    if summary.failed:
        return PARTLY if summary.indexed or summary.dropped else FAILED
    return DONE


def _print(summary: "Summary") -> None:
    for line in summary_lines(summary):
        write_line(line)


def summary_lines(summary: "Summary") -> list[str]:
    """Return what a run did as lines for people."""
    total = summary.seconds.get("total", 0.0)
    speed = summary.read / total if total else 0.0
    stages = [f"{name} {value:.1f}" for name, value in summary.seconds.items() if name != "total"]
    languages = [f"{code} {count:,}" for code, count in sorted(summary.languages.items())]
    lines = [
        f"{summary.indexed:,} indexed into {summary.index}, {summary.dropped:,} dropped, "
        f"{summary.failed:,} failed, of {summary.read:,} read",
        f"{total:.1f} s, {speed:,.0f} documents/s (seconds: {', '.join(stages)})",
        f"scheme {summary.scheme}; languages: {', '.join(languages) or 'none'}",
    ]
    counts = sorted(summary.counts.items())
    lines += [f"{name.replace('_', ' ')}: {count:,}" for name, count in counts if count]
    lines += [
        f"failed {count:,} times: {printable(reason)}"
        for reason, count in sorted(summary.reasons.items(), key=lambda item: -item[1])[:5]
    ]
    if summary.failed and summary.dead_letters:
        again = f"shinglefold retry {printable(summary.dead_letters)} --index {summary.index}"
        lines.append(f"failed ones are kept; once mended: {again}")
    if summary.counts.get("not_kept"):
        lines.append("those not kept are in no file of dead letters: once mended, index the sources again")
    return lines
