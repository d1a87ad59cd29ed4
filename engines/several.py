"""Several searches, one after the other: for engines that can't take them at once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shinglefold.contracts import JSON, Search
from shinglefold.errors import EngineError

Answer = JSON | EngineError


def one_by_one(
    search: Callable[[str | None, Mapping[str, Any]], JSON], searches: Iterable[Search]
) -> list[Answer]:
    """Return the answer to each search, or what it raised."""
    return [_answer(search, *one) for one in searches]


def _answer(
    search: Callable[[str | None, Mapping[str, Any]], JSON], index: str | None, body: Mapping[str, Any]
) -> Answer:
    try:
        return search(index, body)
    except EngineError as error:
        return error
