"""Code points → canonical tokens, as hashes or words, in one pass, compiled: the same as by numpy.

Imported only where it pays, as numba alone takes half a second. Texts out of the ordinary (marks to compose,
two languages of one script) are left to numpy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.chunking import HashedBlock, merged
from shinglefold.canon.compiled_kernel import hash_block
from shinglefold.canon.language_detection import Router
from shinglefold.canon.lexicon import Lexicon, LexiconEntries, LexiconSlots, Strings, spaced
from shinglefold.canon.normalization import joined
from shinglefold.canon.unicode_tables import INVISIBLE, characters
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.runtime.optional_imports import compile_function


class Missing(NamedTuple):
    """Words that the lexicon lacks: where each is, its key and language, and whether its scripts mix.

    ``places``: among the hashes of the block, which have a 0 there.
    """

    starts: Int64s
    ends: Int64s
    places: Int64s
    keys: Uint64s
    chosen: Int64s
    mixed: NDArray[np.bool_]


class Workspace(NamedTuple):
    """Columns for the tokens of a block."""

    starts: Int64s
    ends: Int64s
    chosen: Int64s
    places: Int64s
    keys: Uint64s
    hashes: Uint64s
    marks: NDArray[np.uint32]
    groups: NDArray[np.uint8]

    @classmethod
    def of(cls, codes: int) -> "Workspace":
        """Return room for a block of so many codes."""
        starts, ends, chosen, places = (np.empty(codes, np.int64) for _ in range(4))
        keys, hashes = (np.empty(codes, np.uint64) for _ in range(2))
        marks, groups = np.empty(codes, np.uint32), np.empty(codes, np.uint8)
        return cls(starts, ends, chosen, places, keys, hashes, marks, groups)


class Room:
    """The columns of one block after another: memory fresh from the system costs more than the work in it."""

    def __init__(self) -> None:
        self._work = Workspace.of(0)

    def work(self, codes: int) -> Workspace:
        """Return columns that are long enough for a block of so many codes."""
        if len(self._work.keys) < codes:
            self._work = Workspace.of(codes)
        return self._work


@dataclass(frozen=True, slots=True)
class Kernel:
    """The tables of a router, flat, as the compiled code reads them."""

    kinds: NDArray[np.uint8]
    traits: NDArray[np.uint32]
    values: Uint64s
    group_of: NDArray[np.uint8]
    members: Int64s
    salts: Uint64s
    rest: int
    mixed: Callable[[NDArray[np.uint32]], NDArray[np.bool_]]
    work: Any

    @classmethod
    def of(cls, router: Router, salts: Uint64s) -> "Kernel":
        """Return the kernel of a router.

        Raises:
            ImportError: numba is not installed.
        """
        most = max(map(len, router.groups))
        members = np.array([[*group, *[-1] * (most - len(group))] for group in router.groups], np.int64)
        tables = router.tables
        values = characters().value
        work = compile_function(hash_block)
        return cls(
            tables.kind,
            tables.traits,
            values,
            router.group_of,
            members,
            salts,
            router.rest,
            router.mixed,
            work,
        )

    def run(self, plain: "NumpyPath") -> "CanonRun":
        """Return what takes blocks of a canonicalizer through the kernel, in one thread."""
        return CanonRun(self, plain)

    def hash(
        self,
        codes: NDArray[np.uint32],
        origins: Int64s,
        declared: Int64s,
        slots: LexiconSlots,
        room: Room,
    ) -> tuple[HashedBlock, Int64s, Missing]:
        """Return the tokens of a block, the texts that numpy has to do, and the words to be learned first.

        Args:
            codes: uint32 (N,), code points: a line end before, between and behind the texts.
            origins: int64 (P,), where each text begins.
            declared: int64 (P,), the declared language of each text, or -1.
            room: of this thread, used again for each block.
        """
        work = room.work(len(codes))
        texts, languages = len(origins), len(self.salts)
        counts, repairs = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        votes, unusual = np.zeros((texts, languages), np.int64), np.zeros(texts, np.bool_)
        absent, kept = self.work(
            codes,
            origins,
            declared,
            (self.kinds, self.traits, self.values),
            (self.group_of, self.members, self.salts, self.rest),
            (slots.keys, slots.values, slots.repairs),
            work,
            (counts, votes, repairs, unusual),
        )
        own = slice(0, absent)
        starts, ends, places, chosen = (
            one[own].copy() for one in (work.starts, work.ends, work.places, work.chosen)
        )
        missing = Missing(starts, ends, places, work.keys[own].copy(), chosen, self.mixed(work.marks[own]))
        made = HashedBlock(work.hashes[:kept].copy(), counts, votes, repairs)
        return made, np.flatnonzero(unusual), missing


class Table(Protocol):
    """What knows words, by their keys."""

    @property
    def slots(self) -> LexiconSlots:
        """Where they are looked up."""
        ...

    def find(self, keys: Uint64s) -> LexiconEntries:
        """Look up keys."""
        ...


class NumpyPath(Protocol):
    """What makes tokens by numpy, and knows words."""

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon of both ways."""
        ...

    @property
    def strings(self) -> Strings:
        """The canonical words themselves."""
        ...

    def hash_block(self, texts: Sequence[str], declared: Int64s) -> HashedBlock:
        """Return the tokens of a block."""
        ...

    def said_block(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the canonical words of each text of a block, with a space between them."""
        ...

    def learn(
        self, keys: Uint64s, words: Sequence[str], languages: Sequence[int], mixed: Sequence[bool]
    ) -> None:
        """Learn words."""
        ...


@dataclass(frozen=True, slots=True)
class CanonRun:
    """Blocks of texts through the kernel, one after another, in one thread."""

    kernel: Kernel
    plain: NumpyPath
    room: Room = field(default_factory=Room)

    def hash_block(self, texts: Sequence[str], declared: Int64s) -> HashedBlock:
        """Return the tokens of a block."""
        return self.hash_codes(*joined(texts), declared)

    def hash_codes(self, codes: NDArray[np.uint32], origins: Int64s, declared: Int64s) -> HashedBlock:
        """Return the tokens of a block of code points.

        Args:
            codes: uint32 (N,), a line end before, between and behind the texts; none is longer than a piece.
            origins: int64 (P,), where each text begins.
            declared: int64 (P,), the number of each text's declared language, or -1.
        """
        found = self._hash(codes, origins, declared, self.plain.lexicon)
        if found is None:
            return self.plain.hash_block(_texts(codes, origins, range(len(origins))), declared)
        made, unusual = found
        if not len(unusual):
            return made
        others = self.plain.hash_block(_texts(codes, origins, unusual.tolist()), declared[unusual])
        return merged(made, others, unusual)

    def said_block(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the canonical words of each text of a block, with a space between them.

        Method: the same pass as for hashes, over another table: of each form the number of its word.
        """
        codes, origins = joined(texts)
        declared = np.full(len(texts), -1, np.int64)
        kept = self.plain.strings.kept
        found = self._hash(codes, origins, declared, kept)
        if found is None:
            return self.plain.said_block(texts)
        made, unusual = found
        # Read behind the numbers, which mean words that are there already.
        said = spaced(kept.words[made.hashes.view(np.int64)].tolist(), np.cumsum(made.counts).tolist())
        if len(unusual):
            places: list[int] = unusual.tolist()
            others = self.plain.said_block([texts[place] for place in places])
            for place, words in zip(places, others, strict=True):
                said[place] = words
        return said

    def _hash(
        self, codes: NDArray[np.uint32], origins: Int64s, declared: Int64s, known: Table
    ) -> tuple[HashedBlock, Int64s] | None:
        """Return what is found in a table, words that it lacked learned.

        None where they are not in it then: it was too small for them, or another stands in its place.
        """
        made, unusual, missing = self.kernel.hash(codes, origins, declared, known.slots, self.room)
        if not len(missing.keys):
            return made, unusual
        self._learn(codes, missing)
        learned = known.find(missing.keys)
        return (_filled(made, missing, learned, origins), unusual) if learned.known.all() else None

    def _learn(self, codes: NDArray[np.uint32], missing: Missing) -> None:
        keys, first = np.unique(missing.keys, return_index=True)
        spans = zip(missing.starts[first].tolist(), missing.ends[first].tolist(), strict=True)
        words = [self._word(codes[start:end]) for start, end in spans]
        self.plain.learn(keys, words, missing.chosen[first].tolist(), missing.mixed[first].tolist())

    def _word(self, codes: NDArray[np.uint32]) -> str:
        """Return the folded characters of a word, without those that nobody sees."""
        seen = codes[self.kernel.kinds[codes] != INVISIBLE]
        folded: bytes = characters().fold[seen].tobytes()
        return folded.decode("utf-32-le", "surrogatepass")


def _filled(made: HashedBlock, missing: Missing, learned: LexiconEntries, origins: Int64s) -> HashedBlock:
    """Fill the words that were missing into a block, and return it without those of them that are dropped."""
    texts = np.searchsorted(origins, missing.starts, "right") - 1
    hashes, every = made.hashes, len(made.counts)
    hashes[missing.places] = learned.values
    repairs = np.bincount(texts, learned.repairs, every).astype(np.int64)
    dropped = np.bincount(texts[learned.values == 0], minlength=every)
    return HashedBlock(hashes[hashes != 0], made.counts - dropped, made.votes, made.repairs + repairs)


def _texts(codes: NDArray[np.uint32], origins: Int64s, places: Sequence[int]) -> list[str]:
    """Return some texts of a block as they were given."""
    ends = [*(origins[1:] - 1).tolist(), len(codes) - 1]
    return [
        codes[origins[place] : ends[place]].tobytes().decode("utf-32-le", "surrogatepass") for place in places
    ]
