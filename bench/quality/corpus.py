"""A labelled corpus, any in the format of the shared ones: pages, and the edit similarity of their pairs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bench import corpora
from shinglefold.canon import strip_html
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.fingerprinter import FingerprintArrays
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.sketch.candidates import nominate

#: Pairs count as duplicates from this edit similarity up.
POSITIVE = 0.8
#: Pages beyond which a sample of the families is asked of what takes milliseconds a page.
MANY = 3000
#: Pages of fewer tokens are not labelled.
LEAST = 30
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """The labelled pages of a corpus; ``truth``: by places a < b the similarity, of other pairs it is 0."""

    name: str
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    languages: tuple[str, ...]
    truth: dict[Pair, float]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def positive(self) -> set[Pair]:
        """The pairs that are to fold."""
        return {pair for pair, similarity in self.truth.items() if similarity >= POSITIVE}

    def sample(self, every: int) -> "Corpus":
        """Return the corpus of each so-manieth family of pages; all of a family stay together."""
        if every == 1:
            return self
        families = sorted({_family(one) for one in self.ids})
        kept = set(families[::every])
        places = [place for place, one in enumerate(self.ids) if _family(one) in kept]
        return _of(f"{self.name}, one family of {every}", self, places)


def names() -> list[str]:
    """Return the corpora at hand that have labels."""
    return sorted(path.name.removesuffix(".pairs.tsv.gz") for path in corpora.folder().glob("*.pairs.tsv.gz"))


@cache
def corpus(name: str) -> Corpus:
    """Return the pages of a corpus that its labels speak of, with what scripts show of them."""
    pages = corpora.pages(name)
    texts = [strip_html(p["body"], keep_hidden=True) if p["format"] == "html" else p["body"] for p in pages]
    place = {page["id"]: at for at, page in enumerate(pages)}
    labels = corpora.labels(name)
    truth = {_order(place[a], place[b]): similarity for (a, b), similarity in labels.items()}
    paired = {at for pair in truth for at in pair}
    kept = [at for at, text in enumerate(texts) if at in paired or len(corpora.WORD.findall(text)) >= LEAST]
    whole = Corpus(name, tuple(place), tuple(texts), tuple(page.get("lang", "") for page in pages), truth)
    return _of(name, whole, kept)


def _of(name: str, whole: Corpus, places: Sequence[int]) -> Corpus:
    new = {old: at for at, old in enumerate(places)}
    truth = {(new[a], new[b]): s for (a, b), s in whole.truth.items() if a in new and b in new}
    columns = (tuple(column[at] for at in places) for column in (whole.ids, whole.texts, whole.languages))
    return Corpus(name, *columns, truth)


def _family(page: str) -> str:
    """Return the part of an id that the page has at each release: all but its second part."""
    manual, _, rest = page.split("/", 2) if page.count("/") > 1 else ("", "", page)
    return f"{manual}/{rest}"


def _order(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


@dataclass(frozen=True, slots=True)
class Run:
    """What folds by a way to verify, and the microseconds a document: making prints, and pairing them."""

    folded: set[Pair]
    printing: float
    pairing: float


def run(corpus: Corpus, verify: str) -> Run:
    """Return what folds, timed with known words."""
    scheme = make_scheme().with_options(verify=verify)
    tool = Fingerprinter(scheme)
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
    prints = Fingerprinter(scheme).fingerprint_arrays(corpus.texts)
    places = np.flatnonzero(prints.valid)
    found = {tuple(sorted(pair)) for pair in pairs(prints, scheme)}
    for a, b in nominate(prints.supershingles[places], 1):
        found.update(zip(places[a].tolist(), places[b].tolist(), strict=True))
    return np.array(sorted(found), np.int64).reshape(-1, 2)
