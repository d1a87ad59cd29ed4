"""Code points → canonical token hashes in one pass, compiled: the same bytes as the passes of numpy.

Imported only where it pays, as numba alone takes half a second. Texts out of the ordinary (marks to compose,
two languages of one script) are left to numpy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.characters import APOSTROPHE, COMPOSING, INVISIBLE, UNIT, WORD, characters
from shinglefold.canon.clean import joined
from shinglefold.canon.hashing import HashedBlock, merged
from shinglefold.canon.lexicon import Lexicon, Slots
from shinglefold.canon.routing import ALIKE, MARKS, OWN, RARITY, SCRIPT_BITS, Router
from shinglefold.canon.segment import BASE, LONGEST_WORD
from shinglefold.compiled import compiled
from shinglefold.model import Int64s, Uint64s


class Missing(NamedTuple):
    """Words that the lexicon lacks: where each is, its key and language, and whether its scripts mix."""

    starts: Int64s
    ends: Int64s
    keys: Uint64s
    chosen: Int64s
    mixed: NDArray[np.bool_]


class Work(NamedTuple):
    """Columns for the tokens of a block."""

    starts: Int64s
    ends: Int64s
    chosen: Int64s
    keys: Uint64s
    hashes: Uint64s
    marks: NDArray[np.uint32]
    groups: NDArray[np.uint8]

    @classmethod
    def of(cls, codes: int) -> "Work":
        """Return room for a block of so many codes."""
        starts, ends, chosen = (np.empty(codes, np.int64) for _ in range(3))
        keys, hashes = (np.empty(codes, np.uint64) for _ in range(2))
        marks, groups = np.empty(codes, np.uint32), np.empty(codes, np.uint8)
        return cls(starts, ends, chosen, keys, hashes, marks, groups)


class Room:
    """The columns of one block after another: memory fresh from the system costs more than the work in it."""

    def __init__(self) -> None:
        self._work = Work.of(0)

    def work(self, codes: int) -> Work:
        """Return columns that are long enough for a block of so many codes."""
        if len(self._work.keys) < codes:
            self._work = Work.of(codes)
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
        work = compiled(_hash_block)
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

    def run(self, plain: "Plain") -> "Run":
        """Return what takes blocks of a canonicalizer through the kernel, in one thread."""
        return Run(self, plain)

    def hash(
        self,
        codes: NDArray[np.uint32],
        origins: Int64s,
        declared: Int64s,
        slots: Slots,
        room: Room,
    ) -> tuple[HashedBlock, Int64s] | Missing:
        """Return the tokens of a block and the texts that numpy has to do, or the words to be learned first.

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
        if absent:
            own = slice(0, absent)
            starts, ends, chosen = (one[own].copy() for one in (work.starts, work.ends, work.chosen))
            return Missing(starts, ends, work.keys[own].copy(), chosen, self.mixed(work.marks[own]))
        return HashedBlock(work.hashes[:kept].copy(), counts, votes, repairs), np.flatnonzero(unusual)


