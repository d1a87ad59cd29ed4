"""Raw text → keywords, stage by stage, beside the same method written plainly in Python."""

from collections.abc import Callable, Sequence

import numpy as np
import xxhash

from bench import corpora
from bench.clock import best, once, peak_memory
from bench.table import Row
from shinglefold.canon import Canonicalizer, strip_html, token_hash
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme
from shinglefold.sketch import Sketcher

DOCUMENTS, WORDS = 1_000, 500


def measure() -> list[Row]:
    """Return microseconds a document of 500 words for each stage, warm, on one core."""
    rows = _text_to_keywords("generated Russian", corpora.russian(DOCUMENTS, WORDS))
    rows += _plain_python(corpora.russian(DOCUMENTS, WORDS))
    for name in filter(corpora.available, corpora.LABELLED):
        rows += _text_to_keywords(name, corpora.texts(name))
    if corpora.available("libreoffice-ru"):
        rows += _markup()
    return [*rows, Row("peak memory of the whole run", peak_memory(), "MB", "texts and answers included")]


def _text_to_keywords(name: str, texts: Sequence[str]) -> list[Row]:
    scheme = make_scheme()
    fingerprinter = Fingerprinter(scheme)
    canonicalizer, sketcher = fingerprinter.canonicalizer, Sketcher(scheme.sketch)
    cold, batch = once(lambda: canonicalizer.hash_batch(texts))
    _assert_answers(fingerprinter, texts)
    widths = (
        scheme.sketch.char_width
        if canonicalizer.unit(batch.languages[0]) == "char"
        else scheme.sketch.word_width
    )
    sketches = sketcher.sketch(batch.hashes, batch.offsets, widths)
    work: dict[str, Callable[[], object]] = {
        "canon: text → token hashes": lambda: canonicalizer.hash_batch(texts),
        "sketch: token hashes → min-hashes": lambda: sketcher.sketch(batch.hashes, batch.offsets, widths),
        "sketch: min-hashes → keywords": lambda: sketcher.keywords(sketches),
        "sketch: min-hashes → signatures": lambda: sketcher.signatures(sketches),
        "sketch: token hashes → digests": lambda: sketcher.digests(batch.hashes, batch.offsets),
        "raw text → stored fingerprint": lambda: fingerprinter.fingerprint(texts),
    }
    share = 1e6 * WORDS / len(batch.hashes)
    note = f"{name}, {len(texts):,} documents, {len(batch.hashes):,} tokens"
    cold_row = Row(
        "canon, cold lexicon", cold * share, "µs / 500 words", f"{note}, {len(canonicalizer.lexicon):,} forms"
    )
    return [cold_row, *(Row(stage, best(run) * share, "µs / 500 words", note) for stage, run in work.items())]


def _assert_answers(fingerprinter: Fingerprinter, texts: Sequence[str]) -> None:
    """Both faces give the same tokens, and a document alone has the fingerprint it has among others."""
    sample = list(texts[:: max(1, len(texts) // 50)])
    batch = fingerprinter.canonicalizer.hash_batch(sample)
    for number, text in enumerate(sample):
        own = batch.hashes[batch.offsets[number] : batch.offsets[number + 1]].tolist()
        assert own == [token_hash(token.text) for token in fingerprinter.canonicalizer.tokens(text)]
    assert fingerprinter.fingerprint(sample) == [fingerprinter.fingerprint([text])[0] for text in sample]


def _plain_python(texts: Sequence[str]) -> list[Row]:
    """Time the textbook way: a set of shingle strings a document, a hash function a value."""
    scheme = make_scheme()
    canonicalizer = Canonicalizer.of(scheme)
    sample = texts[:20]
    words = [[token.text for token in canonicalizer.tokens(text)] for text in sample]

    def textbook() -> list[list[int]]:
        minima = []
        for tokens in words:
            shingles = {" ".join(tokens[at : at + 2]) for at in range(len(tokens) - 1)}
            hashes = [xxhash.xxh3_64_intdigest(shingle.encode()) for shingle in shingles]
            minima.append([min((h * a + b) & 0xFFFFFFFF for h in hashes) for a, b in _functions()])
        return minima

    assert all(len(values) == scheme.sketch.values for values in textbook())
    seconds = best(textbook, runs=2) / len(sample)
    fast = Fingerprinter(scheme)
    fast.fingerprint(texts)
    ours = best(lambda: fast.fingerprint(texts)) / len(texts)
    return [
        Row(
            "textbook Python: tokens → min-hashes", seconds * 1e6, "µs / 500 words", "20 generated documents"
        ),
        Row("textbook's sketch alone ÷ our whole way", seconds / ours, "times", "in one run"),
    ]


def _functions() -> list[tuple[int, int]]:
    chance = np.random.default_rng(1)
    numbers = chance.integers(1, 2**32, (make_scheme().sketch.values, 2), dtype=np.uint64)
    return [(int(a) | 1, int(b)) for a, b in numbers]


def _markup() -> list[Row]:
    pages = [page["body"] for page in corpora.pages("libreoffice-ru")[:1_000]]
    kilobytes = sum(len(page.encode()) for page in pages) / 1024
    assert all("<" not in strip_html(page)[:20] for page in pages)
    seconds = best(lambda: [strip_html(page) for page in pages], runs=3)
    return [
        Row(
            "canon: HTML → text",
            seconds / len(pages) * 1e6,
            "µs / page",
            f"{kilobytes / len(pages):.1f} kB a page",
        ),
        Row("canon: HTML → text", kilobytes / 1024 / seconds, "MB / s", "libreoffice-ru, 1,000 pages"),
    ]
