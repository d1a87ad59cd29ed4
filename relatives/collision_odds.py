"""The birthday problem: how many shingles fingerprints of so many bits keep apart."""

from dataclasses import dataclass
from math import expm1, log1p, sqrt

from shinglefold.errors import ConfigError

#: Widths of the table, in bits.
WIDTHS = (32, 40, 48, 56, 64, 72)
#: Probabilities of a collision the table is made for.
PROBABILITIES = (0.01, 0.1, 0.4)


@dataclass(frozen=True, slots=True)
class Width:
    """What fingerprints of some bits are good for.

    ``root``: √R of the R = 2^bits values, the number of shingles from which collisions are to be expected.
    ``shingles``: for each of ``PROBABILITIES``, the shingles that collide anywhere with that probability.
    """

    bits: int
    root: float
    shingles: tuple[float, ...]


def table() -> tuple[Width, ...]:
    """Return the birthday table, one row for each of ``WIDTHS``."""
    return tuple(
        Width(bits, sqrt(2.0**bits), tuple(most_shingles(bits, chance) for chance in PROBABILITIES))
        for bits in WIDTHS
    )


def most_shingles(bits: int, probability: float) -> float:
    """Return how many shingles of this width have a collision among them with this probability.

    Args:
        probability: from 0 up and below 1.

    Source: N = √(2R ln(1/(1 − P))), the usual approximation of the birthday problem for N much below R.
    """
    return sqrt(2.0 * 2.0**bits * -log1p(-probability))


def expected_collisions(shingles: int, bits: int) -> float:
    """Return how many pairs of so many distinct shingles are expected to have equal fingerprints."""
    return shingles * (shingles - 1) / 2.0 / 2.0**bits


def collision_probability(shingles: int, bits: int) -> float:
    """Return the probability that any two of so many distinct shingles have equal fingerprints."""
    return -expm1(-expected_collisions(shingles, bits))


def width_for(shingles: int, probability: float) -> int:
    """Return the narrowest of ``WIDTHS`` at which a collision is no more probable than this.

    Raises:
        ConfigError: there is none.
    """
    for bits in WIDTHS:
        if collision_probability(shingles, bits) <= probability:
            return bits
    raise ConfigError(
        f"{shingles:,} shingles are too many for {WIDTHS[-1]} bits at a probability of {probability:g}; "
        "bear a greater probability, or hash to 128 bits"
    )
