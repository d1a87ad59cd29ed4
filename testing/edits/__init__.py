"""Graded edits of texts with exact truth, to see what folds on your own site, too.

``edited`` makes a copy of a text that differs from it in one way, to a degree, by a seed: what a detector of
near-duplicates says of the two can then be held against what was done.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from shinglefold.options.validation import check_choice, check_number, check_str
from shinglefold.testing.edits import spelling, wording
from shinglefold.testing.edits.spelling import EditedPassage

__all__ = ["KINDS", "EditKind", "Edited", "edited", "kinds_of"]

_Edit = Callable[[str, float, random.Random, str], tuple[str, int]]
LANGUAGES = ("ru", "uk", "zh", "en")


@dataclass(frozen=True, slots=True)
class EditKind:
    """A kind of edit.

    ``edit``: from a text, a share, a source of chance and a language to the new text and the words touched.
    ``languages``: those it does anything in. ``format``: of the new text.
    """

    edit: _Edit
    languages: tuple[str, ...] = LANGUAGES
    format: Literal["text", "html"] = "text"


@dataclass(frozen=True, slots=True)
class Edited:
    """A copy of a text.

    ``changed``: words touched, added or left out (characters, in Chinese); ``words``: those of the original.
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
    """Return the names of the kinds that do anything in a language."""
    check_choice("language", language, LANGUAGES)
    return [name for name, kind in KINDS.items() if language in kind.languages]


def edited(text: str, kind: str, share: float, language: str, seed: int = 84) -> Edited:
    """Return a copy of a text, edited in one way.

    Args:
        kind: one of ``KINDS``.
        share: how much, 0 to 1, of the words the kind can do something to; for ``boilerplate`` and ``pages
            joined`` of all words, as many being added.
        language: ``ru``, ``uk``, ``zh`` or ``en``.
        seed: the same seed makes the same copy of the same text.

    Raises:
        ConfigError: no such kind or language, or the share is none.
    """
    check_str("text", text, empty=True)
    check_choice("kind of edit", kind, tuple(KINDS))
    check_choice("language", language, LANGUAGES)
    check_number("share", share, 0, 1)
    made = KINDS[kind]
    new, changed = made.edit(text, share, random.Random(f"{seed}:{kind}:{text}"), language)
    return Edited(new, made.format, changed, len(EditedPassage.of(text).words))
