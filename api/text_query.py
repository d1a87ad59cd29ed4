"""The search request for words that somebody typed: which fields it searches, and what it highlights."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shinglefold.model.recipe import Recipe

#: The highlighted fragment of a long field.
_FRAGMENT = {"number_of_fragments": 1, "fragment_size": 120, "no_match_size": 120}


def default_fields(recipe: "Recipe") -> tuple[str, ...]:
    """Return the fields to search by default: those with fingerprints, the title with double weight."""
    return tuple(f"{name}^2" if name == "title" else name for name in recipe.fields)


def search_body(
    query: str,
    fields: tuple[str, ...],
    dedup: str,
    *,
    size: int,
    start: int = 0,
    order: Sequence[Mapping[str, str]] = (),
    texts: bool = False,
    marks: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Return a search request that highlights the best fragment of each field, and the whole title.

    Args:
        texts: whether hits have the whole texts, too.
        marks: the tags around matching words; None for no tags.
    """
    names = [field.partition("^")[0] for field in fields]
    cut = [name for name in names if name != "title"]
    shown: dict[str, Any] = dict.fromkeys(cut, _FRAGMENT)
    if marks and "title" in names:
        shown["title"] = {"number_of_fragments": 0}
    body: dict[str, Any] = {
        "query": {"multi_match": {"query": query, "fields": list(fields)}},
        "from": start,
        "size": size,
        "_source": {"excludes": [dedup] if texts else [dedup, *cut]},
    }
    if shown:
        opening, closing = marks or ("", "")
        body["highlight"] = {"pre_tags": [opening], "post_tags": [closing], "fields": shown}
    if order:
        body["sort"] = list(order)
    return body
