"""Work is done in blocks: big enough for arrays to pay, small enough for memory to stay flat."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from shinglefold.long_texts import LongText

T = TypeVar("T")

#: Characters of plain text in a block to be hashed: 16–64 k tokens.
TEXT_BUDGET = 256_000
#: Characters of raw documents, markup included, in a block that travels to a worker.
RAW_BUDGET = 1_000_000
#: The same where a block becomes a request of its own: fewer of them cost a server and its client less.
REQUEST_BUDGET = 2_000_000
#: Documents in a block, however short they are.
MAX_DOCUMENTS = 1_000
_TEXTS = (str, LongText)


def blocks(
    items: Iterable[T], size: Callable[[T], int], budget: int, most: int = MAX_DOCUMENTS
) -> Iterator[list[T]]:
    """Split a stream into lists of at most ``budget`` characters and ``most`` items, order kept.

    An item larger than the budget goes alone.
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
    """Return about how many characters a JSON value holds."""
    if isinstance(value, _TEXTS):
        return len(value)
    if isinstance(value, dict):
        own = [len(one) if type(one) is str else weight(one) for one in value.values()]
        return sum(own) + 8 * len(own)
    if isinstance(value, list):
        return sum(map(weight, value)) + 8
    return 8
