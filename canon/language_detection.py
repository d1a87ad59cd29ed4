"""The language of each word, by its script, distinctive letters and dictionaries; and its canonical form.

Distinctive letters are counted by words of a document. If it has none, dictionaries decide. Only if a
document shows two languages of one script, its paragraphs are decided one by one. A word that only another
language of its script can have is of that language. What a document declares decides only among languages
that neither letters nor dictionaries tell apart, so equal texts have equal tokens.
"""

import logging
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.canon.lexicon import Lexicon
from shinglefold.canon.segmentation import Segments, Tables
from shinglefold.canon.unicode_tables import (
    CODE_POINTS,
    COMMON,
    OTHER,
    SCRIPTED,
    SELF_FOLDED,
    SIGNS,
    UNIT,
    WORD,
    Characters,
    accented_twins,
    characters,
    has_script,
    homoglyph_map,
    merged_letters,
    repair,
)
from shinglefold.contracts.language import Language
from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s
from shinglefold.options.validation import expected

#: A language is present if one of this many words of its script has a distinctive letter. In Russian one word
#: of eight has one, in Ukrainian two of five; a borrowed name must not decide a whole page.
RARITY = 50
#: The most words whose languages are kept.
_KNOWN = 1 << 18

#: Scripts with homoglyphs. They have a bit even if no language claims them, so that mixed words are found.
CONFUSABLE = ("Cyrl", "Latn", "Grek")
#: The bits of a word's traits, from the lowest: its scripts; the ``CONFUSABLE`` scripts of which it has a
#: letter without homoglyphs; the languages whose distinctive letters it has.
SCRIPT_BITS = 13
OWN = SCRIPT_BITS
MARKS = OWN + len(CONFUSABLE)
_SCRIPT_MASK = (1 << SCRIPT_BITS) - 1

#: The distinctive letters of a language, its scripts and its unit.
_LanguageFacts = tuple[str, frozenset[str], str]


