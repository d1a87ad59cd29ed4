"""The kernel, text → fingerprint as JSON, on one core: by default and at 168 values, beside its peers.

It is measured on manuals, generated texts, made-up words by Zipf's law, and short documents.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from bench import corpora
from bench.clock import in_turns, processor_time
from bench.corpora import WORD, Vocabulary
from bench.table import Row
from shinglefold.canon import Canonicalizer
from shinglefold.canon.language_detection import token_hash
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme

_DOCUMENTS, _WORDS = 400, 500


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts in a language."""

    name: str
    language: str
    texts: tuple[str, ...]

    @property
    def words(self) -> Callable[[str], Sequence[str]]:
        """Return what splits a text into words, for those who split it themselves, as cheaply as can be."""
        return WORD.findall if self.language == "zh" else str.split


def samples() -> Iterator[Sample]:
    """Yield all samples at hand; ``absent`` names the others."""
    for language in ("ru", "uk", "en"):
        yield Sample(
            f"generated {language}, 500 words", language, corpora.generated(language, _DOCUMENTS, _WORDS)
        )
    for name, language in _LABELLED.items():
        if corpora.available(name):
            yield Sample(name, language, corpora.texts(name)[: 2 * _DOCUMENTS])
    yield Sample("100,000 made-up words by Zipf's law, 500 words", "en", _made_up())
    yield Sample("generated ru, 60 words", "ru", corpora.generated("ru", 5 * _DOCUMENTS, 60))
    yield Sample("generated ru, 20 words", "ru", corpora.generated("ru", 10 * _DOCUMENTS, 20))


def absent() -> list[str]:
    """Return the labelled corpora that are not at hand."""
    return [name for name in _LABELLED if not corpora.available(name)]


_LABELLED = {"libreoffice-ru": "ru", "gnome-uk": "uk", "libreoffice-zh-cn": "zh"}


def _made_up() -> tuple[str, ...]:
    vocabulary = Vocabulary.of(100_000)
    words = [word.decode() for word in vocabulary.words]
    drawn = (vocabulary.drawn(_WORDS, seed).tolist() for seed in range(_DOCUMENTS))
    return tuple(" ".join(words[number] for number in numbers) for numbers in drawn)


