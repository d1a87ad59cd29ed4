"""What an index stores of the elements of a text: a sample that any longer passage in common must share."""

from base64 import urlsafe_b64encode

import numpy as np

from shinglefold.model.values import Uint64s
from shinglefold.passages.shingle_positions import WIDTH
from shinglefold.sketch.shingles import shingle_hashes

#: Of so many consecutive elements at least one is stored: texts with a passage of ``SURE`` words in
#: common share a stored element, and there are two stored for each 17 words.
WINDOW = 16
#: Words of an unchanged passage that is certain to be found.
SURE = WINDOW + WIDTH - 1
#: Characters of a hash that are stored, 36 bits: they find documents, whose texts then decide.
_CHARACTERS = 6
#: What stands for a text that is too short for an element, so that it can be told from one never looked at.
NONE = "-"


def stored_elements(tokens: Uint64s) -> list[str]:
    """Return the keywords that are stored of a text, in ascending order of their hashes; never none at all.

    Args:
        tokens: uint64 (T,), hashes of the canonical tokens.

    Source: Schleimer, Wilkerson, Aiken, Winnowing: Local Algorithms for Document Fingerprinting (2003). The
    least hash of each window is taken; equal elements count once.
    """
    return keywords(winnowed(shingle_hashes(tokens, WIDTH))) or [NONE]


def winnowed(hashes: Uint64s, window: int = WINDOW) -> Uint64s:
    """Return the least of each so many consecutive hashes, each once, ascending."""
    if len(hashes) <= window:
        return hashes[:0] if not len(hashes) else np.array([hashes.min()], np.uint64)
    views = np.lib.stride_tricks.sliding_window_view(hashes, window)
    return np.unique(views.min(axis=1))


def keywords(hashes: Uint64s) -> list[str]:
    """Return hashes as they are stored."""
    # The least of many hashes begin with zeros; multiplied they use all of the characters.
    raw = (hashes * np.uint64(0x9E3779B97F4A7C15)).astype(">u8").tobytes()
    each = (urlsafe_b64encode(raw[at : at + 6]).decode("ascii")[:_CHARACTERS] for at in range(0, len(raw), 8))
    return list(dict.fromkeys(each))
