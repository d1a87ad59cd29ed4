"""Work is done in blocks: big enough for arrays to pay, small enough for memory to stay flat."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: Characters of plain text in a block to be hashed: 16–64 k tokens.
TEXT_BUDGET = 256_000
#: Characters of raw documents, markup included, in a block that travels to a worker.
RAW_BUDGET = 1_000_000
#: The same where a block becomes a request of its own: fewer of them cost a server and its client less.
REQUEST_BUDGET = 2_000_000
#: Documents in a block, however short they are.
MAX_DOCUMENTS = 1_000
#: Characters of one text in a document to be indexed: each costs some twenty bytes of memory on its way.
MAX_TEXT = 20_000_000


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
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        own = [len(one) if type(one) is str else weight(one) for one in value.values()]
        return sum(own) + 8 * len(own)
    if isinstance(value, list):
        return sum(map(weight, value)) + 8
    return 8


def too_long(value: object, path: str = "") -> str:
    """Return why a document can't be indexed that has a text longer than ``MAX_TEXT``; empty for all others.

    Args:
        value: the document, or what it has at ``path``.
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
