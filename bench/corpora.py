"""What is measured on: the labelled corpora where they are at hand, and generated Russian text."""

import gzip
import json
import os
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shinglefold.canon import strip_html
from shinglefold.contracts.engine import JSON
from shinglefold.examples import articles
from shinglefold.model.values import Int64s

#: The articles have words with look-alikes of other scripts, which no ordinary text has in each line.
_OF_ONE_SCRIPT = {
    "ru": re.compile(r"\b[а-яё]+\b", re.IGNORECASE),
    "uk": re.compile(r"\b[а-щьюяєіїґ'’]+\b", re.IGNORECASE),
    "en": re.compile(r"\b[a-z']+\b", re.IGNORECASE),
}
_SEARCHES = 500
#: A word, or a Chinese character.
WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


def folder() -> Path:
    """Return the folder of the labelled corpora, wherever it is meant to be."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("SHINGLEFOLD_DATA", beside))


def available(name: str) -> bool:
    """Tell whether a labelled corpus is at hand."""
    return (folder() / f"{name}.jsonl.gz").exists()


@cache
def pages(name: str) -> tuple[dict[str, Any], ...]:
    """Return the pages of a labelled corpus."""
    with gzip.open(folder() / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(map(json.loads, lines))


@cache
def texts(name: str) -> tuple[str, ...]:
    """Return the plain texts of a labelled corpus."""
    return tuple(strip_html(p["body"]) if p["format"] == "html" else p["body"] for p in pages(name))


@cache
def labels(name: str) -> dict[tuple[str, str], float]:
    """Return the labelled pairs of a corpus: ids in order → similarity."""
    with gzip.open(folder() / f"{name}.pairs.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = (line.split("\t") for line in lines)
        return {(min(a, b), max(a, b)): float(similarity) for a, b, similarity, _ in rows}


def title_searches(name: str) -> list[JSON]:
    """Return searches for pages of 10 by titles of a corpus, evenly drawn."""
    titles = dict.fromkeys(page["title"] for page in pages(name) if page["title"])
    chosen = list(titles)[:: max(1, len(titles) // _SEARCHES)][:_SEARCHES]
    fields = ["title^2", "body"]
    return [{"query": {"multi_match": {"query": title, "fields": fields}}, "size": 10} for title in chosen]


@cache
def generated(language: str, documents: int, words: int) -> tuple[str, ...]:
    """Return generated documents: words of the example articles of a language, drawn by their frequency."""
    counts = Counter(
        word
        for page in articles()
        if page["lang"] == language
        for word in _OF_ONE_SCRIPT[language].findall(page["body"])
    )
    chance = random.Random(84)
    drawn = chance.choices(list(counts), list(counts.values()), k=documents * words)
    return tuple(" ".join(drawn[at : at + words]) for at in range(0, documents * words, words))


_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Made-up words by falling frequency: ``chances`` follow Zipf's law, ``words`` are distinct."""

    words: tuple[bytes, ...]
    chances: np.ndarray

    @classmethod
    def of(cls, count: int, seed: int = 0) -> "Vocabulary":
        """Return so many words of 3 to 12 letters."""
        chance = np.random.default_rng(seed)
        found: dict[bytes, None] = {}
        while len(found) < count:
            for length in chance.integers(3, 13, count).tolist():
                found.setdefault(chance.choice(_LETTERS, length).tobytes())
        chances = 1.0 / np.arange(1, count + 1)
        return cls(tuple(found)[:count], chances / chances.sum())

    def drawn(self, length: int, seed: int) -> Int64s:
        """Return the numbers of the words of a text, int64 (length,)."""
        chance = np.random.default_rng(seed)
        return np.searchsorted(np.cumsum(self.chances), chance.random(length)).clip(0, len(self.words) - 1)
