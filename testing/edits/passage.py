"""A text as words and what stands between them, so that an edit can touch words and leave the rest."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

HAN = "\u3400-\u9fff"
_WORD = re.compile(rf"([{HAN}]|[^\W_{HAN}]+(?:['’ʼ`][^\W_{HAN}]+)*)")


@dataclass(frozen=True, slots=True)
class EditedPassage:
    """``pieces``: words at odd places, what is between them at even ones."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "EditedPassage":
        """Split a text; Han characters are words of their own."""
        return cls(tuple(_WORD.split(text)))

    @property
    def words(self) -> tuple[str, ...]:
        """The words in order."""
        return self.pieces[1::2]

    def text(self, words: Sequence[str] | None = None) -> str:
        """Return the text, with other words in the places of its own."""
        pieces = list(self.pieces)
        if words is not None:
            pieces[1::2] = words
        return "".join(pieces)


def picked(eligible: Sequence[int], share: float, chance: random.Random) -> list[int]:
    """Return as many of some places as a share of them is, in order."""
    return sorted(chance.sample(eligible, round(share * len(eligible))))


def rewritten(
    passage: EditedPassage,
    share: float,
    chance: random.Random,
    change: Callable[[str], str],
) -> tuple[str, int]:
    """Change a share of the words that a change does something to; return the text and how many these are.

    Args:
        change: what becomes of a word; itself where it is not of the kind.
    """
    words = list(passage.words)
    changed = {place: new for place, word in enumerate(words) if (new := change(word)) != word}
    chosen = picked(list(changed), share, chance)
    for place in chosen:
        words[place] = changed[place]
    return passage.text(words), len(chosen)
