"""The passages two stored documents have in common, with their places in the fields of both."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, shorten
from shinglefold.model.values import PlacedTokens, Token
from shinglefold.options.validation import check_strings, expected
from shinglefold.rerank.hits import stored_value
from shinglefold.rerank.request.arguments import read_source_filter

if TYPE_CHECKING:
    from shinglefold.passages.alignment import Passage, Span

Tokenize = Callable[[str], Sequence[Token] | PlacedTokens]
#: Tokens between two texts of a document; they match nothing on the other side.
_BORDERS = {"a": 1, "b": 2}
#: Characters of a document that are compared at most: an answer has many documents.
_MOST_CHARACTERS = 1_000_000
_MOST_FIELDS = 1_000


class PassageTexts(NamedTuple):
    """The fields whose texts are compared, and the tokenizer."""

    fields: tuple[str, ...]
    tokenize: Tokenize


def shown_fields(source: object, asked: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields whose texts are compared: passages show no more than hits do.

    Args:
        source: the request's own ``_source`` filter.
        asked: the fields that the request names for passages, all of which must be shown; () takes those
            of ``known`` that are shown.

    Raises:
        ConfigError: the filter leaves out a field that the request names, or all known ones.
    """
    wanted = read_source_filter(source)
    shown = tuple(field for field in asked or known if wanted.shows(field))
    if not shown or (asked and len(shown) < len(asked)):
        hidden = ", ".join(field for field in asked or known if field not in shown)
        raise ConfigError(
            f"passages would show what _source leaves out: {shorten(hidden)}. Let _source show it, name "
            'other fields ({"explain": {"fields": […]}}), or ask without passages ("explain": true)'
        )
    return shown


class _Part(NamedTuple):
    """The text of a field, and where it begins in the joined text; ``value``: its index in a list."""

    begin: int
    field: str
    value: int | None
    text: str


@dataclass(frozen=True, slots=True)
class StoredText:
    """The joined texts of some fields; passages stay within a field."""

    parts: tuple[_Part, ...]
    tokenize: Tokenize

    @property
    def borders(self) -> int:
        """How many tokens are separators."""
        from shinglefold.passages.chaining import GAP

        return (GAP + 1) * max(0, len(self.parts) - 1)

    def tokens(self, side: Literal["a", "b"]) -> PlacedTokens:
        """Return the tokens of all parts, with separators between them that match nothing.

        Args:
            side: a different one for each of the two texts compared.
        """
        from shinglefold.passages.chaining import GAP
        from shinglefold.passages.shingle_positions import in_columns

        found: list[PlacedTokens] = [in_columns(())]
        for at, part in enumerate(self.parts):
            if at:
                place = np.full(GAP + 1, part.begin, np.int64)
                found.append(PlacedTokens(np.full(GAP + 1, _BORDERS[side], np.uint64), place, place))
            own = in_columns(self.tokenize(part.text))
            found.append(PlacedTokens(own.hashes, own.starts + part.begin, own.ends + part.begin))
        return PlacedTokens(
            np.concatenate([one.hashes for one in found]),
            np.concatenate([one.starts for one in found]),
            np.concatenate([one.ends for one in found]),
        )


def matched_passages(
    shown: Mapping[str, Any], member: Mapping[str, Any], fields: Sequence[str], tokenize: Tokenize
) -> list[JSON]:
    """Return the passages that two sources have in common, in the order of the first.

    Args:
        shown: the ``_source`` of the representative; ``member``: that of a hit folded into it.
        fields: the fields to compare; dots lead into objects. A passage stays within one field on each side,
            and the two fields may differ.
        tokenize: a canonicalizer's ``placed``, or its ``tokens``.

    Returns:
        for each passage ``equal_tokens`` and, under ``shown`` and ``member``, ``field``, ``start`` and
        ``end`` in characters of its stored text, ``text``, and under ``differing`` the places and words the
        other side lacks. Where a field is a list, ``value`` tells which of its texts.
    """
    # Imported only by searches that show passages.
    from shinglefold.passages.alignment import find_passages

    for source in (shown, member):
        # A whole hit has none of the fields at its top.
        if not isinstance(source, Mapping) or isinstance(source.get("_source"), Mapping):
            raise expected("source", 'the _source of a hit, hit["_source"]', source)
    check_strings("fields", fields, _MOST_FIELDS)
    one, other = (stored_text(source, fields, tokenize, _MOST_CHARACTERS) for source in (shown, member))
    found = find_passages(one.tokens("a"), other.tokens("b"))
    return [passage_json(passage, shown=one, member=other) for passage in found]


def passage_json(passage: "Passage", **sides: StoredText) -> JSON:
    """Return a passage of two texts as JSON, with its places on both sides, by their names."""
    (a, one), (b, other) = sides.items()
    return {
        "equal_tokens": passage.equal,
        a: _side(one.parts, passage.a, passage.marks_a),
        b: _side(other.parts, passage.b, passage.marks_b),
    }


def stored_text(
    source: Mapping[str, Any], fields: Sequence[str], tokenize: Tokenize, most: float = inf
) -> StoredText:
    """Return the texts of the fields of a source; dots lead into objects.

    Args:
        most: characters to compare at most.
    """
    return StoredText(tuple(_parts(source, fields, most)), tokenize)


def _parts(source: Mapping[str, Any], fields: Sequence[str], most: float) -> Iterator[_Part]:
    begin = 0
    for field in fields:
        stored = stored_value(source, field)
        several = isinstance(stored, list)
        for number, text in enumerate(stored if several else [stored]):
            if isinstance(text, str) and begin < most:
                part = text if most == inf else text[: int(most) - begin]
                yield _Part(begin, field, number if several else None, part)
                begin += len(part) + 1


def _side(parts: Sequence[_Part], span: "Span", marks: Sequence["Span"]) -> JSON:
    part = parts[bisect_right(parts, span.start, key=lambda one: one.begin) - 1]
    which = {} if part.value is None else {"value": part.value}
    differing = [_place(part, mark) for mark in marks]
    return {"field": part.field, **which, **_place(part, span), "differing": differing}


def _place(part: _Part, span: "Span") -> JSON:
    start, end = span.start - part.begin, span.end - part.begin
    return {"start": start, "end": end, "text": part.text[start:end]}
