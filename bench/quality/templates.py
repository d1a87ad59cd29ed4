"""What must not fold: long texts made from one template with other facts, and unrelated texts."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from bench.quality.corpus import POSITIVE, Corpus, pairs
from bench.table import Row
from shinglefold.ingest.fingerprinter import FingerprintArrays, Fingerprinter
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.sketch.b_bit_minhash import bit_planes, count_differing, length_ratio, unbiased_resemblance
from shinglefold.sketch.verification import similarity
from shinglefold.testing.edits.spelling import EditedPassage

#: Documents of a template, and words of one: some 11,000 characters.
DOCUMENTS, WORDS = 6, 1600
#: The share of the words that are facts, and how many facts stand together; one template each.
SLOTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.22, 0.25, 0.3)
RUNS = (1, 40)
#: How it is verified, and what never differs.
_WAYS = {
    "by text": ("text", ()),
    "by signature": ("signature", ()),
    "by text, equal numbers": ("text", ("numbers",)),
    "by signature, equal numbers": ("signature", ("numbers",)),
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
    for name, (verify, names) in _WAYS.items():
        scheme = make_scheme().with_options(verify=verify)
        facts = NeverDiffer.parse(names).facts(texts, [{} for _ in texts])
        folded = pairs(Fingerprinter(scheme).fingerprint_arrays(texts, facts=facts), scheme)
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


#: Texts of a corpus' words; their pairs are 7.2·10⁷.
_TEXTS = 12_000
_LEAST, _MOST = 40, 300
_ROWS = 256


def measure_unrelated(whole: Corpus) -> Iterator[Row]:
    """Compare all pairs by signature, and find pairs as ``groups --pairs`` does, by text."""
    scheme = make_scheme()
    prints = Fingerprinter(scheme).fingerprint_arrays(drawn(whole))
    count = _TEXTS * (_TEXTS - 1) // 2
    folded, highest = by_signature(prints, scheme)
    note = f"{folded} of {count:,} pairs; the highest estimate is {highest:.2f}"
    yield Row(f"{whole.name}: unrelated texts, by signature", folded / count, "fold", note)
    found = len(pairs(prints, scheme))
    yield Row(f"{whole.name}: unrelated texts, by text", found / count, "fold", f"{found} of {count:,} pairs")


def drawn(whole: Corpus) -> list[str]:
    """Return texts of 40 to 300 words; Chinese characters count as words."""
    counts = Counter(word for text in whole.texts for word in EditedPassage.of(text).words)
    words, weights = list(counts), np.fromiter(counts.values(), np.float64, len(counts))
    chance = np.random.default_rng(84)
    lengths = chance.integers(_LEAST, _MOST + 1, _TEXTS)
    drawn = chance.choice(len(words), int(lengths.sum()), p=weights / weights.sum()).tolist()
    ends = np.cumsum(lengths).tolist()
    starts = [0, *ends[:-1]]
    gap = "" if whole.languages[0].startswith("zh") else " "
    return [gap.join(words[at] for at in drawn[a:b]) for a, b in zip(starts, ends, strict=True)]


def by_signature(prints: FingerprintArrays, scheme: Scheme) -> tuple[int, float]:
    """Return how many of all pairs fold, and the highest estimate of pairs near enough in length."""
    sketch, decision = scheme.sketch, scheme.decision
    planes = bit_planes(prints.signatures, sketch.bits)
    folded, fewest = 0, sketch.values
    for begin in range(0, len(prints), _ROWS):
        end = min(begin + _ROWS, len(prints))
        apart = count_differing(planes[:, :, begin:end], planes[:, :, begin:])
        alike = length_ratio(prints.shingles[begin:end, None], prints.shingles[None, begin:])
        later = np.arange(len(prints) - begin)[None, :] > np.arange(end - begin)[:, None]
        near = later & (alike >= decision.min_length_ratio)
        estimates = unbiased_resemblance(1 - apart / sketch.values, sketch.bits)
        folded += int(np.count_nonzero(near & (estimates >= decision.min_resemblance)))
        fewest = min(fewest, int(apart[near].min(initial=sketch.values)))
    return folded, float(unbiased_resemblance(1 - fewest / sketch.values, sketch.bits))
