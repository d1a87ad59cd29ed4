"""Generated texts that mix what real texts mix, and what attackers add; seeded, so that they repeat."""

import random
from collections.abc import Iterator
from pathlib import Path

WORDS = (
    *Path(__file__).with_name("words.txt").read_text("utf-8").split(),
    *("сло\u00adво", "не\u200bвидимо", "e\u0308ж", "и\u0306од", "за\u0301мок", "ᄒ\u1161\u11ab"),
    *("\ufeffтекст", "\u202eкмсй\u202c", "\x00", "\ud83d", "\udc00", ""),
)
JOINTS = (
    " ",
    " ",
    " ",
    "\n",
    "",
    ", ",
    "\u00a0",
    "-",
    "'",
    "\u0301",
    "\u200b",
    "\r\n",
    "。",
    "-\n",
    '"',
    "+",
)


def texts(count: int, seed: int) -> Iterator[str]:
    """Yield texts of 0 to 24 words."""
    chance = random.Random(seed)
    for _ in range(count):
        yield "".join(
            chance.choice(WORDS) + chance.choice(JOINTS) if chance.random() < 0.97 else _any_character(chance)
            for _ in range(chance.randrange(25))
        )


def _any_character(chance: random.Random) -> str:
    return chr(chance.randrange(chance.choice((0x80, 0x800, 0x10000, 0x110000))))
