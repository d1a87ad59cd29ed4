"""What a search for passages may say: how much of the text a document must have, and how many are wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.checks import check_whole
from shinglefold.errors import ConfigError
from shinglefold.quoted import quoted
from shinglefold.rerank.checks import read_source_filter

#: Candidates whose texts are read at a time; see ``SimilarOptions``.
_MOST = 9_999
_CAP = 1_000_000


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
        check_whole("size", self.size, 1, _MOST)
        check_whole("window", self.window, 1, _MOST)
        check_whole("max_window", self.max_window, 1, _CAP)
        read_source_filter(self.source)
        if isinstance(self.filters, Mapping) or not all(isinstance(one, Mapping) for one in self.filters):
            raise ConfigError(
                f'filters: expected a list of queries, such as ({{"term": {{"host": "a.org"}}}},), '
                f"got {quoted(self.filters)}"
            )
