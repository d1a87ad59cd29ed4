"""Spoiling inputs: bytes as disks and networks spoil them, JSON as people and attackers write it."""

import random
from typing import Any

_TOKENS = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"\\", b"\\u", b"\\ud800", b"{", b"}", b"["),
    *(b"]", b",", b":", b";", b"\t", b"<", b">", b"<!--", b"<script>", b"&#xD800;", b"NaN", b"1e999", b"-"),
    *("ё".encode("cp1251"), "ґ".encode(), "漢".encode("gb18030"), b"\xf0\x9f", b"\x1f\x8b", b"null", b"''"),
)
_DEEP = 200


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if depth % 2 else [value]
    return value


#: What stands where something else should.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -0.0, 1e308, float("nan"), float("inf")),
    *("", " ", "\x00", "\ud800", "a" * 10_000, "ru", "dedup", "_id", "../../etc", "9" * 5_000, "{{{a}}}"),
    *([], [[]], [None], {}, {"": {}}, {"a": None}, ["a"] * 1_000, _nested(_DEEP), _nested(_DEEP + 1)),
)


def spoil_bytes(data: bytes, chance: random.Random) -> bytes:
    """Flip, cut, double, insert: up to five times."""
    spoilt = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(spoilt) + 1)
        kind = chance.randrange(5)
        if kind == 0 and spoilt:
            spoilt[at % len(spoilt)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del spoilt[at : at + chance.randint(1, 20)]
        elif kind == 2:
            spoilt[at:at] = chance.choice(_TOKENS)
        elif kind == 3:
            spoilt[at:at] = spoilt[at : at + chance.randint(1, 50)]
        else:
            del spoilt[at:]
    return bytes(spoilt)


def spoil_text(text: str, chance: random.Random) -> str:
    """Spoil a text as its bytes, and read what is left."""
    return spoil_bytes(text.encode("utf-8", "surrogatepass"), chance).decode("utf-8", "replace")


def spoil_json(value: Any, chance: random.Random) -> Any:
    """Return a copy with one to three values replaced, renamed, doubled or left out, anywhere in it."""
    for _ in range(chance.randint(1, 3)):
        value = _spoilt(value, chance)
    return value


def _spoilt(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        kind = chance.randrange(6)
        rest = {name: kept for name, kept in value.items() if name != key}
        if kind == 0:
            return rest
        if kind == 1:
            return {**rest, spoil_text(str(key), chance): value[key]}
        return {**value, key: _spoilt(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value[:at] + value[at + 1 :]
        return [*value[:at], _spoilt(value[at], chance), *value[at + 1 :]]
    if isinstance(value, str) and chance.random() < 0.4:
        return spoil_text(value, chance)
    return chance.choice(ODD)
