"""Made-up texts some of which are copies of others, and the groups that stored fingerprints make of them."""

import random

import numpy as np

from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.model.scheme import Scheme
from shinglefold.sketch.all_pairs import find_pairs
from shinglefold.sketch.clustering import connected_components
from shinglefold.testing.edits import edited


def copied_texts(count: int, seed: int) -> list[str]:
    """Texts of which a third are copies of others: exact, or with some words replaced, now and then again."""
    chosen = random.Random(seed)
    words = [f"{one}{other}" for one in ("mor", "sol", "riv", "ned", "tak", "lum") for other in range(90)]
    texts: list[str] = []
    for _ in range(count):
        if texts and chosen.random() < 0.35:
            own = chosen.choice(texts).split()
            for _ in range(chosen.choice((0, 0, 1, 4, 12))):
                own[chosen.randrange(len(own))] = chosen.choice(words)
            texts.append(" ".join(own))
        else:
            texts.append(" ".join(chosen.choices(words, k=chosen.choice((1, 3, 40, 80, 150)))))
    return texts


def groups_by_what_is_stored(texts: list[str], scheme: Scheme) -> set[frozenset[int]]:
    """The groups of two texts or more, by the supershingles and signatures that an index stores."""
    made = Fingerprinter(scheme).fingerprint_arrays(texts)
    keys = made.supershingles[:, : scheme.sketch.groups]
    pairs = find_pairs(
        keys, made.signatures, made.shingles, made.digests, scheme.sketch, scheme.decision, made.valid
    )
    label = connected_components(pairs.a, pairs.b, len(texts))
    every = (np.flatnonzero(label == one).tolist() for one in np.unique(label))
    return {frozenset(places) for places in every if len(places) > 1}


_DOUBTFUL = [
    f"{root}{end}"
    for root in ("мост", "завод", "город", "дом", "театр", "парк")
    for end in ("", "ы", "ов", "ам", "ах")
]


def doubtful_texts() -> list[str]:
    """A text, copies with ever more words replaced, and ones with whole passages at another place."""
    text = " ".join(_DOUBTFUL[(7 + at * at + at * 4) % len(_DOUBTFUL)] + str(at) for at in range(150))
    copies = [edited(text, "words replaced", share / 100, "ru", seed=share).text for share in range(4, 16)]
    return [text, *copies, *(text[at:] + " " + text[:at] for at in range(100, 700, 100))]
