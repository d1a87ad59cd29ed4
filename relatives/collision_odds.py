"""The birthday problem: how probable collisions of fingerprints are, by their width."""

from dataclasses import dataclass
from math import expm1, log1p, sqrt

from shinglefold.errors import ConfigError

#: The widths in the table, in bits.
WIDTHS = (32, 40, 48, 56, 64, 72)
#: The probabilities of a collision in the table.
PROBABILITIES = (0.01, 0.1, 0.4)


@dataclass(frozen=True, slots=True)
class Width:
    """A row of the birthday table.

    ``root``: √R for R = 2^bits values; with more shingles, collisions are likely.
    ``shingles``: for each of ``PROBABILITIES``, how many shingles have a collision with that probability.
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
    """Return how many shingles have a collision with this probability.

    Args:
        probability: at least 0 and below 1.

    Source: N = √(2R ln(1/(1 − P))), the usual approximation of the birthday problem for N much below R.
    """
    return sqrt(2.0 * 2.0**bits * -log1p(-probability))


def expected_collisions(shingles: int, bits: int) -> float:
    """Return the expected number of pairs of distinct shingles with equal fingerprints."""
    return shingles * (shingles - 1) / 2.0 / 2.0**bits


def collision_probability(shingles: int, bits: int) -> float:
    """Return the probability that any two distinct shingles have equal fingerprints."""
    return -expm1(-expected_collisions(shingles, bits))


def width_for(shingles: int, probability: float) -> int:
    """Return the narrowest of ``WIDTHS`` with at most this probability of a collision.

    Raises:
        ConfigError: even the widest has more.
    """
    for bits in WIDTHS:
        if collision_probability(shingles, bits) <= probability:
            return bits
    raise ConfigError(
        f"{shingles:,} shingles are too many for {WIDTHS[-1]} bits at a probability of {probability:g}; "
        "accept a greater probability, or use hashes of 128 bits"
    )
