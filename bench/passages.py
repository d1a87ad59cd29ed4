"""Matched passages: the insertion experiment, growth with the collection, and what tolerance finds."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.bloom_inserts import SHARES, documents, sources
from bench.clock import best, once
from bench.generated import Vocabulary, hashes_of
from bench.table import Row
from shinglefold.model.values import Int64s, PlacedTokens
from shinglefold.passages.passage_index import PassageIndex
from shinglefold.passages.seeds import pairs_between
from shinglefold.passages.shingle_positions import WIDTH, Elements, elements_of

#: Words of a document of the growing collection, and of the text it is asked for.
_WORDS, _ASKED = 300, 1_000
_SIZES = (100, 1_000, 10_000, 100_000)
#: Texts with edits: documents, words of a copied passage, and words between two edits, on average.
_EDITED, _PASSAGE, _EVERY = 300, 200, 12


def measure() -> list[Row]:
    """Return what is found of known copies, and how long it takes."""
    return [*_inserted(), *_growth(), *_tolerance(WIDTH), *_tolerance(2 * WIDTH)]


def _elements(words: Int64s, tolerant: bool = False, width: int = WIDTH) -> Elements:
    places = np.arange(len(words))
    return elements_of(PlacedTokens(hashes_of(words), places, places + 1), width, tolerant)


def _inserted() -> Iterator[Row]:
    """Yield which inserts of the Bloom filters' experiment are found, from 5 % up."""
    vocabulary = Vocabulary.of(50_000)
    origins = sources(vocabulary)
    made = documents(vocabulary, origins)
    index = PassageIndex([(str(number), _elements(words)) for number, (_, _, words) in enumerate(made)])
    found = strangers = 0
    for number, origin in enumerate(origins):
        named = {match.document for match in index.matches(_elements(origin), SHARES[0] - 0.001)}
        own = {str(at) for at, (source, _, _) in enumerate(made) if source == number}
        found += len(named & own)
        strangers += len(named - own)
    note = f"of 5 to 50 % of a document; {strangers} strangers named"
    yield Row("inserts found", found, f"of {len(made)}", note)


def _growth() -> Iterator[Row]:
    """Yield the time of a query against collections ten times as large each."""
    vocabulary = Vocabulary.of(50_000)
    words = vocabulary.drawn(_SIZES[-1] * _WORDS, 1).reshape(_SIZES[-1], _WORDS)
    places = np.arange(_WORDS)
    own = vocabulary.drawn(_ASKED - 100, 2)
    # A tenth of the text is the beginning of document 7.
    asked = _elements(np.concatenate((own[:400], words[7, :100], own[400:])))
    each = [elements_of(PlacedTokens(hashes_of(one), places, places + 1), WIDTH) for one in words]
    naive = best(lambda: [pairs_between(asked, one) for one in each[:100]], 3)
    yield Row("matches, each of 100 documents in turn", naive * 1e3, "ms", "x·z: grows with the collection")
    for size in _SIZES:
        built, index = once(lambda count=size: PassageIndex([(str(at), each[at]) for at in range(count)]))
        found = index.matches(asked)
        if [match.document for match in found] != ["7"]:
            raise AssertionError(f"document 7 was not found alone among {size:,}")
        pairs = len(index.pairs(asked)[0])
        seconds = best(lambda chosen=index: chosen.matches(asked))
        note = f"{_ASKED:,} words against documents of {_WORDS}; {pairs:,} pairs; built in {built:.1f} s"
        yield Row(f"matches, {size:,} documents", seconds * 1e3, "ms", note)


def _tolerance(width: int) -> Iterator[Row]:
    """Yield the true and false pairs of exact and of tolerant elements, on copies that were edited."""
    vocabulary = Vocabulary.of(50_000)
    chance = np.random.default_rng(9)
    copies = [_edited(vocabulary.drawn(_PASSAGE, 20_000 + at), chance) for at in range(_EDITED)]
    collection = [(str(at), _elements(passage, True, width)) for at, (passage, _, _) in enumerate(copies)]
    exact = (0, 0, 0.0)
    for tolerant, name in ((False, "exact"), (True, "tolerant")):
        index = PassageIndex(collection, tolerant)
        seconds = best(partial(_asked_all, index, copies, tolerant, width), 3)
        true, false = _judged(index, copies, tolerant, width)
        exact = exact if tolerant else (true, false, seconds)
        note = f"{false:,} false pairs; time {seconds / exact[2]:.1f}"
        if tolerant:
            note += f" (exact = 1); {true / exact[0] - 1:+.1%} true, {false - exact[1]:+,} false"
        yield Row(f"pairs found, {name} elements of {width} words", true, "true pairs", note)


def _edited(passage: Int64s, chance: np.random.Generator) -> tuple[Int64s, Int64s, Int64s]:
    """Return a passage, a copy with neighbours swapped and words replaced, and where its words come from."""
    origin = np.arange(len(passage))
    copy = passage.copy()
    for at in chance.choice(len(passage) - 1, len(passage) // _EVERY, replace=False).tolist():
        if chance.random() < 0.5:
            copy[[at, at + 1]], origin[[at, at + 1]] = copy[[at + 1, at]], origin[[at + 1, at]]
        else:
            copy[at] = chance.integers(50_000)
    return passage, copy, origin


def _asked_all(
    index: PassageIndex, copies: list[tuple[Int64s, Int64s, Int64s]], tolerant: bool, width: int
) -> None:
    for _, copy, _ in copies:
        index.pairs(_elements(copy, tolerant, width))


def _judged(
    index: PassageIndex, copies: list[tuple[Int64s, Int64s, Int64s]], tolerant: bool, width: int
) -> tuple[int, int]:
    """Return the true pairs, of elements that stand at one place of one text, and the false ones."""
    true = false = 0
    for number, (_, copy, _) in enumerate(copies):
        documents, asked, ordinals = index.pairs(_elements(copy, tolerant, width))
        right = (documents == number) & (asked == ordinals)
        true += int(right.sum())
        false += int((~right).sum())
    return true, false
