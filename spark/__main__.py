"""``python -m shinglefold.spark COMMAND``, and what ``spark-submit`` is given."""

import sys

from shinglefold.cli.command import HELP, Group, common_options
from shinglefold.cli.main import main
from shinglefold.spark.groups_command import groups_command
from shinglefold.spark.read_command import read_command
from shinglefold.spark.sign_command import sign_command

_HELP = """Sign and group collections that no single machine holds, on Apache Spark.

Start with: python -m shinglefold.spark sign pages/ -o signed/
"""

spark = Group(
    "shinglefold.spark",
    commands={one.name or "": one for one in (sign_command, read_command, groups_command)},
    params=[*common_options()],
    help=_HELP,
    context_settings={"help_option_names": HELP},
)

if __name__ == "__main__":
    sys.exit(main(program=spark))
