"""``highlight``: fragments of the source text with the matching words marked.

The tokens of a field are canonical (lemmas, folded letters). Their offsets point to the words of the source,
so a word is marked whatever its ending.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from shinglefold.engines.embedded.schema.requests import (
    bool_option,
    check_options,
    int_option,
    strings_option,
    unsupported_error,
)
from shinglefold.engines.embedded.search.queries import Mark
from shinglefold.errors import UnsupportedQuery
from shinglefold.model.values import Token
from shinglefold.options.validation import check_object

Spans = Sequence[tuple[int, int]]
#: The most characters by which a fragment's edge is moved in order not to cut a word.
_REACH = 20


class Fragment(NamedTuple):
    """A part of a text, and the number of matches that begin in it."""

    start: int
    end: int
    matches: int


def cut_fragments(text: str, spans: Spans, size: int) -> list[Fragment]:
    """Return fragments of about ``size`` characters that contain all spans, in order, without overlap.

    Args:
        spans: start and end of the matches, in order.
    """
    fragments: list[Fragment] = []
    number = 0
    while number < len(spans):
        first = number
        floor = fragments[-1].end if fragments else 0
        # Matches that fit go into one fragment; the remaining room is split before and after them.
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
    """Return a part of a text with tags around the spans inside it."""
    parts = []
    at = start
    for low, high in spans:
        if low >= start and high <= end:
            parts += [text[at:low], tags[0], text[low:high], tags[1]]
            at = high
    return "".join([*parts, text[at:end]]).strip()


def _left_edge(text: str, start: int, floor: int, limit: int) -> int:
    """Return the next start of a word at or after ``start``, at most the first match."""
    if start == floor:
        return start
    for place in range(start, min(start + _REACH, limit) + 1):
        if text[place - 1].isspace():
            return place
    return start


def _right_edge(text: str, end: int, limit: int) -> int:
    """Return the last end of a word at or before ``end``, at least that of the last match."""
    if end >= len(text) or text[end].isspace():
        return end
    for place in range(end, max(end - _REACH, limit) - 1, -1):
        if text[place - 1].isspace():
            return max(place - 1, limit)
    return end


_PER_FIELD = (
    "pre_tags", "post_tags", "fragment_size", "number_of_fragments", "no_match_size", "order",
    "require_field_match",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """The options of a highlighted field. Sizes are in characters of the source."""

    tags: tuple[str, str] = ("<em>", "</em>")
    fragment_size: int = 100
    fragments: int = 5
    no_match_size: int = 0
    by_score: bool = False
    own_terms_only: bool = True


@dataclass(frozen=True, slots=True)
class HighlightOptions:
    """The fields to highlight, by name or pattern with ``*``, and their options."""

    fields: tuple[tuple[str, Style], ...]


#: The expected form of the fields, for messages.
_FORM = 'the fields with their options, such as {"body": {}}'


def read_highlight(given: object) -> HighlightOptions:
    """Read the ``highlight`` of a search body.

    Raises:
        UnsupportedQuery: an option is not supported.
    """
    options = check_options("highlight", given, ("fields", *_PER_FIELD))
    fields = options.get("fields")
    if isinstance(fields, list):
        fields = {
            name: field
            for item in fields
            for name, field in check_object("highlight fields", item, _FORM, UnsupportedQuery).items()
        }
    if not fields:
        raise UnsupportedQuery('highlight: fields is missing; name some: {"fields": {"body": {}}}')
    check_object("highlight fields", fields, _FORM, UnsupportedQuery)
    general = {name: value for name, value in options.items() if name != "fields"}
    return HighlightOptions(
        tuple(
            (name, _style({**general, **check_options(f"highlight of {name}", field, _PER_FIELD)}))
            for name, field in fields.items()
        )
    )


def highlight(text: str, tokens: Sequence[Token], marks: Sequence[Mark], style: Style) -> list[str]:
    """Return the fragments of a text with matches, marked.

    Args:
        tokens: the tokens of the text, by offset.
    """
    spans = list(matches(tokens, marks))
    if not spans:
        return [text[: style.no_match_size]] if style.no_match_size else []
    if style.fragments == 0:
        return [wrap(text, 0, len(text), spans, style.tags)]
    pieces = cut_fragments(text, spans, style.fragment_size)
    best = sorted(pieces, key=lambda piece: (-piece.matches, piece.start))[: style.fragments]
    chosen = best if style.by_score else sorted(best, key=lambda piece: piece.start)
    return [wrap(text, piece.start, piece.end, spans, style.tags) for piece in chosen]


def matches(tokens: Sequence[Token], marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    """Yield start and end of every word to mark, in order, without duplicates."""
    singles = {mark.tokens[0] for mark in marks if len(mark.tokens) == 1}
    hits = {number for number, token in enumerate(tokens) if token.text in singles}
    for mark in {mark for mark in marks if len(mark.tokens) > 1}:
        hits.update(_phrase(tokens, mark))
    end = -1
    for number in sorted(hits):
        token = tokens[number]
        if token.start >= end:
            yield token.start, token.end
            end = token.end


def _phrase(tokens: Sequence[Token], mark: Mark) -> Iterator[int]:
    """Yield the positions of a phrase's tokens: in order, or with slop all within its length plus slop."""
    length = len(mark.tokens)
    wanted = set(mark.tokens)
    for start, token in enumerate(tokens):
        if token.text not in wanted:
            continue
        window = [other.text for other in tokens[start : start + length + mark.slop]]
        if not mark.slop and tuple(window) == mark.tokens:
            yield from range(start, start + length)
        elif mark.slop and wanted <= set(window):
            yield from (start + offset for offset, text in enumerate(window) if text in wanted)


def _style(given: Mapping[str, Any]) -> Style:
    order = given.get("order", "none")
    if order not in ("none", "score"):
        raise unsupported_error("order of highlight", str(order), ("none", "score"))
    return Style(
        tags=(_tag(given, "pre_tags", "<em>"), _tag(given, "post_tags", "</em>")),
        fragment_size=int_option("fragment_size", given.get("fragment_size", 100), 1),
        fragments=int_option("number_of_fragments", given.get("number_of_fragments", 5)),
        no_match_size=int_option("no_match_size", given.get("no_match_size", 0)),
        by_score=order == "score",
        own_terms_only=bool_option("require_field_match", given.get("require_field_match", True)),
    )


def _tag(given: Mapping[str, Any], name: str, otherwise: str) -> str:
    tags = strings_option(name, given.get(name, otherwise))
    return tags[0] if tags else ""
