"""Cursors for endless paging: where to read on, and what was shown, in one opaque string."""

import hmac
import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any

from shinglefold.errors import ConfigError
from shinglefold.rerank.hits import Hit
from shinglefold.rerank.options import FoldOptions

_VERSION = 1
_SEAL = 16
#: What may differ from page to page: it decides neither which hits there are nor how they fold.
_FREE_KEYS = {"size", "_source", "highlight", "fields", "docvalue_fields", "aggs", "aggregations", "suggest"}
_FREE_KEYS |= {"track_total_hits", "stored_fields", "script_fields", "explain", "version", "profile"}
_FREE_OPTIONS = (
    "closed",
    "inner_hits",
    "cursor",
    "renew",
    "members",
    "member_source",
    "explain",
    "fold",
    "max_window",
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended.

    ``after``: sort values of the hit before the block to read next; None at the start.
    ``shown``: what folding needs of each hit shown so far, in order; the first ``before`` of them belong to
    earlier blocks, the others are found again when the block is read again.
    ``request``: a digest of what must not change between the pages. ``total``: how many groups the first page
    told there are.
    """

    pit: str
    request: str
    after: Sequence[Any] | None = None
    before: int = 0
    shown: tuple[Hit, ...] = ()
    total: Mapping[str, Any] | None = None

    @property
    def fresh(self) -> bool:
        """Whether nothing was shown yet."""
        return self.after is None and not self.shown

    @property
    def earlier(self) -> tuple[Hit, ...]:
        """The hits shown from earlier blocks."""
        return self.shown[: self.before]

    def renewed(self, pit: str) -> "Cursor":
        """Return a cursor for another point in time, from the start, with all that was shown left out."""
        return replace(self, pit=pit, after=None, before=len(self.shown))


def seal(cursor: Cursor, key: bytes) -> str:
    """Return a cursor as text. Cost: some 150 characters a hit shown."""
    text = json.dumps([_VERSION, asdict(cursor)], separators=(",", ":"), ensure_ascii=False)
    packed = zlib.compress(text.encode(), 6)
    return urlsafe_b64encode(_mark(packed, key) + packed).decode("ascii")


def unseal(text: str, key: bytes) -> Cursor:
    """Undo ``seal``.

    Raises:
        ConfigError: the text was changed, or sealed with another key.
    """
    try:
        raw = urlsafe_b64decode(text.encode("ascii"))
    except (Base64Error, ValueError):
        raw = b""
    if len(raw) <= _SEAL or not hmac.compare_digest(raw[:_SEAL], _mark(raw[_SEAL:], key)):
        raise ConfigError(
            "the cursor was changed or was made with another key: send it back as it came, and give all "
            "processes that serve one search the same cursor_key; or begin again with a cursor of true"
        )
    version, parts = json.loads(zlib.decompress(raw[_SEAL:]))
    if version != _VERSION:
        raise ConfigError("the cursor was made by another version: begin again with a cursor of true")
    return Cursor(**{**parts, "shown": tuple(parts["shown"])})


def _mark(packed: bytes, key: bytes) -> bytes:
    return blake2b(packed, key=key[:64], digest_size=_SEAL).digest()


def request_digest(index: str | None, body: Mapping[str, Any], options: FoldOptions, scheme: str) -> str:
    """Return a digest of all that decides which hits a search has and how they fold."""
    kept = {name: value for name, value in body.items() if name not in _FREE_KEYS}
    ways = {name: value for name, value in asdict(options).items() if name not in _FREE_OPTIONS}
    text = json.dumps([index, kept, ways, scheme], sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=12).hexdigest()
