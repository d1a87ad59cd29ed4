"""``shinglefold retry FILE``: documents that failed, once more."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from shinglefold.cli.framework.command import Invocation, command
from shinglefold.cli.framework.output import write_json, write_line
from shinglefold.cli.options.definitions import engine_options, pipeline_option, preset_option, workers_option
from shinglefold.cli.session.maintenance import opened_index


@command(
    examples="""
    shinglefold retry failed.jsonl
    """
)
@click.argument("file", metavar="FILE")
@engine_options
@pipeline_option("the index's own")
@preset_option
@workers_option
@click.pass_obj
def retry(
    invocation: Invocation,
    /,
    *,
    file: str,
    index: str,
    engine: str | None,
    pipeline: str | None,
    preset: str | None,
    workers: int | None,
) -> int:
    """Index the documents of a dead-letter FILE again.

    Afterwards the file holds what failed again, with the new reasons; it is removed where nothing did. When
    it is cut short, the same command goes on. Exit code 3 says that some documents failed again.
    """
    from shinglefold.cli.commands.indexing.index import indexing_progress
    from shinglefold.cli.framework.progress import progress_bar
    from shinglefold.cli.render.run_summary import exit_code, summary_lines
    from shinglefold.cli.session.templates import templated
    from shinglefold.ingest.index_mapping import usual_properties
    from shinglefold.maintenance import retry as run

    asked = invocation.asked(index, engine, preset=preset, pipeline=pipeline)
    with (
        _documents_told(asked.hints.command("index", file, index=index)),
        opened_index(invocation, asked, must_exist=False) as (opened, chosen, recipe, _),
        progress_bar("retry") as bar,
    ):
        summary = run(
            opened,
            index,
            file,
            chosen,
            field=recipe.field,
            properties=templated(opened, index).unsaid(usual_properties(recipe)),
            workers=asked.settings.workers if workers is None else workers,
            progress=indexing_progress(bar),
        )
    if invocation.json:
        write_json(summary.to_json())
    else:
        for line in summary_lines(summary, asked.hints):
            write_line(line)
    return exit_code(summary)


@contextmanager
def _documents_told(indexed: str) -> Iterator[None]:
    """Add the command that indexes documents to the error for a file of them."""
    from shinglefold.maintenance import ForeignFile

    try:
        yield
    except ForeignFile as error:
        raise ForeignFile(f"{error}; documents are indexed with: {indexed}") from error
