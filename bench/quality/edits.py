"""How many pairs of a text and its edited copy fold, by kind of edit and intensity."""

import random
from collections.abc import Iterator, Sequence

from bench.quality.corpus import corpus, names
from bench.table import Row
from shinglefold.canon import strip_html
from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme
from shinglefold.testing.edits import edited, kinds_of

SHARES = (0.1, 0.3, 1.0)
#: What is promised: kind, share, and how many pairs are to fold at least.
PROMISED = {
    ("nouns inflected", 0.3): 0.97,
    ("function words changed", 0.3): 0.97,
    ("look-alikes", 0.1): 0.97,
    ("apostrophes", 1.0): 0.97,
    ("ё to е", 1.0): 0.97,
    ("zero-width", 1.0): 0.97,
    ("Traditional", 1.0): 0.99,
}
_TEXTS = 60
_WORDS = 60


def measure() -> list[Row]:
    """Return the share that folds of each kind, language and intensity, by text and by signature."""
    tool = Fingerprinter(make_scheme())
    return [row for language, texts in _texts().items() for row in _rows(tool, language, texts)]


def _texts() -> dict[str, list[str]]:
    """Return texts by language: of the corpora at hand, else of the example site."""
    found: dict[str, list[str]] = {language: [] for language in ("ru", "uk", "zh", "en")}
    for name in names():
        whole = corpus(name)
        for text, language in zip(whole.texts, whole.languages, strict=True):
            found.setdefault(language.split("-")[0], []).append(text)
    for page in articles():
        if not found[page["lang"]] or page["lang"] == "en":
            found[page["lang"]].append(strip_html(page["body"]) if page["format"] == "html" else page["body"])
    chance = random.Random(84)
    kept = {language: [t for t in texts if len(t) >= 6 * _WORDS] for language, texts in found.items()}
    return {
        language: chance.sample(texts, min(_TEXTS, len(texts)))
        for language, texts in kept.items()
        if language in ("ru", "uk", "zh", "en")
    }


def _rows(tool: Fingerprinter, language: str, texts: Sequence[str]) -> Iterator[Row]:
    by_signature = tool.scheme.with_options(verify="signature")
    for kind in kinds_of(language):
        for share in SHARES:
            made = [edited(text, kind, share, language) for text in texts]
            # A text the kind does nothing to says nothing of it.
            touched = [(text, one) for text, one in zip(texts, made, strict=True) if one.changed]
            if not touched:
                continue
            copies = [strip_html(one.text) if one.format == "html" else one.text for _, one in touched]
            count = len(touched)
            prints = tool.fingerprint_arrays([*(text for text, _ in touched), *copies])
            folds = [
                sum(b - a == count for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)) / count
                for found in (prints.pairs(tool.scheme), prints.pairs(by_signature))
            ]
            wanted = PROMISED.get((kind, share))
            goal = f"; wanted {wanted}" if wanted else ""
            note = f"by signature {folds[1]:.3f}, {count} texts{goal}"
            yield Row(f"{language}, {kind} {share:.0%}", folds[0], "fold", note)
