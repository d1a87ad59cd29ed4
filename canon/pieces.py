"""Long texts in pieces, pieces in blocks: memory stays flat whatever the documents are."""

import re
from collections.abc import Iterable, Iterator, Sequence

#: Characters of a piece; a longer document is cut here, at the next space or Chinese character.
PIECE = 1 << 17
#: How far the next good place is looked for before a piece is cut inside a word.
REACH = 1 << 13
#: Characters of a block: large enough that numpy's cost a call vanishes, small enough for the cache.
BLOCK = 1 << 16

_CUT = re.compile(r"[\s\u3000-\u303f\u3400-\u9fff]")


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a text with their offsets; one piece for every ordinary text."""
    start = 0
    while len(text) - start > PIECE + REACH:
        found = _CUT.search(text, start + PIECE, start + PIECE + REACH)
        end = found.start() if found else start + PIECE + REACH
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def blocks(texts: Sequence[str]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield blocks of pieces: the number of the document of each piece, and the pieces."""
    return _packed((number, piece) for number, text in enumerate(texts) for _, piece in pieces(text))


def _packed(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[list[int], list[str]]]:
    numbers: list[int] = []
    block: list[str] = []
    size = 0
    for number, piece in numbered:
        if block and size + len(piece) > BLOCK:
            yield numbers, block
            numbers, block, size = [], [], 0
        numbers.append(number)
        block.append(piece)
        size += len(piece) + 1
    if block:
        yield numbers, block
