"""Documents as pages show them: titles, addresses, and pieces of their texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.grouping.field_values import day_of, first_date, first_value, host_of, title_of
from shinglefold.grouping.report import ReportFields
from shinglefold.model.recipe import Recipe, language_options
from shinglefold.rerank.hits import stored_texts, stored_value

#: The marks of words that match the query: control characters, which no text worth showing has.
FOUND = ("\x02", "\x03")
_ADDRESSES = ("url", "link")
#: The most characters of a title, of the beginning of a text, of an equal stretch, and of a passage.
_TITLE, _BEGINNING, _STRETCH, _PASSAGE = 200, 160, 220, 700


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text, and whether it is marked."""

    text: str
    marked: bool


def document_json(hit: Mapping[str, Any], recipe: Recipe, name: str) -> dict[str, Any]:
    """Return the title and the address of a document; "" for what it lacks.

    Args:
        recipe: that of the index. The beginning of its first text stands in for a title, then the id.
        name: that of the index as it was opened; the index of the document is shown if it is another one.
    """
    source = hit.get("_source") or {}
    address = str(first_value(hit, _ADDRESSES) or "")
    names = ReportFields()
    title = shorten(title_of(hit, names.title).strip(), _TITLE)
    field, fixed = language_options(recipe.pipeline, recipe.field)
    language = fixed or stored_value(source, field)
    return {
        "id": str(hit["_id"]),
        "index": "" if hit["_index"] == name else str(hit["_index"]),
        "title": title or _beginning(hit, recipe.fields) or str(hit["_id"])[:_TITLE],
        # Others (javascript:) could run in the page.
        "url": address if address.startswith(("http://", "https://")) else "",
        "host": host_of(first_value(hit, names.hosts)),
        "date": day_of(first_date(hit, names.dates)[1]),
        "lang": language if isinstance(language, str) and language.isascii() and language.isalpha() else "",
    }


def _beginning(hit: Mapping[str, Any], fields: Sequence[str]) -> str:
    source = hit.get("_source") or {}
    texts = (text.strip() for field in fields for _, text in stored_texts(source, field))
    found = next(filter(None, texts), "") or "".join(piece.text for piece in snippet(hit, fields))
    return shorten(found, _BEGINNING)


def snippet(hit: Mapping[str, Any], fields: Sequence[str]) -> list[Piece]:
    """Return the best fragment of a hit, the words of the query marked; without one, a beginning."""
    source = hit.get("_source") or {}
    found = hit.get("highlight") or {}
    for field in fields:
        if field != "title" and found.get(field) and source.get("format") != "html":
            return list(_found_pieces(str(found[field][0])))
    texts = (text.strip() for field in fields if field != "title" for _, text in stored_texts(source, field))
    return [Piece(shorten(next(filter(None, texts), ""), _BEGINNING), False)]


def _found_pieces(fragment: str) -> Iterator[Piece]:
    opening, closing = FOUND
    first, *others = fragment.split(opening)
    yield Piece(first, False)
    for other in others:
        marked, _, rest = other.partition(closing)
        yield Piece(marked, True)
        yield Piece(rest, False)


def passage_pieces(side: Mapping[str, Any]) -> list[Piece]:
    """Return one side of a passage in pieces; marks those that the other side lacks, and cuts long ones."""
    text, begin, at = side["text"], side["start"], 0
    pieces: list[Piece] = []
    for mark in side["differing"]:
        start, end = mark["start"] - begin, mark["end"] - begin
        pieces += [Piece(without_middle(text[at:start]), False), Piece(shorten(text[start:end]), True)]
        at = end
    pieces.append(Piece(without_middle(text[at:]), False))
    return list(_until(pieces, _PASSAGE))


def _until(pieces: Sequence[Piece], most: int) -> Iterator[Piece]:
    """Yield pieces of up to ``most`` characters in all, then an ellipsis if there are more."""
    for piece in pieces:
        if not piece.text:
            continue
        if most <= 0:
            yield Piece("…", False)
            return
        yield piece
        most -= len(piece.text)


def without_middle(text: str) -> str:
    """Return a stretch of text without its middle, if it is long."""
    if len(text) <= _STRETCH:
        return text
    edge = _STRETCH // 2 - 10
    return f"{text[:edge].rsplit(' ', 1)[0]} … {text[-edge:].split(' ', 1)[-1]}"


def shorten(text: str, most: int = _STRETCH) -> str:
    """Return a text cut after a word where it is longer than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1].rsplit(' ', 1)[0]}…"
