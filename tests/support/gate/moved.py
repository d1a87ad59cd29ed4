"""Two texts that fingerprints leave in doubt and that have the same words."""

import random

_WORDS = [f"word{number}" for number in range(400)]


def moved_words(words: int = 150, swaps: int = 16) -> tuple[str, str]:
    """Return two texts of the same words, some of which stand in another order: few shingles are shared."""
    chance = random.Random("moved")
    one = [chance.choice(_WORDS) for _ in range(words)]
    chance = random.Random("swaps")
    other = list(one)
    for at in chance.sample(range(0, len(one) - 1, 2), swaps):
        other[at], other[at + 1] = other[at + 1], other[at]
    return " ".join(one), " ".join(other)


def replaced_words(words: int = 160, gone: int = 39, seed: int = 0) -> tuple[str, str]:
    """Return two texts of which a passage differs: fewer words are equal than fingerprints estimate."""
    chance = random.Random(f"replaced {seed}")
    one = [chance.choice(_WORDS) for _ in range(words)]
    other = [f"other{at}" if at < gone else word for at, word in enumerate(one)]
    return " ".join(one), " ".join(other)


def text_of(kind: object, edits: int = 0, words: int = 120) -> str:
    """Return the text of a class, with its first words replaced by others."""
    chance = random.Random(kind)  # type: ignore[arg-type]
    made = [f"w{chance.randrange(10**6)}" for _ in range(words)]
    return " ".join(f"edit{edits}x{at}" if at < edits else word for at, word in enumerate(made))