@dataclass(frozen=True, slots=True)
class LanguageRouter:
    """The languages by script.

    Attributes:
        groups: for each script bit the indices of its languages, by precedence.
        rest: the index of the language that takes all other words.
        rivals: for each language the others of its scripts, by precedence.
        inflected: for each language whether its dictionary knows inflected words.
        lexical: for each script bit whether dictionaries tell its languages apart.
        group_of: uint8, from script bits to the number of a bit; the last number for words of no script.
        tables: the kinds and traits of code points for these languages.
        known: from the keys of words to the languages whose dictionaries have them, as bits.
    """

    languages: tuple[Language, ...]
    groups: tuple[tuple[int, ...], ...]
    rest: int
    rivals: tuple[tuple[int, ...], ...]
    inflected: tuple[bool, ...]
    lexical: tuple[bool, ...]
    group_of: NDArray[np.uint8]
    tables: Tables = field(repr=False)
    known: Lexicon = field(default_factory=lambda: Lexicon(_KNOWN), repr=False)

    def indices(self, codes: Sequence[str | None]) -> Int64s:
        """Return the language index of each declared code.

        It is -1 for None, for unknown codes, and for languages that their letters show.
        """
        known = {language.code: index for index, language in enumerate(self.languages) if not language.marks}
        for kind in set(map(type, codes)) - {str, type(None)}:
            raise expected("language", "a code, or None", next(one for one in codes if type(one) is kind))
        return np.array([known.get(code or "", -1) for code in codes], np.int64)

    def mixed_mask(self, traits: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which tokens have letters of more than one script."""
        bits = traits & np.uint32(_SCRIPT_MASK)
        return (bits & (bits - np.uint32(1))) > 0

    def joins(self, before: str, after: str) -> bool:
        """Return whether the parts of a word around a hyphen at a line end are one word without it.

        They are, unless a dictionary has the word with the hyphen (из-за), or both parts and not the whole.
        """
        whole, hyphened, first, second = map(
            self.language_bits, (before + after, f"{before}-{after}", before, after)
        )
        return not hyphened and (whole or not first & second) > 0

    def language_bits(self, word: str) -> int:
        """Return the languages whose dictionary has a folded word, as bits."""
        plugins = enumerate(self.languages)
        return sum(1 << index for index, plugin in plugins if plugin.lexical and plugin.knows(word))

    def has_letters(self, traits: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which tokens have a letter at all."""
        return (traits & np.uint32(_SCRIPT_MASK)) > 0


def make_language_router(languages: Sequence[Language]) -> LanguageRouter:
    """Return the router of the given languages.

    Raises:
        ConfigError: no language takes the words of other scripts, or there are more than 12 scripts or 16
            languages.
    """
    rest = next((i for i, language in enumerate(languages) if COMMON in language.scripts), None)
    if rest is None:
        raise ConfigError("no language takes the words of other scripts; add the language 'any'")
    claimed = {script for language in languages for script in language.scripts} - {COMMON}
    scripts = sorted(
        {*claimed, *CONFUSABLE},
        key=lambda s: (
            CONFUSABLE.index(s) if s in CONFUSABLE else len(CONFUSABLE),
            s,
        ),
    )
    if len(scripts) >= SCRIPT_BITS or len(languages) > 16:
        raise ConfigError("more than 12 scripts or 16 languages at once; name fewer in languages")
    groups = tuple(_group(languages, script) or (rest,) for script in scripts)
    inflected = tuple(language.lexical and language.mode != "surface" for language in languages)
    facts = tuple((language.marks, language.scripts, language.unit) for language in languages)
    return LanguageRouter(
        languages=tuple(languages),
        groups=groups,
        rest=rest,
        rivals=tuple(_rivals(groups, index) for index in range(len(languages))),
        inflected=inflected,
        lexical=tuple(len(group) > 1 and any(inflected[one] for one in group) for group in groups),
        group_of=_group_table(len(scripts)),
        tables=_tables(tuple(scripts), facts),
    )


def language_of_tokens(router: LanguageRouter, segments: Segments, declared: Int64s) -> NDArray[np.uint8]:
    """Return the language index of every token, uint8 (T,).

    Args:
        declared: int64 (P,), the index of each text's declared language, or -1.
    """
    text_of, width = segments.text_of, len(router.groups) + 1
    group = router.group_of[segments.traits & np.uint32(_SCRIPT_MASK)]
    mixed_words = np.flatnonzero(router.mixed_mask(segments.traits))
    if len(mixed_words):
        group[mixed_words] = _script_of_mixed(segments, group, text_of, mixed_words)
    places = text_of * width + group
    totals = np.bincount(places, minlength=len(declared) * width).reshape(-1, width)
    winners = np.full(totals.shape, router.rest, np.uint8)
    mixtures: list[tuple[int, int]] = []
    for number, members in enumerate(router.groups):
        winners[:, number] = members[0]
        if len(members) == 1 or not totals[:, number].any():
            continue
        inside = np.flatnonzero(group == number)
        owners, total = text_of[inside], totals[:, number]
        winners[:, number], shown = _by_letters(segments.traits[inside], owners, total, members)
        mixtures += [(text, number) for text in np.flatnonzero(shown > 1).tolist()]
        for member in members:
            winners[(shown == 0) & (declared == member), number] = member
        if router.lexical[number]:
            undecided = (shown == 0) & ~(declared[:, None] == members).any(axis=1)
            tokens = inside[undecided[owners]] if undecided.any() else inside[:0]
            if len(tokens):
                likeliest = _by_dictionaries(router, segments, tokens, text_of[tokens], members)
                winners[undecided, number] = likeliest[undecided]
    chosen: NDArray[np.uint8] = winners.ravel()[places]
    for text, number in mixtures:
        own = np.flatnonzero((text_of == text) & (group == number))
        first = int(winners[text, number])
        others = [member for member in router.groups[number] if member != first]
        chosen[own] = _by_paragraph(segments, text, own, [first, *others])
    return chosen


def _script_of_mixed(
    segments: Segments, group: NDArray[np.uint8], text_of: Int64s, mixed: Int64s
) -> NDArray[np.uint8]:
    """Return the group of each word of mixed scripts.

    It is the script of a letter without homoglyphs, or else the commonest of the word's scripts in its text.
    If every word of a Ukrainian page was tampered with, only names in Latin letters may be whole, and the
    commonest script would be wrong.
    """
    present, own = (_confusable_bits(segments.traits[mixed], lowest) for lowest in (0, OWN))
    clear = own.sum(axis=0) == 1
    known = group.copy()
    known[mixed] = np.where(clear, own.argmax(axis=0), SCRIPT_BITS)
    width = SCRIPT_BITS + 1
    counts = np.bincount(text_of * width + known, minlength=len(segments.bounds) * width)
    common = counts.reshape(-1, width)[text_of[mixed], : len(CONFUSABLE)].T
    best = np.where(np.where(clear, own, present), common + 1, 0)
    return np.where(best.any(axis=0), best.argmax(axis=0), group[mixed]).astype(np.uint8)


def _confusable_bits(traits: NDArray[np.uint32], lowest: int) -> NDArray[np.bool_]:
    """Return which confusable scripts the traits have, bool (3, T)."""
    bits = np.arange(lowest, lowest + len(CONFUSABLE), dtype=np.uint32)[:, None]
    return (traits >> bits) & np.uint32(1) > 0


def _by_letters(
    traits: NDArray[np.uint32], owners: Int64s, total: Int64s, members: tuple[int, ...]
) -> tuple[NDArray[np.uint8], Int64s]:
    """Return for each text the language its letters indicate, and how many they indicate.

    Args:
        traits: uint32 (N,), of the words of one script.
        owners: int64 (N,), the text of each.
        total: int64 (P,), how many of them each text has.
    """
    shown = np.stack([np.bincount(owners[_has(traits, one)], minlength=len(total)) for one in members])
    enough = (shown > 0) & (shown * RARITY >= total)
    best = np.where(enough, shown, 0).argmax(axis=0)
    return np.array(members, np.uint8)[best], enough.sum(axis=0)


def _by_dictionaries(
    router: LanguageRouter, segments: Segments, tokens: Int64s, owners: Int64s, members: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Return for each text the language whose dictionary has most of the given words; at a tie the first.

    Args:
        tokens: int64 (N,), the words.
        owners: int64 (N,), the text of each.
    """
    keys = np.maximum(segments.keys[tokens], np.uint64(1))
    found = router.known.find(keys)
    missing = np.flatnonzero(~found.known)
    if len(missing):
        new, first, inverse = np.unique(keys[missing], return_index=True, return_inverse=True)
        values = np.array(
            [router.language_bits(word) for word in segments.words_at(tokens[missing[first]])], np.uint64
        )
        router.known.learn(new, values, np.zeros(len(new), np.uint8))
        found.values[missing] = values[inverse]
    flags = (found.values >> np.array(members, np.uint64)[:, None]) & np.uint64(1) > 0
    counts = np.stack([np.bincount(owners[own], minlength=len(segments.bounds) - 1) for own in flags])
    likeliest: NDArray[np.uint8] = np.array(members, np.uint8)[counts.argmax(axis=0)]
    return likeliest


def _by_paragraph(segments: Segments, text: int, own: Int64s, members: Sequence[int]) -> NDArray[np.uint8]:
    """Return the languages of the given words of a text, decided paragraph by paragraph.

    Args:
        own: positions of the words among the tokens.
        members: the candidate languages; the first takes paragraphs without distinctive letters.
    """
    clean = segments.clean
    region = clean.codes[clean.origins[text] : segments.ends[own[-1]]]
    line_ends = np.flatnonzero(region == ord("\n")) + clean.origins[text]
    paragraph = np.searchsorted(line_ends, segments.starts[own])
    shown = np.stack([np.bincount(paragraph, _has(segments.traits[own], member)) for member in members])
    best: NDArray[np.uint8] = np.array(members, np.uint8)[shown.argmax(axis=0)][paragraph]
    return best


def _has(traits: NDArray[np.uint32], member: int) -> NDArray[np.bool_]:
    return traits & np.uint32(1 << (MARKS + member)) > 0


def _group(languages: Sequence[Language], script: str) -> tuple[int, ...]:
    members = [i for i, language in enumerate(languages) if script in language.scripts]
    return tuple(sorted(members, key=lambda i: (languages[i].precedence, languages[i].code)))


def _rivals(groups: Sequence[Sequence[int]], language: int) -> tuple[int, ...]:
    others = (one for group in groups if language in group for one in group if one != language)
    return tuple(dict.fromkeys(others))


def _group_table(count: int) -> NDArray[np.uint8]:
    """Return a table from script bits to the number of the lowest bit; ``count`` for all others."""
    table = np.full(1 << SCRIPT_BITS, count, np.uint8)
    for number in reversed(range(count)):
        table[np.arange(len(table)) & (1 << number) > 0] = number
    return table


# Canonicalizers share their tables, of 6 MB each: those for fingerprints, for searches, for one language.
@lru_cache(maxsize=8)
def _tables(scripts: tuple[str, ...], languages: tuple[_LanguageFacts, ...]) -> Tables:
    """Return the kinds and traits of code points for these languages, read-only. Cost: 10 ms."""
    facts = characters()
    traits = _script_traits(facts, scripts) | _own_traits(facts)
    traits |= _mark_traits(facts, [marks for marks, _, _ in languages])
    kinds = _kinds(facts, [(claimed, unit) for _, claimed, unit in languages])
    kinds.flags.writeable = traits.flags.writeable = False
    return Tables(kinds, traits)


def _script_traits(facts: Characters, scripts: Sequence[str]) -> NDArray[np.uint32]:
    bits = np.zeros(256, np.uint32)
    for index, script in enumerate(facts.scripts):
        if script in scripts:
            bits[index] = 1 << scripts.index(script)
        elif script != COMMON:
            bits[index] = 1 << len(scripts)
    return _by_script(facts, bits)


def _by_script(facts: Characters, bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the bits of each code point, by the number of its script."""
    traits = np.full(CODE_POINTS, bits[0])
    traits[:SCRIPTED] = bits[facts.script[:SCRIPTED]]
    return traits


def _own_traits(facts: Characters) -> NDArray[np.uint32]:
    """Return the bits of letters that have no homoglyph."""
    # An accented letter of another script is not taken for a Latin one as easily: ё and ї show Cyrillic.
    alike = [
        ord(letter)
        for table in homoglyph_map().values()
        for letter in table
        if facts.script_of(letter) == "Latn" or not unicodedata.decomposition(letter)
    ]
    bits = np.zeros(256, np.uint32)
    for number, script in enumerate(CONFUSABLE):
        bits[facts.scripts.index(script)] = 1 << (OWN + number)
    others = np.full(CODE_POINTS, ~np.uint32(0))
    others[alike] = 0
    return _by_script(facts, bits) & _by_fold(facts, others)


def _by_fold(facts: Characters, table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the bits of each code point, by its fold, in place."""
    table[:SELF_FOLDED] = table[facts.fold[:SELF_FOLDED]]
    return table


def _mark_traits(facts: Characters, marks: Sequence[str]) -> NDArray[np.uint32]:
    folds = np.zeros(CODE_POINTS, np.uint32)
    for number, letters in enumerate(marks):
        folds[facts.fold[list(map(ord, letters))]] |= np.uint32(1 << (MARKS + number))
    return _by_fold(facts, folds)


def _kinds(facts: Characters, units: Sequence[tuple[frozenset[str], str]]) -> NDArray[np.uint8]:
    """Return the kinds of code points; each script gets the unit of its language."""
    kind = facts.kind.copy()
    for claimed, unit in units:
        scripts = [i for i, script in enumerate(facts.scripts) if script in claimed - {COMMON, OTHER}]
        inside = has_script(facts.script, scripts) & (kind & (WORD | UNIT) > 0)
        kind[inside] = (kind[inside] & ~np.uint8(WORD | UNIT)) | (WORD if unit == "word" else UNIT)
    return kind


_log = logging.getLogger("shinglefold.canon")


class WordForm(NamedTuple):
    """The canonical form of a word (None: dropped), the index of its language, and the repaired letters."""

    canonical: str | None
    language: int
    repaired: int


def token_hash(canonical: str) -> int:
    """Return the 64-bit hash of a canonical token; never 0, which stands for a dropped word."""
    return xxhash.xxh3_64_intdigest(canonical.encode("utf-8", "surrogatepass")) or 1


def canonical_form(router: LanguageRouter, word: str, language: int, *, mixed: bool) -> WordForm:
    """Return the canonical form of a folded word.

    Args:
        language: the index of the word's language, by its script.
        mixed: whether the word has letters of several scripts. Then homoglyphs are folded to one script, if
            possible that of ``language``; a word still mixed goes to the language that takes the rest.
    """
    repaired = 0
    if mixed:
        word, repaired, script = repair(word, router.languages[language].scripts)
        if script not in router.languages[language].scripts:
            language = _language_of(router, script)
    elif accented_twins().keys() >= set(map(ord, word)):
        # Її in Latin letters: no other word is all ï, so the text around it does not matter.
        word, repaired = word.translate(accented_twins()), len(word)
        language = _language_of(router, "Cyrl")
    language = _language_of_word(router, word, language)
    plugin = router.languages[language]
    word = word.translate(merged_letters()).translate(plugin.fold)
    if not word or (plugin.unit == "word" and len(word) < plugin.options.min_length):
        return WordForm(None, language, repaired)
    if word[-1] in SIGNS:
        return WordForm(word, language, repaired)
    try:
        return WordForm(plugin.canonical(word) or None, language, repaired)
    except Exception:
        # If a plugin fails on one word, the document is not lost.
        _log.exception("the language %r failed on %r; the word is kept as it is", plugin.code, word)
        return WordForm(word, language, repaired)


def _language_of_word(router: LanguageRouter, word: str, language: int) -> int:
    """Return the language of a word: that of the text, unless only another one can have the word."""
    if not (rivals := router.rivals[language]):
        return language
    marked = [one for one in (language, *rivals) if not set(router.languages[one].marks).isdisjoint(word)]
    if len(marked) == 1:
        return marked[0]
    if not router.inflected[language] or router.languages[language].knows(word):
        return language
    return next((one for one in rivals if router.languages[one].knows(word)), language)


def hash_forms(forms: Iterable[WordForm]) -> tuple[list[int], list[int]]:
    """Return the hashes (0: dropped) and the repairs of the given forms."""
    pairs = [(token_hash(f.canonical) if f.canonical else 0, min(f.repaired, 255)) for f in forms]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _language_of(router: LanguageRouter, script: str) -> int:
    own = [i for i, language in enumerate(router.languages) if script in language.scripts]
    return min(own, key=lambda i: (router.languages[i].precedence, i), default=router.rest)
