"""Several searches in one request: what is sent, and what each answer means."""

from collections.abc import Sequence

from shinglefold.contracts.engine import JSON, Search, search_parts
from shinglefold.engines.http.errors import refusal, under_pit
from shinglefold.engines.http.parameters import fits_header, in_address
from shinglefold.engines.http.responses import check_searched
from shinglefold.engines.several import Answer
from shinglefold.errors import UnsupportedQuery


def checked(searches: Sequence[Search]) -> tuple[list[UnsupportedQuery | None], list[Search]]:
    """Return, for each search, why it can't be sent, or None; and those that can be."""
    refusals = [_refused(search) for search in searches]
    return refusals, [search for search, no in zip(searches, refusals, strict=True) if no is None]


def lines(searches: Sequence[Search]) -> list[JSON]:
    """Return the lines of a request: for each search where and with what parameters, and its body."""
    return [line for search in searches for line in (_header(search), dict(search[1]))]


def fits(search: Search) -> bool:
    """Tell whether a search may stand beside others in one request."""
    return fits_header(search_parts(search)[2] or {})


def meant(searches: Sequence[Search], answer: JSON, who: str) -> list[Answer]:
    """Return what a server's answer says of each search, as if it had been sent alone."""
    return [_meant(*each, who) for each in zip(searches, answer["responses"], strict=True)]


def in_place(refusals: Sequence[UnsupportedQuery | None], answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers in order, each refusal in the place of its search."""
    others = iter(answers)
    return [next(others) if refusal is None else refusal for refusal in refusals]


def _header(search: Search) -> JSON:
    index, _, parameters = search_parts(search)
    return {**({} if index is None else {"index": index}), **in_address(parameters or {})}


def _refused(search: Search) -> UnsupportedQuery | None:
    try:
        check_searched(search[0], search[1])
    except UnsupportedQuery as error:
        return error
    return None


def _meant(search: Search, answer: JSON, who: str) -> Answer:
    if "error" in answer:
        error = refusal(int(answer.get("status", 500)), answer, who)
        return under_pit(error) if search[0] is None else error
    return {name: value for name, value in answer.items() if name != "status"}
