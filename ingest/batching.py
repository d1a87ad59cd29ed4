"""Split streams of documents into blocks: large enough for array operations, small enough for flat memory."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: The most characters of plain text in a block to hash: 16–64 k tokens.
TEXT_BUDGET = 256_000
#: The most characters of raw documents, markup included, in a block for a worker.
RAW_BUDGET = 1_000_000
#: The same if each block becomes one bulk request: larger requests cost server and client less.
REQUEST_BUDGET = 2_000_000
#: The most documents in a block.
MAX_DOCUMENTS = 1_000
#: The most characters of one text: indexing takes some twenty bytes of memory per character.
MAX_TEXT = 20_000_000


def blocks(
    items: Iterable[T], size: Callable[[T], int], budget: int, most: int = MAX_DOCUMENTS
) -> Iterator[list[T]]:
    """Yield the items in order, in lists of at most ``budget`` characters and ``most`` items.

    An item larger than the budget is in a separate list.
    """
    block: list[T] = []
    used = 0
    for item in items:
        length = size(item)
        if block and (used + length > budget or len(block) >= most):
            yield block
            block, used = [], 0
        block.append(item)
        used += length
    if block:
        yield block


def weight(value: object) -> int:
    """Return roughly how many characters a JSON value holds."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        own = [len(one) if type(one) is str else weight(one) for one in value.values()]
        return sum(own) + 8 * len(own)
    if isinstance(value, list):
        return sum(map(weight, value)) + 8
    return 8


def too_long(value: object, path: str = "") -> str:
    """Return an error message if a document has a text longer than ``MAX_TEXT``, else an empty string.

    Args:
        value: the document, or its value at ``path``.
    """
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            return ""
        return (
            f"[{path}] has {len(value):,} characters, and a text may have at most {MAX_TEXT:,}: "
            "split it into several documents, or leave the field out"
        )
    if isinstance(value, dict):
        inside = [(f"{path}.{name}" if path else str(name), one) for name, one in value.items()]
    else:
        inside = [(path, one) for one in value] if isinstance(value, list) else []
    return next(filter(None, (too_long(one, where) for where, one in inside)), "")
