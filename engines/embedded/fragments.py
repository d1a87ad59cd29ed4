"""Cut fragments out of a text around what was found in it."""

from collections.abc import Sequence
from typing import NamedTuple

Spans = Sequence[tuple[int, int]]
#: How far a fragment's edge is moved to avoid cutting a word.
_REACH = 20


class Fragment(NamedTuple):
    """A part of a text, and how many matches begin in it."""

    start: int
    end: int
    matches: int


def cut(text: str, spans: Spans, size: int) -> list[Fragment]:
    """Return fragments of about ``size`` characters that hold all spans, in order, without overlap.

    Args:
        spans: start and end of the matches, in order.
    """
    fragments: list[Fragment] = []
    number = 0
    while number < len(spans):
        first = number
        floor = fragments[-1].end if fragments else 0
        # Matches that fit go into one fragment; what room is left is shared before and after them.
        while number + 1 < len(spans) and spans[number + 1][1] - spans[first][0] <= size:
            number += 1
        room = max(size - (spans[number][1] - spans[first][0]), 0)
        start = max(spans[first][0] - room // 2, floor)
        end = min(max(start + size, spans[number][1]), len(text))
        start = max(min(start, end - size), floor)
        start, end = _left_edge(text, start, floor, spans[first][0]), _right_edge(text, end, spans[number][1])
        while number + 1 < len(spans) and spans[number + 1][0] < end:
            number += 1
            end = max(end, spans[number][1])
        fragments.append(Fragment(start, end, number - first + 1))
        number += 1
    return fragments


def wrap(text: str, start: int, end: int, spans: Spans, tags: tuple[str, str]) -> str:
    """Return a part of a text with the spans inside it between two tags."""
    parts = []
    at = start
    for low, high in spans:
        if low >= start and high <= end:
            parts += [text[at:low], tags[0], text[low:high], tags[1]]
            at = high
    return "".join([*parts, text[at:end]]).strip()


def _left_edge(text: str, start: int, floor: int, limit: int) -> int:
    """Return the nearest start of a word at or after ``start``, not beyond the first match."""
    if start == floor:
        return start
    for place in range(start, min(start + _REACH, limit) + 1):
        if text[place - 1].isspace():
            return place
    return start


def _right_edge(text: str, end: int, limit: int) -> int:
    """Return the nearest end of a word at or before ``end``, not before the last match's."""
    if end >= len(text) or text[end].isspace():
        return end
    for place in range(end, max(end - _REACH, limit) - 1, -1):
        if text[place - 1].isspace():
            return max(place - 1, limit)
    return end
