"""What folds of long texts made from templates: one frame, other facts in its slots."""

import random
from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

from bench.quality.corpus import POSITIVE
from bench.quality.ours import fingerprinter, pairs
from bench.table import Row
from shinglefold.registry import make_scheme
from shinglefold.sketch import similarity

#: Documents of a template, and words of one: some 11,000 characters.
DOCUMENTS, WORDS = 6, 1600
#: The share of the words that are facts, and how many facts stand together; one template each.
SLOTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.22, 0.25, 0.3)
RUNS = (1, 40)
_WAYS = {
    "by text": {"verify": "text"},
    "by signature": {"verify": "signature"},
    "by text, equal numbers": {"verify": "text", "facts": "numbers"},
}


class Made(NamedTuple):
    """The words of a document, which template it is of, and which facts stand in it."""

    words: tuple[str, ...]
    template: int
    facts: int


def documents(seed: int = 84) -> list[Made]:
    """Return documents: of each template one with each facts, and an edited copy of the last."""
    chance = random.Random(seed)
    vocabulary = [_word(chance) for _ in range(3000)]
    weights = [1 / (at + 5) for at in range(len(vocabulary))]
    made = []
    for template, (share, run) in enumerate(product(SLOTS, RUNS)):
        frame = chance.choices(vocabulary, weights, k=WORDS)
        starts = chance.sample(range(0, WORDS, run), max(1, round(share * WORDS / run)))
        slots = [at for start in starts for at in range(start, start + run)]
        for facts in range(DOCUMENTS):
            words = list(frame)
            for slot in slots:
                # A number, a name or a place.
                words[slot] = str(chance.randrange(10_000)) if chance.random() < 0.3 else _word(chance)
            made.append(Made(tuple(words), template, facts))
        copy = list(made[-1].words)
        for at in chance.sample(sorted(set(range(WORDS)) - set(slots)), WORDS // 50):
            copy[at] = chance.choice(vocabulary)
        made.append(Made(tuple(copy), template, DOCUMENTS - 1))
    return made


def measure() -> Iterator[Row]:
    """Yield precision and recall by edit similarity, and the share of pairs with other facts that fold."""
    made = documents()
    texts = [" ".join(one.words) for one in made]
    numbers: dict[str, int] = {}
    words = [[numbers.setdefault(word, len(numbers)) for word in one.words] for one in made]
    every = list(combinations(range(len(made)), 2))
    alike = {(a, b) for a, b in every if similarity(words[a], words[b], POSITIVE) >= POSITIVE}
    of_one = [(a, b) for a, b in every if made[a].template == made[b].template]
    copies = {(a, b) for a, b in of_one if made[a].facts == made[b].facts}
    others = set(of_one) - copies
    for name, options in _WAYS.items():
        scheme = make_scheme().with_options(**options)
        folded = pairs(fingerprinter(scheme).fingerprint_arrays(texts), scheme)
        hit = len(folded & alike)
        note = f"recall {hit / len(alike):.3f} of {len(alike)} pairs; {len(texts)} texts of {WORDS:,} words"
        share = hit / max(1, len(folded))
        yield Row(f"templates {name}: precision at edit similarity .8", share, "of pairs", note)
        note = f"of {len(others)} pairs; {len(folded & copies)} of {len(copies)} edited copies fold"
        share = len(folded & others) / len(others)
        yield Row(f"templates {name}: other facts that fold", share, "of pairs", note)


def _word(chance: random.Random) -> str:
    syllables = (chance.choice("бвгдзклмнпрст") + chance.choice("аеиоу") for _ in range(chance.randint(2, 4)))
    return "".join(syllables)
