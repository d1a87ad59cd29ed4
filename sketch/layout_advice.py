"""What a layout of supershingles finds and costs, compared with requirements on near-duplicates."""

from dataclasses import dataclass
from math import ceil, comb, erfc, floor, log2, log10, sqrt
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import PRESETS, SketchOptions
from shinglefold.sketch.b_bit_minhash import Floats, packed_size, standard_error
from shinglefold.sketch.minhash import HASHED, hash_bits, slot_characters
from shinglefold.sketch.shingles import MAX_WIDTH

#: How many unrelated documents a keyword may find by hash collisions, for each slot.
_COLLISIONS = 0.01
#: The most supershingles that a pair can be required to share.
_MOST_SHARED = 4


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a user.

    Attributes:
        resemblance: find pairs of at least this resemblance, between 0 and 1.
        miss: the share of pairs with exactly this resemblance that may be missed, between 0 and 1.
        documents: the size of the collection, at least 2.
        near_share: the share of all pairs with half the wanted resemblance, such as pages of one site; the
            rest have 0.02.
        strangers: how many candidates of a document may not be duplicates.
    """

    resemblance: float = 0.61
    miss: float = 0.05
    documents: int = 1_000_000
    near_share: float = 1e-5
    strangers: float = 10.0

    def __post_init__(self) -> None:
        for name in ("resemblance", "miss"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ConfigError(f"{name} {getattr(self, name)!r} must lie between 0 and 1")
        if not 0.0 <= self.near_share <= 1.0:
            raise ConfigError(f"near_share {self.near_share!r} is outside 0…1")
        if self.documents < 2 or self.strangers <= 0.0:
            raise ConfigError("documents must be at least 2, and strangers above 0")


@dataclass(frozen=True, slots=True)
class Advice:
    """What a layout finds and costs.

    Attributes:
        groups, group_size, min_shared: M, N and k.
        values, bits: those of the signature.
        found: the probability that a pair with exactly the wanted resemblance is a candidate.
        strangers: the expected candidates of a document that are not duplicates.
        error: the standard error of the estimate at the wanted resemblance.
        hash_bits: the bits a keyword needs for the size of the collection.
        keyword_bits: the bits a keyword has.
        threshold: the least estimate, two standard errors below the wanted resemblance. It dismisses one in
            44 of the candidate pairs with exactly that resemblance.
        false_folds: the expected documents that fold with half the wanted resemblance, for each document.
    """

    groups: int
    group_size: int
    min_shared: int
    values: int
    bits: int
    found: float
    strangers: float
    error: float
    hash_bits: int
    keyword_bits: int
    threshold: float
    false_folds: float

    @property
    def bytes(self) -> int:
        """Bytes a document: signature and keywords as text, before an engine encodes them."""
        return packed_size(self.values, self.bits) + self.groups * (slot_characters(self.groups) + HASHED)

    def curve(self, steps: int = 20) -> tuple[Floats, Floats]:
        """Return resemblances 0…1 in equal steps, and the probability that such pairs are found."""
        resemblance = np.linspace(0.0, 1.0, steps + 1)
        return resemblance, probability(resemblance, self.groups, self.group_size, self.min_shared)


@overload
def probability(resemblance: float, groups: int, group_size: int, min_shared: int) -> float: ...
@overload
def probability(resemblance: Floats, groups: int, group_size: int, min_shared: int) -> Floats: ...
def probability(
    resemblance: float | NDArray[np.float64], groups: int, group_size: int, min_shared: int
) -> float | Floats:
    """Return the probability that at least k of M groups of N minima are equal.

    P = 1 − Σ_{i<k} C(M, i)·qⁱ·(1 − q)^(M − i), where q = resemblance^N.

    Args:
        resemblance: 0…1, a number or an array.
        groups: M.
        group_size: N.
        min_shared: k; the probability is 1 for 0, and 0 for more than M.

    Source: Broder, Glassman, Manasse, Zweig 1997; Fetterly, Manasse, Najork 2003.
    """
    equal = np.asarray(resemblance, np.float64) ** group_size
    if min_shared > groups:
        found = np.zeros_like(equal)
    else:
        fewer = [comb(groups, i) * equal**i * (1.0 - equal) ** (groups - i) for i in range(min_shared)]
        found = np.clip(1.0 - np.sum(np.array(fewer), axis=0) if fewer else np.ones_like(equal), 0.0, 1.0)
    return found if isinstance(resemblance, np.ndarray) else float(found)


def appraise(needs: Requirements, sketch: SketchOptions, min_shared: int) -> Advice:
    """Return what a layout finds and costs with these requirements, whether it meets them or not.

    Args:
        min_shared: k, how many supershingles a candidate must share.
    """
    groups, size = sketch.groups, sketch.group_size
    error = standard_error(needs.resemblance, sketch.values, sketch.bits)
    threshold = max(0.0, needs.resemblance - 2 * error)
    half = needs.resemblance / 2
    beyond = (threshold - half) / standard_error(half, sketch.values, sketch.bits)
    passing = 0.5 * erfc(beyond / sqrt(2)) * probability(half, groups, size, min_shared)
    return Advice(
        threshold=threshold,
        false_folds=(needs.documents - 1) * needs.near_share * passing,
        groups=groups,
        group_size=size,
        min_shared=min_shared,
        values=sketch.values,
        bits=sketch.bits,
        found=probability(needs.resemblance, groups, size, min_shared),
        strangers=_strangers(needs, groups, size, min_shared),
        error=error,
        hash_bits=needed_hash_bits(needs.documents),
        keyword_bits=hash_bits(),
    )


class Layout(NamedTuple):
    """A preset, and what it finds and costs with a number of supershingles to share."""

    preset: str
    advice: Advice


class LayoutChoice(NamedTuple):
    """The layout that meets requirements, or how far they must be relaxed until a preset meets them.

    ``layout`` is None if no preset meets them. Then ``strangers`` is the least number with which one does,
    and ``miss`` the least share, both rounded up; None where this alone does not help.
    """

    layout: Layout | None
    strangers: float | None = None
    miss: float | None = None


def choose_layout(needs: Requirements, width: int) -> LayoutChoice:
    """Return the preset that meets the requirements with the fewest bytes, then the fewest strangers.

    Args:
        width: tokens in a shingle; the presets have those of ``preset_widths``.
    """
    layouts = [
        Layout(name, appraise(needs, one.sketch, shared))
        for name, one in PRESETS.items()
        if one.sketch.word_width == width
        for shared in range(1, _MOST_SHARED + 1)
    ]
    found = [one for one in layouts if 1 - one.advice.found <= needs.miss]
    fitting = [one for one in found if one.advice.strangers <= needs.strangers]
    if fitting:
        return LayoutChoice(min(fitting, key=lambda one: (one.advice.bytes, one.advice.strangers)))
    few = [one.advice.found for one in layouts if one.advice.strangers <= needs.strangers]
    miss = _round_up(1 - max(few)) if few else 1.0
    return LayoutChoice(
        None,
        _round_up(min(one.advice.strangers for one in found)) if found else None,
        miss if miss < 1.0 else None,
    )


def preset_widths() -> list[int]:
    """Return the words of a shingle that presets have, ascending."""
    return sorted({one.sketch.word_width for one in PRESETS.values()})


def _round_up(value: float) -> float:
    """Return a number rounded up to two digits."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return float(f"{ceil(value / step) * step:.6g}")


