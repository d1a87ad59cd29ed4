"""One word → its canonical form: the only place where a language plugin is called."""

import logging
from collections.abc import Iterable
from typing import NamedTuple

import xxhash

from shinglefold.canon.words.homoglyphs import repair
from shinglefold.canon.words.language_detection import Router

_log = logging.getLogger("shinglefold.canon")


class WordForm(NamedTuple):
    """The canonical form of a word (None: dropped), the index of its language, the letters repaired."""

    canonical: str | None
    language: int
    repaired: int


def token_hash(canonical: str) -> int:
    """Return the 64-bit hash of a canonical token; never 0, which stands for a dropped word."""
    return xxhash.xxh3_64_intdigest(canonical.encode("utf-8", "surrogatepass")) or 1


def canonical_form(router: Router, word: str, language: int, *, mixed: bool) -> WordForm:
    """Return the canonical form of a folded word.

    Args:
        language: the index of the language its text is in, for the script the word is routed by.
        mixed: whether it has letters of several scripts. Then look-alikes are folded to one script, that of
            ``language`` if that can be, or the word goes to the language that takes the rest.
    """
    repaired = 0
    if mixed:
        word, repaired, script = repair(word, router.languages[language].scripts)
        if script not in router.languages[language].scripts:
            language = _language_of(router, script)
    plugin = router.languages[language]
    word = word.translate(plugin.fold)
    if not word or (plugin.unit == "word" and len(word) < plugin.options.min_length):
        return WordForm(None, language, repaired)
    try:
        return WordForm(plugin.canonical(word) or None, language, repaired)
    except Exception:
        # A document must not be lost to one word that a plugin stumbles over.
        _log.exception("the language %r failed on %r; the word is kept as it is", plugin.code, word)
        return WordForm(word, language, repaired)


def hashed(forms: Iterable[WordForm]) -> tuple[list[int], list[int]]:
    """Return the hashes (0: dropped) and the repairs of some forms."""
    pairs = [(token_hash(f.canonical) if f.canonical else 0, min(f.repaired, 255)) for f in forms]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _language_of(router: Router, script: str) -> int:
    own = [i for i, language in enumerate(router.languages) if script in language.scripts]
    return min(own, key=lambda i: (router.languages[i].precedence, i), default=router.rest)
