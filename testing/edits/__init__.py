"""Edits of texts, graded and reproducible, to measure which copies a detector of near-duplicates finds.

``edited`` returns a copy of a text that differs in one way, to a given degree, by a seed.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shinglefold.options.validation import check_choice, check_number, check_str
from shinglefold.testing.edits import spelling, wording
from shinglefold.testing.edits.spelling import Edit, EditedPassage

__all__ = ["KINDS", "EditKind", "Edited", "edited", "kinds_of"]

LANGUAGES = ("ru", "uk", "zh", "en")


@dataclass(frozen=True, slots=True)
class EditKind:
    """A kind of edit.

    Attributes:
        languages: the languages to which it applies.
        format: the format of the new text.
    """

    edit: Edit
    languages: tuple[str, ...] = LANGUAGES
    format: Literal["text", "html"] = "text"


@dataclass(frozen=True, slots=True)
class Edited:
    """An edited copy of a text.

    Attributes:
        changed: how many words (in Chinese: characters) were changed, added or deleted.
        words: how many words the original has.
    """

    text: str
    format: str
    changed: int
    words: int


KINDS: Mapping[str, EditKind] = {
    "nouns inflected": EditKind(wording.inflected, ("ru", "uk", "en")),
    "function words changed": EditKind(wording.function_words_changed),
    "words replaced": EditKind(wording.replaced),
    "words inserted": EditKind(wording.inserted),
    "words deleted": EditKind(wording.deleted),
    "words swapped": EditKind(wording.swapped),
    "ё to е": EditKind(spelling.yo, ("ru",)),
    "ґ to г": EditKind(spelling.ghe, ("uk",)),
    "apostrophes": EditKind(spelling.apostrophes, ("uk", "en")),
    "look-alikes": EditKind(spelling.look_alikes, ("ru", "uk", "en")),
    "zero-width": EditKind(spelling.invisible),
    "soft hyphens": EditKind(spelling.soft_hyphens),
    "Traditional": EditKind(spelling.traditional, ("zh",)),
    "full width": EditKind(spelling.full_width),
    "misread": EditKind(spelling.misread),
    "HTML noise": EditKind(wording.marked_up, format="html"),
    "boilerplate": EditKind(wording.framed),
    "truncated": EditKind(wording.truncated),
    "pages joined": EditKind(wording.joined),
}


def kinds_of(language: str) -> list[str]:
    """Return the names of the kinds of edit that apply to a language."""
    check_choice("language", language, LANGUAGES)
    return [name for name, kind in KINDS.items() if language in kind.languages]


def edited(text: str, kind: str, share: float, language: str, seed: int = 84) -> Edited:
    """Return a copy of a text, edited in one way.

    Args:
        kind: one of ``KINDS``.
        share: the share of applicable words to edit, 0 to 1; ``boilerplate`` and ``pages joined`` add this
            share of all words.
        language: ``ru``, ``uk``, ``zh`` or ``en``.
        seed: the same seed makes the same copy of the same text.

    Raises:
        ConfigError: an unknown kind or language, or the share is out of range.
    """
    check_str("text", text, empty=True)
    check_choice("kind of edit", kind, tuple(KINDS))
    check_choice("language", language, LANGUAGES)
    check_number("share", share, 0, 1)
    made = KINDS[kind]
    new, changed = made.edit(text, share, random.Random(f"{seed}:{kind}:{text}"), language)
    return Edited(new, made.format, changed, len(EditedPassage.of(text).words))
