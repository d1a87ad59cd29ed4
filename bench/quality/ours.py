"""What shinglefold folds of a corpus, and what it found it among."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.quality.corpus import Corpus, Pair
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.fingerprinter import FingerprintArrays
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.sketch import nominate


@dataclass(frozen=True, slots=True)
class Run:
    """What folds by a way to verify, and the microseconds a document: making prints, and pairing them."""

    folded: set[Pair]
    printing: float
    pairing: float


def fingerprinter(scheme: Scheme | None = None) -> Fingerprinter:
    """Return a fingerprinter whose lexicon is still empty."""
    return Fingerprinter(make_scheme() if scheme is None else scheme)


def run(corpus: Corpus, verify: str) -> Run:
    """Return what folds, timed with known words."""
    scheme = make_scheme().with_options(verify=verify)
    tool = fingerprinter(scheme)
    tool.fingerprint_arrays(corpus.texts)
    start = time.perf_counter()
    prints = tool.fingerprint_arrays(corpus.texts)
    between = time.perf_counter()
    folded = pairs(prints, scheme)
    end = time.perf_counter()
    a_document = 1e6 / len(corpus)
    return Run(folded, (between - start) * a_document, (end - between) * a_document)


def pairs(prints: FingerprintArrays, scheme: Scheme) -> set[Pair]:
    """Return the pairs that a scheme folds."""
    found = prints.pairs(scheme)
    return set(zip(found.a.tolist(), found.b.tolist(), strict=True))


def candidates(corpus: Corpus) -> NDArray[np.int64]:
    """Return the pairs that share a supershingle of all values, or the whole text: int64 (P, 2)."""
    scheme = make_scheme().with_options(verify="keywords")
    prints = fingerprinter(scheme).fingerprint_arrays(corpus.texts)
    places = np.flatnonzero(prints.valid)
    found = {tuple(sorted(pair)) for pair in pairs(prints, scheme)}
    for a, b in nominate(prints.supershingles[places], 1):
        found.update(zip(places[a].tolist(), places[b].tolist(), strict=True))
    return np.array(sorted(found), np.int64).reshape(-1, 2)
