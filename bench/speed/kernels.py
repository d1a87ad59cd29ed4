"""The kernel, text → fingerprint as JSON: numpy, compiled, and peers that do less, in turns."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from bench import corpora
from bench.table import Row
from shinglefold.canon import token_hash
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme

DOCUMENTS, ROUNDS = 800, 7
_VALUES = 168


def measure() -> list[Row]:
    """Return µs of CPU for 500 tokens on one core, warm; of each way its best round."""
    sets = {"generated Russian": corpora.russian(DOCUMENTS, 500)}
    sets |= {name: corpora.texts(name)[:DOCUMENTS] for name in filter(corpora.available, corpora.LABELLED)}
    return [row for name, texts in sets.items() for row in _rows(name, texts)]


def _rows(name: str, texts: Sequence[str]) -> list[Row]:
    plain, compiled = Fingerprinter(make_scheme()), Fingerprinter(make_scheme())
    assert compiled.compile(), "the extra fast is not installed"
    expected = plain.fingerprint_json(texts)
    assert compiled.fingerprint_json(texts) == expected
    _assert_tokens(plain, texts[:20])
    tokens = len(plain.canonicalizer.hash_batch(texts).hashes)
    ways: dict[str, Callable[[], object]] = {
        "numpy": lambda: plain.fingerprint_json(texts),
        "compiled": lambda: compiled.fingerprint_json(texts),
        "rensa (words split at spaces, 168 values, no canonical text)": lambda: _rensa(texts),
        "datasketch (likewise)": lambda: _datasketch(texts[:40]),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for way, work in ways.items():
            start = time.process_time()
            work()
            share = 20 if way.startswith("datasketch") else 1
            least[way] = min(least[way], (time.process_time() - start) * share)
    note = f"{name}, {len(texts)} documents, {tokens / len(texts):.0f} tokens each"
    rows = [
        Row(f"kernel: {way}", value * 500e6 / tokens, "µs / 500 tokens", note) for way, value in least.items()
    ]
    return [*rows, Row("kernel: numpy ÷ compiled", least["numpy"] / least["compiled"], "times", name)]


def _assert_tokens(made: Fingerprinter, texts: Sequence[str]) -> None:
    batch = made.canonicalizer.hash_batch(texts)
    words = [token_hash(token.text) for text in texts for token in made.canonicalizer.tokens(text)]
    assert batch.hashes.tolist() == words


def _shingles(text: str) -> list[str]:
    words = text.split()
    return [f"{one} {other}" for one, other in pairwise(words)]


def _rensa(texts: Sequence[str]) -> list[list[int]]:
    from rensa import RMinHash

    found = []
    for text in texts:
        sketch = RMinHash(num_perm=_VALUES, seed=42)
        sketch.update(_shingles(text))
        found.append(sketch.digest())
    return found


def _datasketch(texts: Sequence[str]) -> list[object]:
    from datasketch import MinHash

    found = []
    for text in texts:
        sketch = MinHash(num_perm=_VALUES)
        sketch.update_batch([shingle.encode() for shingle in _shingles(text)])
        found.append(sketch.digest())
    return found
