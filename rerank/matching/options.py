"""What a search for passages may say: how much of the text a document must have, and how many are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.errors import ConfigError
from shinglefold.quoted import quoted
from shinglefold.rerank.similar.options import check_reading


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """How documents with passages of a text are looked for.

    ``min_share``: of the words of the text that a document must have, five in a row, above 0 to 1.
    ``filters``: queries that a document must match, too.
    ``size``: documents on a page. ``window``: candidates whose texts are read at a time; within it the best
    come first. ``max_window``: candidates read at most for a page.
    ``source``: the ``_source`` filter of documents in the engines' own forms; False returns none.
    """

    min_share: float = 0.05
    filters: tuple[Mapping[str, Any], ...] = ()
    size: int = 10
    window: int = 100
    max_window: int = 1_000
    source: Any = False

    def __post_init__(self) -> None:
        share = self.min_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ConfigError(f"min_share: expected a share above 0 and up to 1, got {quoted(share)}")
        check_reading(self, smallest=1)
