"""Where the next page of copies begins, as a short text."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from shinglefold.errors import ConfigError

_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Place:
    """A place among copies: after which candidate its block begins, and the last copy shown of that block.

    ``after``: sort values, None for the first block. ``last``: as ``Match.place`` has it, None at the start
    of the block.
    """

    after: tuple[Any, ...] | None = None
    last: tuple[float, str, str, str] | None = None

    def to_text(self, query: Mapping[str, Any]) -> str:
        """Return the place as text, good for one query only."""
        told = json.dumps([_name(query), self.after, self.last], separators=(",", ":"))
        return urlsafe_b64encode(told.encode()).decode("ascii")

    @classmethod
    def parse(cls, text: str, query: Mapping[str, Any]) -> "Place":
        """Read what ``to_text`` wrote.

        Raises:
            ConfigError: it is none, or one of another document or other options.
        """
        try:
            if len(text) > _LONGEST:
                raise ValueError
            name, after, last = json.loads(urlsafe_b64decode(text.encode("ascii")))
            if last is not None:
                resemblance, index, id_, routing = last
                last = float(resemblance), str(index), str(id_), str(routing)
            place = cls(None if after is None else tuple(after), last)
        except (ValueError, TypeError, UnicodeEncodeError):
            raise ConfigError("not a place in a list of copies; give `next` of a page as it is") from None
        if name != _name(query):
            raise ConfigError(
                "this place is in the copies of another document, or of other options; "
                "begin with the first page"
            )
        return place


def _name(query: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(query, sort_keys=True, default=repr).encode(), digest_size=6).hexdigest()
