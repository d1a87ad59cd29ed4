"""``python -m bench.quality.worst CORPUS``: the ten worst false folds and misses, with texts to look at."""

import sys

from bench.quality.corpus import POSITIVE, Corpus, Pair, corpus, run

_SHOWN = 600
_COUNT = 10


def false_folds(pages: Corpus, folded: set[Pair]) -> list[Pair]:
    """Return the pairs that fold and are least alike."""
    return sorted(folded - pages.positive, key=lambda pair: (pages.truth.get(pair, 0.0), pair))[:_COUNT]


def misses(pages: Corpus, folded: set[Pair]) -> list[Pair]:
    """Return the pairs that do not fold and are most alike."""
    return sorted(pages.positive - folded, key=lambda pair: (-pages.truth[pair], pair))[:_COUNT]


def main(name: str, verify: str = "text") -> None:
    """Print them."""
    pages = corpus(name)
    folded = run(pages, verify).folded
    for title, pairs in (("false fold", false_folds(pages, folded)), ("miss", misses(pages, folded))):
        for number, pair in enumerate(pairs, 1):
            told = pages.truth.get(pair)
            label = "not listed" if told is None else f"similarity {told}, {POSITIVE} needed"
            sys.stdout.write(f"\n=== {title} {number}: {label}\n")
            for place in pair:
                sys.stdout.write(f"--- {pages.ids[place]}\n{pages.texts[place][:_SHOWN]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
