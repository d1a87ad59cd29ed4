"""Some hundred made-up pages, more or less like each other, and which of them match."""

import random
from collections.abc import Iterator
from functools import cache

import numpy as np
from support.hits import BITS, SCHEME, VALUES, Spec, values_of

from shinglefold.sketch.b_bit_minhash import estimate
from shinglefold.sketch.clustering import connected_components

COUNT = 400
#: Worked out once, as it is asked for at each of many thousand pairs.
_SCHEME_ID = SCHEME.id


def spec_of(number: int) -> Spec:
    """One of some originals, more or less changed; equal texts are equal in everything."""
    rng = random.Random(number)
    original, changed, seed = rng.randrange(12), rng.choice([0, 0, 8, 30, 55, 60, 64, 90]), rng.randrange(9)
    shingles = 300 + rng.choice([0, 0, 20, 200])
    lang, signed = "uk" if rng.random() < 0.1 else "ru", rng.random() > 0.1
    version = f"{changed}v{seed}" if changed else "0"
    # Without a signature a text is known by its digest alone, whatever language it declares.
    text = f"t{original}-{version}-{shingles}-{lang}" if signed else f"short{original}-{shingles}"
    return Spec(
        original=original,
        changed=changed,
        seed=seed,
        shingles=shingles,
        digest=text,
        lang=lang,
        signed=signed,
        scheme="sf1-other" if rng.random() < 0.05 else SCHEME.id,
        host=rng.choice(["a.org", "b.org", None]),
        published=rng.randrange(1_000_000),
    )


SPECS = [spec_of(number) for number in range(COUNT)]


@cache
def pair(number: int) -> tuple[list[float], list[bool]]:
    """Of one beside all: the resemblance, and whether a supershingle is in common."""
    values = _all_values()
    agreeing = (values == values[number]).sum(axis=1)
    size, groups = SCHEME.sketch.group_size, SCHEME.sketch.groups
    same = (values == values[number])[:, : size * groups].reshape(COUNT, groups, size)
    return estimate(agreeing, VALUES, BITS)[0].tolist(), same.all(axis=2).any(axis=1).tolist()


@cache
def _all_values() -> np.ndarray:
    return np.array([values_of(spec) for spec in SPECS])


def alike(number: int, other: int, least: float = SCHEME.decision.min_resemblance) -> bool:
    """Whether two pages of the scheme match and share a supershingle, or have the same text."""
    a, b = SPECS[number], SPECS[other]
    if not a.scheme == b.scheme == _SCHEME_ID:
        return False
    if a.digest == b.digest:
        return True
    resemblances, shared = pair(number)
    ratio = 2 * min(a.shingles, b.shingles) / (a.shingles + b.shingles)
    signed = a.signed and b.signed
    near = resemblances[other] >= least and ratio >= SCHEME.decision.min_length_ratio
    return signed and shared[other] and near


def resembling() -> Iterator[tuple[int, int]]:
    for number in range(COUNT):
        yield from ((number, other) for other in range(number) if alike(number, other))


@cache
def components() -> list[int]:
    """By the number of a page: the number of its group, where whatever matches is in one group."""
    ones, others = zip(*resembling(), strict=True)
    found: list[int] = connected_components(np.array(ones), np.array(others), COUNT).tolist()
    return found
