"""The compiled path of canonicalization: code points to canonical tokens in one pass, with numpy's results.

numpy processes texts with combining marks, with words broken at line ends, or whose letters show no language
of their script, or two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.language_detection import LanguageRouter
from shinglefold.canon.lexicon import InternedStrings, Lexicon, LexiconEntries, LexiconSlots, join_words
from shinglefold.canon.normalization import encode_texts
from shinglefold.canon.segmentation import HashedBlock, merge_blocks
from shinglefold.canon.unicode_tables import INVISIBLE, characters
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.runtime.optional_imports import compile_function

if TYPE_CHECKING:
    from shinglefold.canon.canonicalizer import Canonicalizer


class Missing(NamedTuple):
    """Words that the lexicon lacks: offsets, key, language, and whether they mix scripts.

    ``places``: their positions in the hashes of the block, which have a 0 there.
    """

    starts: Int64s
    ends: Int64s
    places: Int64s
    keys: Uint64s
    chosen: Int64s
    mixed: NDArray[np.bool_]


class Workspace(NamedTuple):
    """Columns for the tokens of a block, reused because fresh memory costs more than the work."""

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
        """Return columns for a block of this many code points."""
        starts, ends, chosen, places = (np.empty(codes, np.int64) for _ in range(4))
        keys, hashes = (np.empty(codes, np.uint64) for _ in range(2))
        marks, groups = np.empty(codes, np.uint32), np.empty(codes, np.uint8)
        return cls(starts, ends, chosen, places, keys, hashes, marks, groups)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The tables of a language router as flat arrays, for the compiled code."""

    kinds: NDArray[np.uint8]
    traits: NDArray[np.uint32]
    values: Uint64s
    group_of: NDArray[np.uint8]
    members: Int64s
    salts: Uint64s
    rest: int
    lexical: NDArray[np.bool_]
    known: Lexicon
    mixed: Callable[[NDArray[np.uint32]], NDArray[np.bool_]]
    work: Any

    @classmethod
    def of(cls, router: LanguageRouter, salts: Uint64s) -> "Kernel":
        """Return the kernel of a router.

        Raises:
            ImportError: numba is not installed.
        """
        # Imported here, because the module builds tables when it is loaded.
        from shinglefold.canon.compiled_kernel import hash_block

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
            np.array(router.lexical),
            router.known,
            router.mixed_mask,
            work,
        )

    def hash(
        self,
        codes: NDArray[np.uint32],
        origins: Int64s,
        declared: Int64s,
        slots: LexiconSlots,
        work: Workspace,
    ) -> tuple[HashedBlock, Int64s, Missing]:
        """Return the tokens of a block, the texts left to numpy, and the words missing from the lexicon.

        Args:
            codes: uint32 (N,), code points: a line end before, between and after the texts.
            origins: int64 (P,), the start of each text.
            declared: int64 (P,), the index of each text's declared language, or -1.
            work: columns at least as long as ``codes``.
        """
        texts, languages = len(origins), len(self.salts)
        counts, repairs = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        votes, unusual = np.zeros((texts, languages), np.int64), np.zeros(texts, np.bool_)
        known = self.known.slots
        # For numba a read-only array has another type, for which it would compile all of this again: 3 s.
        read_only = codes.view()
        read_only.flags.writeable = False
        absent, kept = self.work(
            read_only,
            origins,
            declared,
            (self.kinds, self.traits, self.values),
            (self.group_of, self.members, self.salts, self.rest, self.lexical),
            (slots.keys, slots.values, slots.repairs),
            (known.keys, known.values),
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


@dataclass(slots=True)
class CanonRun:
    """The compiled path of one thread; texts that it can't process go through numpy in the canonicalizer."""

    kernel: Kernel
    canonicalizer: "Canonicalizer"
    work: Workspace = field(default_factory=lambda: Workspace.of(0))

    def hash_block(self, texts: Sequence[str], declared: Int64s) -> HashedBlock:
        """Return the tokens of a block."""
        return self.hash_codes(*encode_texts(texts), declared)

    def hash_codes(self, codes: NDArray[np.uint32], origins: Int64s, declared: Int64s) -> HashedBlock:
        """Return the tokens of a block of code points.

        Args:
            codes: uint32 (N,), a line end before, between and after the texts; none is longer than a piece.
            origins: int64 (P,), the start of each text.
            declared: int64 (P,), the index of each text's declared language, or -1.
        """
        found = self._hash(codes, origins, declared, self.canonicalizer.lexicon)
        if found is None:
            return self.canonicalizer.hash_block(_texts(codes, origins, range(len(origins))), declared)
        made, unusual = found
        if not len(unusual):
            return made
        others = self.canonicalizer.hash_block(_texts(codes, origins, unusual.tolist()), declared[unusual])
        return merge_blocks(made, others, unusual)

    def canonical_texts(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the canonical tokens of each text of a block, joined by spaces.

        Method: the pass of ``hash_block`` with another table, which has the number of each form's token.
        """
        codes, origins = encode_texts(texts)
        declared = np.full(len(texts), -1, np.int64)
        kept = self.canonicalizer.strings.kept
        found = self._hash(codes, origins, declared, kept)
        if found is None:
            return self.canonicalizer.canonical_texts(texts)
        made, unusual = found
        # The strings are read after the numbers, so every number has its string.
        joined = join_words(kept.words[made.hashes.view(np.int64)].tolist(), np.cumsum(made.counts).tolist())
        if len(unusual):
            places: list[int] = unusual.tolist()
            others = self.canonicalizer.canonical_texts([texts[place] for place in places])
            for place, words in zip(places, others, strict=True):
                joined[place] = words
        return joined

    def _hash(
        self,
        codes: NDArray[np.uint32],
        origins: Int64s,
        declared: Int64s,
        table: Lexicon | InternedStrings,
    ) -> tuple[HashedBlock, Int64s] | None:
        """Return the tokens of a block and the texts left to numpy; learn missing words first.

        None if the table does not have these words afterwards: it was too small, or was replaced.
        """
        if len(self.work.keys) < len(codes):
            self.work = Workspace.of(len(codes))
        made, unusual, missing = self.kernel.hash(codes, origins, declared, table.slots, self.work)
        if not len(missing.keys):
            return made, unusual
        self._learn(codes, missing)
        learned = table.find(missing.keys)
        return (_fill_learned(made, missing, learned, origins), unusual) if learned.known.all() else None

    def _learn(self, codes: NDArray[np.uint32], missing: Missing) -> None:
        keys, first = np.unique(missing.keys, return_index=True)
        spans = zip(missing.starts[first].tolist(), missing.ends[first].tolist(), strict=True)
        words = [self._word(codes[start:end]) for start, end in spans]
        self.canonicalizer.learn(keys, words, missing.chosen[first].tolist(), missing.mixed[first].tolist())

    def _word(self, codes: NDArray[np.uint32]) -> str:
        """Return the folded characters of a word, without invisible ones."""
        seen = codes[self.kernel.kinds[codes] != INVISIBLE]
        folded: bytes = characters().fold[seen].tobytes()
        return folded.decode("utf-32-le", "surrogatepass")


def _fill_learned(
    made: HashedBlock, missing: Missing, learned: LexiconEntries, origins: Int64s
) -> HashedBlock:
    """Fill learned words into a block, and remove the dropped ones."""
    texts = np.searchsorted(origins, missing.starts, "right") - 1
    hashes, every = made.hashes, len(made.counts)
    hashes[missing.places] = learned.values
    repairs = np.bincount(texts, learned.repairs, every).astype(np.int64)
    dropped = np.bincount(texts[learned.values == 0], minlength=every)
    return HashedBlock(hashes[hashes != 0], made.counts - dropped, made.votes, made.repairs + repairs)


def _texts(codes: NDArray[np.uint32], origins: Int64s, places: Sequence[int]) -> list[str]:
    """Return the texts at these positions of a block as strings."""
    ends = [*(origins[1:] - 1).tolist(), len(codes) - 1]
    return [
        codes[origins[place] : ends[place]].tobytes().decode("utf-32-le", "surrogatepass") for place in places
    ]
