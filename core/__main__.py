"""``python -m shinglefold``: the command line, if the command ``shinglefold`` is not on the path."""

import sys

from shinglefold.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
