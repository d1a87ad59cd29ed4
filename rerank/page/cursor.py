"""Cursors for endless paging: one opaque string with the position and the hits shown so far."""

import json
import zlib
from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from shinglefold.errors import ConfigError
from shinglefold.rerank.hits import Hit
from shinglefold.rerank.request.fold_options import SearchRequest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: The most characters of a cursor.
LONGEST = 15_900
_VERSION = b"\2"
_NONCE = 12
#: Parts that may change between pages: they decide neither the hits nor how these fold.
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
    "on_trouble",
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended.

    ``request``: a digest of what must not change between pages. ``pit``: the point in time to read under,
    if the engine needs one. ``after``: sort values of the hit before the next block; None at the start.
    ``behind``: the number of hits up to it.
    ``count``: how many hits were shown. ``shown``: what folding needs of the latest of them, in order:
    ``mark``, ``rank`` and fields. The others are among the first ``old`` hits, which are read again.
    ``total``: ``groups_total`` of the first page.
    """

    request: str
    pit: str | None = None
    after: Sequence[Any] | None = None
    behind: int = 0
    count: int = 0
    shown: tuple[Hit, ...] = ()
    old: int = 0
    total: Mapping[str, Any] | None = None

    @property
    def fresh(self) -> bool:
        """Whether nothing was shown yet."""
        return self.after is None and not self.count

    def restart(self, pit: str | None) -> "Cursor":
        """Return a cursor that begins at the first hit again and leaves out the hits shown."""
        return replace(self, pit=pit, after=None, behind=0)

    def without_oldest(self, count: int) -> "Cursor":
        """Return a cursor without the ``count`` oldest hits shown, which will be read again."""
        ranks = [int(hit["rank"]) + 1 for hit in self.shown[:count]]
        return replace(self, shown=self.shown[count:], old=max([self.old, *ranks]))


def encrypt_cursor(cursor: Cursor, key: bytes) -> str:
    """Encrypt and authenticate a cursor, as text of at most ``LONGEST`` characters.

    The oldest hits shown are left out if it would be longer.
    """
    while True:
        text = _encrypt(cursor, key)
        if len(text) <= LONGEST:
            return text
        if not cursor.shown:
            raise ConfigError(
                "the cursor would be too long: the hits are sorted by a value of many thousand characters; "
                "sort by a shorter field"
            )
        # Drop the excess share, so that a few rounds suffice.
        cursor = cursor.without_oldest(max(1, len(cursor.shown) * (len(text) - LONGEST) // len(text)))


def decrypt_cursor(text: str, key: bytes) -> Cursor:
    """Decrypt a cursor that ``encrypt_cursor`` encrypted; refuse one that was changed."""
    from cryptography.exceptions import InvalidTag

    try:
        raw = b64decode(text, b"-_", validate=True) if len(text) <= LONGEST else b""
        packed = _cipher(key).decrypt(raw[:_NONCE], raw[_NONCE:], _VERSION)
    except (Base64Error, ValueError, InvalidTag):
        raise ConfigError(
            "the cursor was changed, or was made with another key or by another version: send it back "
            "unchanged, and give all processes that serve one search the same cursor_key; or begin again "
            "with a cursor of true"
        ) from None
    parts = json.loads(zlib.decompress(packed))
    return Cursor(**{**parts, "shown": tuple(parts["shown"])})


def _encrypt(cursor: Cursor, key: bytes) -> str:
    text = json.dumps(asdict(cursor), separators=(",", ":"), ensure_ascii=False)
    nonce = token_bytes(_NONCE)
    packed = _cipher(key).encrypt(nonce, zlib.compress(text.encode("utf-8", "surrogatepass"), 6), _VERSION)
    return urlsafe_b64encode(nonce + packed).decode("ascii")


def _cipher(key: bytes) -> "AESGCM":
    # Most searches have no cursor.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(blake2b(key, digest_size=32, person=b"cursor").digest())


def request_digest(request: SearchRequest, scheme: str) -> str:
    """Return a digest of everything that decides the hits of a search and how they fold."""
    kept = {name: value for name, value in request.body.items() if name not in _FREE_KEYS}
    chosen = {name: value for name, value in asdict(request.options).items() if name not in _FREE_OPTIONS}
    parts: list[object] = [request.index, kept, chosen, scheme]
    if request.url:
        parts.append({name: str(value) for name, value in request.url.items()})
    text = json.dumps(parts, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=12).hexdigest()
