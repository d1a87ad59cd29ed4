"""Texts that leave signatures in doubt: one, copies of it with ever more edits, and ones in another order."""

from shinglefold.testing.edits import edited

_WORDS = [
    f"{root}{end}"
    for root in ("мост", "завод", "город", "дом", "театр", "парк")
    for end in ("", "ы", "ов", "ам", "ах")
]


def doubtful_texts() -> list[str]:
    """A text, copies with ever more words replaced, and ones with whole passages at another place."""
    text = " ".join(_WORDS[(7 + at * at + at * 4) % len(_WORDS)] + str(at) for at in range(150))
    copies = [edited(text, "words replaced", share / 100, "ru", seed=share).text for share in range(4, 16)]
    return [text, *copies, *(text[at:] + " " + text[:at] for at in range(100, 700, 100))]
