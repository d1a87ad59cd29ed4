"""``python -m shinglefold.cli.spark COMMAND``, and the file for ``spark-submit``."""

import sys

from shinglefold.cli.main import main
from shinglefold.cli.shared.command import HELP, CommandGroup, common_options
from shinglefold.cli.spark.commands import groups_command, read_command, sign_command

_HELP = """Sign and group collections that no single machine holds, on Apache Spark.

Start with: python -m shinglefold.cli.spark sign pages/ -o signed/
"""

spark = CommandGroup(
    "shinglefold.cli.spark",
    commands={one.name or "": one for one in (sign_command, read_command, groups_command)},
    params=[*common_options()],
    help=_HELP,
    context_settings={"help_option_names": HELP},
)

if __name__ == "__main__":
    sys.exit(main(program=spark))
