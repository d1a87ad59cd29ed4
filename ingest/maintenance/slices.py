"""A share of an index: several machines walk one index, each its own part."""

import re
from dataclasses import dataclass

from shinglefold.contracts import JSON
from shinglefold.errors import ConfigError

#: As many slices as a server takes for one index (``index.max_slices_per_pit``).
_MOST = 1024


@dataclass(frozen=True, slots=True)
class Slice:
    """Slice ``number`` of ``of`` parts, counted from 1; whole by default.

    Which part a document is in depends on its id alone, so machines agree without talking to each other.
    """

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of <= _MOST:
            raise ConfigError(f"part {self}: expected NUMBER/OF from 1/1 to {_MOST}/{_MOST}, such as 2/4")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Slice":
        """Read ``2/4``.

        Raises:
            ConfigError: it is something else.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None:
            raise ConfigError(f"part {text!r}: expected NUMBER/OF, such as 2/4 for the second of four")
        return cls(int(found[1]), int(found[2]))

    def slices(self, lanes: int) -> list[JSON]:
        """Return the ``slice`` of each lane, cutting the part into so many; empty where it is everything.

        With as many slices as shards, or a multiple, servers give each shard slices of its own: lane k of
        ``lanes`` = shards then reads one shard only.
        """
        most = self.of * lanes
        first = (self.number - 1) * lanes
        return [_slice(first + lane, most) for lane in range(lanes)]


def _slice(number: int, of: int) -> JSON:
    # By _id: what servers take by themselves differs, and Elasticsearch's own choice changes with every
    # point in time.
    return {} if of == 1 else {"slice": {"field": "_id", "id": number, "max": of}}


#: The only part there is where an index is not parted.
WHOLE = Slice()
