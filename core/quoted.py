"""What a message shows of input: enough to recognize it, however large it is."""

from collections.abc import Iterable, Mapping
from itertools import islice

#: Characters of input a message quotes at most.
MOST = 200
#: Items of a list or an object that are looked at, objects within objects, and bits of a number written out.
_ITEMS, _DEPTH, _BITS = 8, 4, 256
_CUT = "…"


def quoted(value: object) -> str:
    """Return a value as Python writes it, 200 characters at most. Cost: a few µs, however large it is."""
    text = _text(value, _DEPTH)
    return text if len(text) <= MOST else text[: MOST - 1] + _CUT


def shortened(value: object) -> str:
    """Return a text as it is, 200 characters at most, and anything else as ``quoted`` does."""
    if not isinstance(value, str):
        return quoted(value)
    return value if len(value) <= MOST else value[: MOST - 1] + _CUT


def _text(value: object, depth: int) -> str:
    if isinstance(value, str | bytes):
        # One quotation mark stays open: the text goes on.
        return repr(value) if len(value) <= MOST else repr(value[:MOST])[:-1] + _CUT
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a number of about {round(value.bit_length() * 0.30103)} digits"
    if isinstance(value, Mapping):
        return _listed("{}", (f"{_text(k, 0)}: {_text(v, depth - 1)}" for k, v in value.items()), depth)
    if isinstance(value, list | tuple):
        marks = "[]" if isinstance(value, list) else "()"
        return _listed(marks, (_text(one, depth - 1) for one in value), depth)
    return repr(value)


def _listed(marks: str, items: Iterable[str], depth: int) -> str:
    if depth <= 0:
        return f"{marks[0]}{_CUT}{marks[1]}"
    shown = list(islice(items, _ITEMS + 1))
    more = [_CUT] if len(shown) > _ITEMS else []
    return marks[0] + ", ".join([*shown[:_ITEMS], *more]) + marks[1]
