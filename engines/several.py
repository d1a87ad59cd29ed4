"""Several searches, one after the other: for engines that can't take them at once."""

from collections.abc import Callable, Iterable

from shinglefold.contracts.engine import JSON, Search, search_parts
from shinglefold.errors import EngineError

Answer = JSON | EngineError


def one_by_one(search: Callable[..., JSON], searches: Iterable[Search]) -> list[Answer]:
    """Return the answer to each search, or what it raised."""
    return [_answer(search, one) for one in searches]


def _answer(search: Callable[..., JSON], one: Search) -> Answer:
    try:
        return search(*search_parts(one))
    except EngineError as error:
        return error
