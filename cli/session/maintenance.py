"""What the commands that scan an index share: their options, and the way to open the engine."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from shinglefold.cli.framework.command import stopped_code
from shinglefold.cli.framework.next_commands import again
from shinglefold.cli.framework.output import printable, remark
from shinglefold.cli.options.definitions import (
    NumberRange,
    engine_option,
    options,
    pipeline_option,
    preset_option,
    workers_option,
)

if TYPE_CHECKING:
    from pathlib import Path

    from shinglefold.cli.framework.command import Invocation
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.contracts.engine import Engine
    from shinglefold.ingest import Pipeline, Progress
    from shinglefold.model.recipe import Recipe
    from shinglefold.settings import Settings

scan_options = options(
    engine_option,
    pipeline_option("the index's own"),
    click.option(
        "--slice",
        "part",
        default="1/1",
        metavar="N/OF",
        help="Only this share of the index, such as 2/4; other machines take the others.",
    ),
    click.option(
        "--requests-per-second",
        type=NumberRange(0),
        default=0.0,
        metavar="N",
        help="Read at most so many documents a second; by default there is no limit.",
    ),
    workers_option,
    preset_option,
)
checkpoint_option = click.option(
    "--checkpoint",
    metavar="FILE",
    help="Where to note how far it is; by default a file beside an embedded index, else in the folder of the "
    "setting data_dir.",
)


class OpenIndex(NamedTuple):
    """An index to look after: its engine, the pipeline of its documents, its recipe, and what was asked."""

    engine: "Engine"
    pipeline: "Pipeline"
    recipe: "Recipe"
    asked: "Asked"

    @property
    def settings(self) -> "Settings":
        """The settings."""
        return self.asked.settings


@contextmanager
def opened_index(invocation: "Invocation", asked: "Asked", *, must_exist: bool = True) -> Iterator[OpenIndex]:
    """Open what a command that looks after an index needs; keep the words learned on the way.

    Args:
        must_exist: else an index that is missing is one to come, made by flags and settings.

    Raises:
        RecipeMismatch: what is asked for contradicts the index.
        IndexMissing: there is no such index, and there must be.
    """
    from shinglefold.api.index_recipe import search_canonicalizer
    from shinglefold.cli.commands.indexing.index import keep_lexicon
    from shinglefold.cli.session.open_index import known_pipeline, pipeline_of
    from shinglefold.cli.session.recipe import recipe_of_index
    from shinglefold.engines import open_engine

    settings = asked.settings
    chosen, recipe = (
        known_pipeline(asked, recipe_of_index(asked)[0]) if must_exist else pipeline_of(asked, invocation)
    )
    lexicon = chosen.tools.canonicalizer.lexicon
    if settings.lexicon_file:
        lexicon.load(settings.lexicon_file)
    words = search_canonicalizer(recipe.scheme, chosen.tools.canonicalizer)
    with closing(open_engine(asked.where, words)) as opened:
        yield OpenIndex(opened, chosen, recipe, asked)
    if settings.lexicon_file:
        keep_lexicon(lexicon, settings.lexicon_file)


def stopped_early(stopped: str, invocation: "Invocation", *, anew: bool) -> int:
    """Tell why a run with a checkpoint ended early and what goes on with it, and return the exit code.

    Args:
        anew: whether there is nothing to go on from.
    """
    remark(f"stopped: {printable(invocation.hints().completed(stopped))}")
    on = "goes on from here"
    if anew:
        on = "begins anew, with the index that has the name by then"
    remark(f"the same command {on}: {again(invocation.arguments)}")
    return stopped_code(stopped)


def checkpoint_path(asked: "Asked", command: str, more: str = "") -> "Path":
    """Return where a command notes how far it is: beside an embedded index, else in the folder of settings.

    That is the working folder where the setting names a server.
    """
    from pathlib import Path

    from shinglefold.engines import folder_of

    plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in asked.index)
    folder = folder_of(asked.where) or folder_of(asked.settings.data_dir) or ""
    return Path(folder) / f".{command}-{plain}{more}.json"


def reporter(bar: Callable[[float, str], None]) -> Callable[["Progress"], None]:
    """Return what shows the progress of a scan on a bar."""

    def report(progress: "Progress") -> None:
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        bar(progress.fraction, f"{progress.read:,} read{failed}")

    return report