Words = Callable[[str], Sequence[str]]
Sign = Callable[[Sequence[str], Words], Sequence[Sequence[int]]]
VALUES = 168


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to sign texts.

    ``share``: of the texts it is timed on, as slow ones take too long. ``languages``: that it knows; empty
    means any. ``module``: what has to be installed.
    """

    name: str
    module: str
    sign: Sign
    share: float = 1.0
    languages: frozenset[str] = frozenset()


def peers(language: str) -> list[Peer]:
    """Return the peers at hand that know a language."""
    return [peer for peer in _ALL if _here(peer) and (not peer.languages or language in peer.languages)]


def missing() -> list[str]:
    """Return the names of peers that are not installed."""
    return [peer.name for peer in _ALL if not _here(peer)]


def assert_answers(peer: Peer, language: str, words: Words) -> None:
    """See that a peer tells a near copy from a stranger, so that what is timed is what is meant."""
    text, stranger = _EXAMPLES["zh" if language == "zh" else "any"]
    copy = text[:-6]
    own, near, far = (np.array(row) for row in peer.sign([text, copy, stranger], words))
    assert len(own) == VALUES
    assert (own == near).mean() > 0.6, peer.name
    assert (own == far).mean() < 0.2, peer.name


def _here(peer: Peer) -> bool:
    return all(find_spec(module) for module in peer.module.split())


def _shingles(text: str, words: Words) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(words(text))]


def _rensa(texts: Sequence[str], words: Words) -> list[list[int]]:
    from rensa import RMinHash

    found = []
    for text in texts:
        # Its batches of lists take longer here, as the strings of all texts leave the cache.
        sketch = RMinHash(num_perm=VALUES, seed=42)
        sketch.update(_shingles(text, words))
        found.append(sketch.digest())
    return found


def _datasketch(texts: Sequence[str], words: Words) -> list[Any]:
    from datasketch import MinHash

    sets = [[shingle.encode() for shingle in _shingles(text, words)] for text in texts]
    return [sketch.digest() for sketch in MinHash.bulk(sets, num_perm=VALUES)]


@cache
def _analyzer(language: str) -> Any:  # noqa: ANN401 - of an untyped library
    import pymorphy3

    return pymorphy3.MorphAnalyzer(lang=language)


def _naive(language: str) -> Sign:
    def sign(texts: Sequence[str], words: Words) -> list[Any]:
        """Look every word up and update with every shingle, as tutorials do."""
        from datasketch import MinHash

        found = []
        for text in texts:
            lemmas = [_analyzer(language).parse(word)[0].normal_form for word in words(text)]
            sketch = MinHash(num_perm=VALUES)
            for one, other in pairwise(lemmas):
                sketch.update(f"{one} {other}".encode())
            found.append(sketch.digest())
        return found

    return sign


_ALL = (
    Peer("rensa", "rensa", _rensa),
    Peer("datasketch", "datasketch", _datasketch, 0.1),
    Peer("pymorphy3 and datasketch, plainly", "datasketch pymorphy3", _naive("ru"), 0.02, frozenset({"ru"})),
    Peer("pymorphy3 and datasketch, plainly", "datasketch pymorphy3", _naive("uk"), 0.02, frozenset({"uk"})),
)
_EXAMPLES = {
    "any": (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen end",
        "red green blue white black brown pink grey violet orange yellow purple azure beige coral ivory",
    ),
    "zh": (
        "本章介绍如何在文档中插入表格图片以及页眉页脚并说明每个选项的含义和使用方法供读者参考",
        "天气预报明天多云转晴气温二十度左右适合外出散步请大家注意防晒多喝水早睡早起身体好",
    ),
}

ROUNDS = 7
#: Presets: the default, and the one whose signatures have as many values as those of the peers.
_PRESETS = {"default": "336 values", "once": "168 values"}


def measure() -> list[Row]:
    """Return µs of CPU for 500 tokens on one core, warm, of each way its best round; and the ratios."""
    rows = [row for sample in samples() for row in _rows(sample)]
    told = [f"peer not installed (pip install 'shinglefold[bench]'): {name}" for name in missing()]
    told += [f"corpus not at hand (SHINGLEFOLD_DATA): {name}" for name in absent()]
    return [*rows, *(Row(one, 0, "measured") for one in told)]


def _alone(preset: str) -> Fingerprinter:
    """Return a fingerprinter that shares no words, and no compiled code."""
    scheme = make_scheme(preset)
    return Fingerprinter(scheme, Canonicalizer(scheme.languages))


def _rows(sample: Sample) -> list[Row]:
    texts = sample.texts
    plain = {preset: _alone(preset) for preset in _PRESETS}
    compiled = {preset: _alone(preset) for preset in _PRESETS}
    cold = processor_time(lambda: plain["default"].fingerprint_json(texts))
    for preset in _PRESETS:
        assert compiled[preset].compile(), "the extra fast is not installed"
        assert compiled[preset].fingerprint_json(texts) == plain[preset].fingerprint_json(texts)
    _assert_tokens(plain["default"], texts[:20])
    ways: dict[str, Callable[[], object]] = {}
    for preset, values in _PRESETS.items():
        ways[f"numpy, {values}"] = lambda own=plain[preset]: own.fingerprint_json(texts)
        ways[f"compiled, {values}"] = lambda own=compiled[preset]: own.fingerprint_json(texts)
    beside = peers(sample.language)
    for peer in beside:
        assert_answers(peer, sample.language, sample.words)
        ways[peer.name] = lambda own=peer: own.sign(_share(own, texts), sample.words)
    least = in_turns(ways, ROUNDS)
    for peer in beside:
        own = _share(peer, texts)
        least[peer.name] *= sum(map(len, texts)) / sum(map(len, own))
    tokens = len(plain["default"].canonicalizer.hash_batch(texts).hashes)
    note = f"{sample.name}; {len(texts)} documents, {tokens / len(texts):.0f} tokens each"
    share = 500e6 / tokens
    rows = [Row("kernel, cold: numpy, 336 values", cold * share, "µs / 500 tokens", note)]
    rows += [Row(f"kernel: {way}", value * share, "µs / 500 tokens", note) for way, value in least.items()]
    return rows + [
        Row(f"{peer.name} ÷ {way}", least[peer.name] / least[way], "times", sample.name)
        for peer in beside
        for way in ways
        if way.startswith(("numpy", "compiled"))
    ]


def _share(peer: Peer, texts: Sequence[str]) -> Sequence[str]:
    return texts[: max(4, int(len(texts) * peer.share))]


def _assert_tokens(made: Fingerprinter, texts: Sequence[str]) -> None:
    batch = made.canonicalizer.hash_batch(texts)
    words = [token_hash(token.text) for text in texts for token in made.canonicalizer.tokens(text)]
    assert batch.hashes.tolist() == words
    assert made.fingerprint(texts) == [made.fingerprint([text])[0] for text in texts]
