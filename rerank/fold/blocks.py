"""Folds hits by blocks, so that groups depend neither on the size of requests nor on where reading began."""

from collections.abc import Sequence

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.fold.clustering import ConnectedFolding, LeaderFolding
from shinglefold.rerank.request.bodies import complete_tie_groups


class BlockwiseFolding:
    """Hits of which complete blocks are folded.

    A block ends after ``window`` hits, or earlier if the last ones have the same sort values as the next.

    Attributes:
        pending: hits that are read and wait for the rest of their block.
    """

    def __init__(self, folding: LeaderFolding | ConnectedFolding, window: int) -> None:
        self.folding = folding
        self.pending: list[JSON] = []
        self._window = window
        self._borders: list[int] = []

    @property
    def groups(self) -> int | None:
        """How many groups there are; None if later hits may join two of them."""
        return len(self.folding) if isinstance(self.folding, LeaderFolding) else None

    def begin_of(self, place: int) -> int:
        """Return where the block of a hit begins."""
        return max((begin for begin in self._borders if begin <= place), default=0)

    def fold(self, tail: Sequence[JSON], *, last: bool, ties: bool) -> None:
        """Fold the complete blocks of the pending hits, and with ``last`` the rest.

        Args:
            tail: the hits that follow.
            ties: whether equal sort values stay in one block.
        """
        while self.pending and (last or len(self.pending) + len(tail) > self._window):
            count = self._size([*self.pending, *tail]) if ties else self._window
            if not last and count > len(self.pending):
                return
            self._borders.append(len(self.folding.hits))
            self.folding.add(self.pending[:count])
            del self.pending[:count]

    def _size(self, hits: Sequence[JSON]) -> int:
        """Return how many of the next hits are a block."""
        window = self._window
        count = complete_tie_groups(hits[: window + 1], window)
        while not count and window < len(hits):
            window += 1
            count = complete_tie_groups(hits[: window + 1], window)
        return count or len(hits)
