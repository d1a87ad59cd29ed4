"""Put the results of today on record: ``PYTHONPATH=tests python -m support.golden FOLDER [KIND…]``.

FOLDER has the labelled corpora. Results on record change only when results are meant to change, and whoever
uses shinglefold is told so in CHANGELOG.md.
"""

import sys
from pathlib import Path

from support.golden.corpora import CORPORA, file_of
from support.golden.results import KINDS, record


def main(arguments: list[str]) -> int:
    """Compute and record the kinds named, by default all."""
    folder, kinds = Path(arguments[0] if arguments else ""), arguments[1:] or list(KINDS)
    if not arguments or not set(kinds) <= KINDS.keys():
        print(f"usage: FOLDER [KIND…]; KIND is one of {', '.join(KINDS)}", file=sys.stderr)
        return 2
    missing = [corpus for corpus in CORPORA if not file_of(folder, corpus).exists()]
    if missing:
        print(f"not in {folder}: {', '.join(missing)}", file=sys.stderr)
        return 1
    for kind in kinds:
        record(kind, {corpus: KINDS[kind](folder, corpus) for corpus in CORPORA})
        print(f"recorded {kind}; a change of it is told in CHANGELOG.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
