"""A share of an index: several machines scan one index, each its own part."""

import re
from dataclasses import dataclass

from shinglefold.checks import check_whole
from shinglefold.contracts import JSON
from shinglefold.errors import ConfigError

#: As many slices as a server takes for one index (``index.max_slices_per_pit``).
_MOST = 1024


@dataclass(frozen=True, slots=True)
class Slice:
    """Part ``number`` of ``of``, counted from 1; whole by default.

    Which part a document is in depends on its id alone, so machines agree without talking to each other.
    """

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        for name in ("number", "of"):
            check_whole(name, getattr(self, name))
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

    def slices(self, cuts: int) -> list[JSON]:
        """Return the part as so many slices; one that is empty stands for everything.

        With as many slices as an index has shards, or more, servers give each shard slices of its own: each
        of them then reads one shard only.
        """
        first = (self.number - 1) * cuts
        return [_slice(first + cut, self.of * cuts) for cut in range(cuts)]


def _slice(number: int, of: int) -> JSON:
    # By _id: what servers take by themselves differs, and Elasticsearch's own choice changes with every
    # point in time.
    return {} if of == 1 else {"slice": {"field": "_id", "id": number, "max": of}}


#: The only part there is where an index is not parted.
WHOLE = Slice()
