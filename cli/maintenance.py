"""What the commands that walk an index share: their options, and the way to open the engine."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from shinglefold.cli.options import chosen_scheme, engine_option, options, preset_option, workers_option

if TYPE_CHECKING:
    from shinglefold.cli.command import Invocation
    from shinglefold.contracts import Engine
    from shinglefold.ingest import Pipeline, Progress
    from shinglefold.settings import Settings

walk_options = options(
    engine_option,
    click.option("--pipeline", metavar="FILE", help="Ingest pipeline as JSON; by default the one for pages."),
    click.option(
        "--slice",
        "part",
        default="1/1",
        metavar="N/OF",
        help="Only this share of the index, such as 2/4; other machines take the others.",
    ),
    click.option(
        "--requests-per-second",
        type=click.FloatRange(0),
        default=0.0,
        metavar="N",
        help="Read at most so many documents a second; by default there is no limit.",
    ),
    workers_option,
    preset_option,
)


class Opened(NamedTuple):
    """An index to look after: its engine, the pipeline of its documents, and the settings."""

    engine: "Engine"
    pipeline: "Pipeline"
    settings: "Settings"


@contextmanager
def opened_index(
    invocation: "Invocation", engine: str | None, pipeline: str | None, preset: str | None
) -> Iterator[Opened]:
    """Open what a command that looks after an index needs; keep the words learned on the way."""
    from shinglefold.cli.index import keep_lexicon
    from shinglefold.cli.pipelines import load_pipeline
    from shinglefold.cli.stores import search_canonicalizer
    from shinglefold.engines import open_engine

    settings = invocation.settings()
    scheme = chosen_scheme(invocation, preset)
    chosen = load_pipeline(pipeline, scheme)
    lexicon = chosen.tools.canonicalizer.lexicon
    if settings.lexicon_file:
        lexicon.load(settings.lexicon_file)
    with closing(open_engine(engine or settings.data_dir, search_canonicalizer(scheme))) as opened:
        yield Opened(opened, chosen, settings)
    if settings.lexicon_file:
        keep_lexicon(lexicon, settings.lexicon_file)


def reporter(bar: Callable[[float, str], None]) -> Callable[["Progress"], None]:
    """Return what shows the progress of a walk on a bar."""

    def report(progress: "Progress") -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        bar(progress.fraction, f"{progress.read:,} read{failed}")

    return report
