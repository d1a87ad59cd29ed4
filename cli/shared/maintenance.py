"""What the commands that scan an index share: options, the open index, checkpoints."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shinglefold.cli.shared.command import exit_code_of_stop
from shinglefold.cli.shared.definitions import (
    NumberRange,
    engine_option,
    options,
    pipeline_option,
    preset_option,
    workers_option,
)
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import printable, remark

if TYPE_CHECKING:
    from shinglefold.cli.shared.command import Invocation
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.contracts.engine import Engine
    from shinglefold.ingest import Pipeline
    from shinglefold.model.recipe import Recipe

requests_per_second_option = click.option(
    "--requests-per-second",
    type=NumberRange(0),
    default=0.0,
    metavar="N",
    help="The most documents to read, and to write, a second; by default without a limit.",
)
scan_options = options(
    engine_option,
    pipeline_option("the index's own"),
    click.option(
        "--slice",
        "part",
        default="1/1",
        metavar="N/OF",
        help="Process only this part of the index, such as 2/4; run the others on other machines.",
    ),
    requests_per_second_option,
    workers_option,
    preset_option,
)
checkpoint_option = click.option(
    "--checkpoint",
    metavar="FILE",
    help="File that notes the progress; by default one beside an embedded index, else in the folder of the "
    "setting data_dir.",
)


@contextmanager
def open_for_scan(target: "Target") -> Iterator["tuple[Engine, Pipeline, Recipe]"]:
    """Open an index with the pipeline of its documents; keep the words learned on the way.

    Raises:
        RecipeMismatch: a flag or setting contradicts the index.
        IndexMissing: there is no such index.
    """
    from shinglefold.api.index_recipe import search_canonicalizer
    from shinglefold.cli.shared.open_index import load_lexicon, save_lexicon, stored_pipeline
    from shinglefold.cli.shared.recipe import recipe_of_index
    from shinglefold.engines import open_engine

    pipeline, recipe = stored_pipeline(target, recipe_of_index(target)[0])
    canonicalizer = pipeline.tools.canonicalizer
    load_lexicon(canonicalizer, target.settings)
    with closing(open_engine(target.where, search_canonicalizer(recipe.scheme))) as opened:
        yield opened, pipeline, recipe
    save_lexicon(canonicalizer, target.settings)


def report_stop(stopped: str, invocation: "Invocation", *, anew: bool) -> int:
    """Write why a run with a checkpoint ended early and the command that continues it; return the exit code.

    Args:
        anew: the index was replaced meanwhile, so the next run starts from the beginning.
    """
    remark(f"stopped: {printable(invocation.hints().complete(stopped))}")
    purpose = "start again with the index that now has the name" if anew else "continue"
    remark(f"to {purpose}: {repeat_command(invocation.arguments)}")
    return exit_code_of_stop(stopped)


def checkpoint_path(target: "Target", command: str, suffix: str = "") -> "Path":
    """Return the default file of a checkpoint.

    It is in the folder of an embedded engine, else in that of ``data_dir``, else in the working folder.
    """
    from shinglefold.engines import folder_of

    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in target.index)
    folder = folder_of(target.where) or folder_of(target.settings.data_dir) or ""
    return Path(folder) / f".{command}-{name}{suffix}.json"
