"""What the stages of linking share: what was asked for, how far they are, what is told at the end."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.prints import Prints
from shinglefold.ingest.linking.slots import Slots
from shinglefold.model import Int64s
from shinglefold.sketch import Buckets, Judge, Verdict

#: The first document of the group of each document.
Labels = NDArray[np.int32]
#: Seconds between notes.
_PAUSE = 5.0

#: Documents that share one supershingle of which all pairs are looked at, and documents that stand for the
#: others of a larger bucket.
MOST_SHARED, LEADERS = 1_000, 32


@dataclass(frozen=True, slots=True)
class Options:
    """How pairs are looked for.

    ``memory``: bytes the work may take besides mapped files. ``most_shared``: a supershingle that more
    documents have is looked at by leaders only.
    """

    memory: int
    most_shared: int = MOST_SHARED


def _go_on() -> None:
    """Ask nobody."""


def _silent(_stage: str, _done: int, _whole: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Whom a run asks whether to go on, and tells how far it is: a stage, what is done of it, its whole."""

    check: Callable[[], None] = _go_on
    report: Callable[[str, int, int], None] = _silent


@dataclass(slots=True)
class Skipped:
    """What was not looked at: candidate pairs, at most, of so many supershingles that many documents have.

    ``copies``: pairs of equal texts, or of copies of theirs, that were not listed.
    """

    pairs: int = 0
    crowded: int = 0
    copies: int = 0

    def to_json(self) -> dict[str, int]:
        """Return it as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """Tells which pairs of documents share supershingles, and decides on these."""

    prints: Prints
    slots: int
    judge: Judge = field(init=False)
    _words: NDArray[np.unsignedinteger] = field(init=False)

    def __post_init__(self) -> None:
        prints = self.prints
        signatures, shingles = prints.signatures.mapped(), prints.shingles.mapped()
        scheme = prints.scheme
        judge = Judge(signatures, shingles, scheme.sketch, scheme.decision, prints.texts)
        object.__setattr__(self, "judge", judge)
        object.__setattr__(self, "_words", prints.words.mapped())

    def equal(self, a: Int64s, b: Int64s) -> NDArray[np.bool_]:
        """Tell in which slots pairs are equal, bool (P, slots)."""
        found: NDArray[np.bool_] = self._words[a, : self.slots] == self._words[b, : self.slots]
        return found

    def in_slot(self, slot: int) -> Callable[[Int64s, Int64s], NDArray[np.bool_]]:
        """Return what tells which pairs of a bucket of a slot are near-duplicates."""

        def alike(a: Int64s, b: Int64s) -> NDArray[np.bool_]:
            kept = self._nominated(a, b, slot)
            rows = np.flatnonzero(kept)
            kept[rows] = self.verified(a[rows], b[rows]).kept
            return kept

        return alike

    def _nominated(self, a: Int64s, b: Int64s, slot: int) -> NDArray[np.bool_]:
        least = self.prints.scheme.decision.min_shared
        if least > 1:
            return np.asarray(np.count_nonzero(self.equal(a, b), axis=1) >= least)
        if not self.prints.whole:
            # The bucket is of all that a keyword names.
            return np.ones(len(a), np.bool_)
        return np.asarray(self._words[a, slot] == self._words[b, slot])

    def verified(self, a: Int64s, b: Int64s) -> Verdict:
        """Decide on pairs that share enough supershingles."""
        near = self.judge.near(a, b)
        rows = np.flatnonzero(near)
        told = self.judge.verified(a[rows], b[rows])
        if len(rows) == len(a):
            return told
        whole = Verdict(np.zeros(len(a), np.bool_), np.zeros(len(a)), np.full(len(a), np.nan))
        for column, found in zip(whole, told, strict=True):
            column[rows] = found
        return whole


class Step(NamedTuple):
    """Buckets of a slot: those of which all pairs are looked at, and larger ones. ``last``: of the slot."""

    slot: int
    small: Buckets
    large: Buckets
    last: bool


def walk(  # noqa: PLR0917 - what the two ways of linking share
    slots: Slots, kept: NDArray[np.bool_], options: Options, begun: int, stage: str, watch: Watch
) -> Iterator[Step]:
    """Yield the buckets of all slots from ``begun`` on."""
    for slot in range(begun, slots.count):
        watch.report(stage, slot, slots.count)
        for buckets, last in slots.buckets(slot, kept, options.memory):
            watch.check()
            large = buckets.sizes > options.most_shared
            yield Step(slot, buckets.only(~large) if large.any() else buckets, buckets.only(large), last)


class Pause:
    """Tells when it is time for a note."""

    def __init__(self) -> None:
        self._noted = monotonic()

    def over(self) -> bool:
        """Tell whether it is, and begin anew if so."""
        if monotonic() - self._noted < _PAUSE:
            return False
        self._noted = monotonic()
        return True