def needed_hash_bits(documents: int) -> int:
    """Return the bits of a keyword with which a slot finds 0.01 unrelated documents by collision."""
    return max(1, ceil(log2(documents / _COLLISIONS)))


def resemblance_after(replaced: float, width: int) -> float:
    """Return the resemblance of two texts if a share of the tokens is replaced at random positions.

    A token is part of w shingles: the share (1 − replaced)^w of them survives on either side.

    Args:
        replaced: share of the tokens, 0…1.
        width: w, tokens in a shingle.
    """
    kept = (1.0 - replaced) ** width
    return kept / (2.0 - kept)


def width_for(replaced: float, resemblance: float) -> int:
    """Return the widest shingle with which texts with replaced tokens still reach a resemblance.

    Wider shingles distinguish texts on one subject better. 1 may mean that no width reaches the resemblance:
    then lower it.
    """
    reached = [w for w in range(1, MAX_WIDTH + 1) if resemblance_after(replaced, w) >= resemblance]
    return max(reached, default=1)


def _strangers(needs: Requirements, groups: int, size: int, shared: int) -> float:
    near = probability(needs.resemblance / 2, groups, size, shared)
    far = probability(0.02, groups, size, shared)
    collisions = groups * 2.0 ** -hash_bits() if shared == 1 else 0.0
    return (needs.documents - 1) * (needs.near_share * near + (1.0 - needs.near_share) * far + collisions)