class Plain(Protocol):
    """What makes tokens by numpy, and knows words."""

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon of both ways."""
        ...

    def hash_block(self, texts: Sequence[str], declared: Int64s) -> HashedBlock:
        """Return the tokens of a block."""
        ...

    def learn(
        self, keys: Uint64s, words: Sequence[str], languages: Sequence[int], mixed: Sequence[bool]
    ) -> None:
        """Learn words."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """Blocks of texts through the kernel, one after another, in one thread."""

    kernel: Kernel
    plain: Plain
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
        found = self._hash(codes, origins, declared)
        if isinstance(found, Missing):
            self._learn(codes, found)
            found = self._hash(codes, origins, declared)
        if isinstance(found, Missing):
            # A lexicon that is too small for a block forgets what it just learned.
            return self.plain.hash_block(_texts(codes, origins, range(len(origins))), declared)
        made, unusual = found
        if not len(unusual):
            return made
        others = self.plain.hash_block(_texts(codes, origins, unusual.tolist()), declared[unusual])
        return merged(made, others, unusual)

    def _hash(
        self, codes: NDArray[np.uint32], origins: Int64s, declared: Int64s
    ) -> tuple[HashedBlock, Int64s] | Missing:
        return self.kernel.hash(codes, origins, declared, self.plain.lexicon.slots, self.room)

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


def _texts(codes: NDArray[np.uint32], origins: Int64s, places: Sequence[int]) -> list[str]:
    """Return some texts of a block as they were given."""
    ends = [*(origins[1:] - 1).tolist(), len(codes) - 1]
    return [
        codes[origins[place] : ends[place]].tobytes().decode("utf-32-le", "surrogatepass") for place in places
    ]


_WORD, _UNIT, _APOSTROPHE, _INVISIBLE, _COMPOSING = WORD, UNIT, APOSTROPHE, INVISIBLE, COMPOSING
_SCRIPTS = np.uint32((1 << SCRIPT_BITS) - 1)
_BASE, _LAST = np.uint64(BASE), np.uint64(LONGEST_WORD - 1)
_ONE, _ONE32 = np.uint64(1), np.uint32(1)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_OWN, _MARKS = np.uint32(OWN), np.uint32(MARKS)
_ALIKE = len(ALIKE)
_ALL_ALIKE = np.uint32((1 << _ALIKE) - 1)


def _hash_block(codes, origins, declared, tables, routes, slots, work, told):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901, PLR0912, PLR0915, PLR0917
    """Return how many words the lexicon lacks, and how many tokens were kept."""
    kinds, traits, values = tables
    group_of, members, salts, rest = routes
    slot_keys, slot_values, slot_repairs = slots
    starts, ends, chosen, keys, hashes, marks, group_at = work
    counts, votes, repairs, unusual = told
    groups, most = members.shape
    last = np.uint64(len(slot_keys) - 1)
    powers = np.empty(LONGEST_WORD, np.uint64)
    powers[0] = _ONE
    for exponent in range(1, LONGEST_WORD):
        powers[exponent] = powers[exponent - 1] * _BASE
    winners = np.empty(groups + 1, np.int64)
    salt_of = np.empty(groups + 1, np.uint64)
    shown = np.empty((groups + 1, most), np.int64)
    inside = np.empty(groups + 1, np.int64)
    lettered = np.empty(groups + 1, np.int64)
    kept = missing = base = 0
    end_of_all = len(codes) - 1
    for text in range(len(origins)):
        at = origins[text]
        stop = origins[text + 1] - 1 if text + 1 < len(origins) else end_of_all
        inside[:] = 0
        lettered[:] = 0
        shown[:] = 0
        # 1: words and single characters, with what they are hashed from, and what they tell of the text.
        tokens = removed = pending = mixed = 0
        odd = readable = False
        while at < stop:
            code = codes[at]
            kind = kinds[code]
            if kind == _INVISIBLE:
                pending += 1
                at += 1
                continue
            if kind >= _COMPOSING:
                odd = True
                break
            if kind not in (_WORD, _UNIT):
                readable = False
                pending = 0
                at += 1
                continue
            if readable:
                removed += pending
            pending = 0
            readable = True
            start, end, length = at, at + 1, 1
            number, mark = values[code], traits[code]
            at += 1
            if kind == _WORD:
                while True:
                    code = codes[at]
                    kind = kinds[code]
                    if kind == _WORD:
                        if readable:
                            removed += pending
                        readable = True
                        pending = 0
                        # Nearly all of a word, and nothing but what it needs: places without a sign, as any
                        # other might count from the end. What is longer than a word may be is none, whatever
                        # its number.
                        spot, begun = np.uint64(at), np.uint64(at - length)
                        while kind == _WORD:
                            number += values[code] * powers[(spot - begun) & _LAST]
                            mark |= traits[code]
                            spot += _ONE
                            code = codes[spot]
                            kind = kinds[code]
                        length += np.int64(spot) - at
                        end = at = np.int64(spot)
                    if kind == _INVISIBLE:
                        pending += 1
                        at += 1
                        continue
                    if kind != _APOSTROPHE:
                        odd = kind >= _COMPOSING
                        break
                    after = at + 1
                    while kinds[codes[after]] == _INVISIBLE:
                        after += 1
                    if kinds[codes[after]] != _WORD:
                        break
                    readable = False
                    pending = 0
                    number += values[code] * powers[np.uint64(length) & _LAST]
                    mark |= traits[code]
                    at += 1
                    end = at
                    length += 1
            if odd:
                break
            if length > LONGEST_WORD:
                continue
            number = (number ^ (number >> _S30)) * _M1
            number = (number ^ (number >> _S27)) * _M2
            place = base + tokens
            starts[place], ends[place], marks[place] = start, end, mark
            keys[place] = number ^ (number >> _S31)
            tokens += 1
            scripts = mark & _SCRIPTS
            if scripts & (scripts - _ONE32):
                scripts = (mark >> _OWN) & _ALL_ALIKE
                if not scripts or scripts & (scripts - _ONE32):
                    mixed += 1
                    group_at[place] = groups + 1
                    continue
            group = group_of[scripts]
            group_at[place] = group
            inside[group] += 1
            if scripts:
                lettered[group] += 1
            if mark >> _MARKS:
                for rank in range(most if group < groups else 0):
                    member = members[group, rank]
                    if member >= 0 and (mark >> (_MARKS + np.uint32(member))) & _ONE32:
                        shown[group, rank] += 1
        if odd:
            unusual[text] = True
            continue
        # 2: words that mix scripts, where no letter told which, are of the commonest of those told.
        if mixed:
            pure = inside.copy()
            for token in range(base, base + tokens):
                if group_at[token] != groups + 1:
                    continue
                mark = marks[token]
                scripts = mark & _SCRIPTS
                chosen_group, best = int(group_of[scripts]), 0
                for other in range(_ALIKE):
                    if (scripts >> np.uint32(other)) & _ONE32 and pure[other] >= best:
                        chosen_group, best = other, pure[other] + 1
                group_at[token] = chosen_group
                inside[chosen_group] += 1
                lettered[chosen_group] += 1
                if mark >> _MARKS:
                    for rank in range(most if chosen_group < groups else 0):
                        member = members[chosen_group, rank]
                        if member >= 0 and (mark >> (_MARKS + np.uint32(member))) & _ONE32:
                            shown[chosen_group, rank] += 1
        # 3: the language of each script in this text.
        own = declared[text]
        winners[groups] = rest
        for each in range(groups):
            winners[each] = members[each, 0]
            best = enough = 0
            is_own = False
            for rank in range(most):
                member = members[each, rank]
                if member >= 0 and member == own:
                    is_own = True
                if shown[each, rank] > 0 and shown[each, rank] * RARITY >= inside[each]:
                    enough += 1
                    if shown[each, rank] > best:
                        best = shown[each, rank]
                        winners[each] = member
            if is_own:
                winners[each] = own
            elif enough > 1:
                odd = True
        if odd:
            unusual[text] = True
            continue
        for each in range(groups + 1):
            salt_of[each] = salts[winners[each]]
            votes[text, winners[each]] += lettered[each]
        # 4: canonical tokens. Words found missing take the first places of the block, which are done with.
        before = kept
        for token in range(np.uint64(base), np.uint64(base + tokens)):
            key = keys[token] ^ salt_of[group_at[token]]
            if key == 0:
                key = _ONE
            slot = key & last
            while slot_keys[slot] != key and slot_keys[slot] != 0:
                slot = (slot + _ONE) & last
            if slot_keys[slot] == 0:
                language = winners[group_at[token]]
                starts[missing], ends[missing] = starts[token], ends[token]
                chosen[missing], keys[missing], marks[missing] = language, key, marks[token]
                missing += 1
                continue
            removed += slot_repairs[slot]
            value = slot_values[slot]
            hashes[kept] = value
            kept += value != 0
        counts[text] = kept - before
        repairs[text] = removed
        base += tokens
    return missing, kept
