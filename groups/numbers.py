"""The number of a group: made of the text that founds it, and had by no other group."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from shinglefold.model.values import Fingerprint

#: How many numbers a text may have; the second is for when another group has the first, and so on.
CHOICES = 4
_BITS = 63


def numbers_of(
    made: Fingerprint,
    scope: Sequence[Sequence[Any]],
    index: str,
    id_: str,
    routing: str | None = None,
) -> tuple[int, ...]:
    """Return the numbers a document may found a group with, in the order they are to be tried.

    Equal texts of equal scope have equal numbers, so that indexing again changes none. A document that is
    like no other, without any text or without a value in the scope, has one number, of its index, id and
    routing: its own, also where others that are searched with it have its id, and also where it is stored
    already.

    Args:
        scope: the values of the fields within which documents are alike, an empty list for none.
    """
    scoped = all(scope)
    shared = made.digest if scoped else ""
    values = [str(value) for value in scope] if scoped else []
    own = f"\0{index}\0{id_}" if routing is None else f"\0{index}\0{id_}\0{routing}"
    told = repr((made.scheme, shared or own, values))
    return tuple(_number(told, choice) for choice in range(CHOICES if shared else 1))


def _number(told: str, choice: int) -> int:
    made = blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8, salt=choice.to_bytes(1, "big"))
    return int.from_bytes(made.digest(), "big") >> (64 - _BITS)
