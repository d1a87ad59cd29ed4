"""Two texts compared under a scheme: exactly, by estimate, and as the scheme decides."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.ingest.fingerprinter import FingerprintArrays, Fingerprinter
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import TokenBatch, Uint64s, facts_differ
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate, length_ratio
from shinglefold.sketch.shingles import containment, shingle_set, sorensen
from shinglefold.sketch.shingles import resemblance as exact_resemblance
from shinglefold.sketch.verification import DecidedBy, PairVerifier, Words


@dataclass(frozen=True, slots=True)
class Side:
    """One of the texts.

    ``shingles``: positions; ``distinct``: different ones; ``repairs``: look-alike letters replaced and
    invisible characters deleted; ``signature``: whether it has enough shingles for one.
    """

    name: str
    language: str
    tokens: int
    shingles: int
    distinct: int
    repairs: int
    signature: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate from two fingerprints: resemblance with its standard error, common supershingles."""

    resemblance: float
    standard_error: float
    shared: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the scheme says of two texts; ``estimate`` is None if one has no signature.

    ``containment``: the share of A found in B, and of B found in A. ``same_text``: the canonical tokens are
    the same, and there are some. ``similarity``: the edit similarity of the words as they are written, None
    if a text is too long for it.
    ``folds``: the verdict; ``decided_by``: what decided.
    """

    a: Side
    b: Side
    resemblance: float
    containment: tuple[float, float]
    sorensen: float
    same_text: bool
    length_ratio: float
    similarity: float | None
    estimate: Estimate | None
    folds: bool
    decided_by: DecidedBy

    def to_json(self, scheme: Scheme) -> dict[str, Any]:
        """Return the comparison as JSON, shares rounded to four digits."""
        told = _round_values(asdict(self))
        told["containment"] = dict(zip(("a_in_b", "b_in_a"), told["containment"], strict=True))
        verdict = {name: told.pop(name) for name in ("folds", "decided_by")}
        options = {"groups": scheme.sketch.groups, "decision": asdict(scheme.decision)}
        return {"scheme": scheme.id, **told, **options, **verdict}


def _round_values(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _round_values(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_round_values(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


def compare_texts(
    texts: tuple[str, str],
    names: tuple[str, str],
    languages: tuple[str | None, str | None],
    scheme: Scheme,
    facts: Sequence[str] | None = None,
) -> Comparison:
    """Compare two texts.

    Args:
        languages: the declared languages; None chooses the language word by word.
        facts: what must not differ, from ``NeverDiffer.facts``; None for nothing.
    """
    fingerprinter = Fingerprinter(scheme)
    canonicalizer = fingerprinter.canonicalizer
    prints = fingerprinter.fingerprint_arrays(texts, languages, facts)
    words = fingerprinter.written(texts, languages) if prints.texts is None else prints.texts.written
    batch = canonicalizer.hash_batch(texts, languages)
    sets = [
        _shingles(
            canonicalizer, scheme, batch.languages[d], batch.hashes[batch.offsets[d] : batch.offsets[d + 1]]
        )
        for d in (0, 1)
    ]
    counts = np.diff(batch.offsets).tolist()
    sides = [
        Side(
            names[d],
            prints.languages[d],
            counts[d],
            int(prints.shingles[d]),
            len(sets[d]),
            int(prints.repairs[d]),
            bool(prints.valid[d]),
        )
        for d in (0, 1)
    ]
    return Comparison(
        a=sides[0],
        b=sides[1],
        resemblance=exact_resemblance(*sets),
        containment=(containment(*sets), containment(sets[1], sets[0])),
        sorensen=sorensen(*sets),
        same_text=_same(batch),
        length_ratio=float(length_ratio(prints.shingles[0], prints.shingles[1])),
        similarity=_similarity(words),
        estimate=_estimate_resemblance(prints, scheme),
        folds=len(prints.pairs(scheme)) > 0,
        decided_by=_decided_by(prints, scheme),
    )


def _decided_by(prints: FingerprintArrays, scheme: Scheme) -> DecidedBy:
    """Return what decides on the two texts, in the order of ``find_pairs``."""
    if facts_differ(*prints.digests):
        return "facts"
    if prints.digests[0] and prints.digests[0] == prints.digests[1]:
        return "same_text"
    if not prints.valid.all():
        return "too_short"
    decision = scheme.decision
    only_stored = decision.min_shared > 1 or decision.verify == "keywords"
    one, other = prints.supershingles[:, : scheme.sketch.groups if only_stored else None]
    if np.count_nonzero(one == other) < decision.min_shared:
        return "supershingles"
    return PairVerifier(prints.signatures, prints.shingles, scheme.sketch, decision, prints.texts).decided_by(
        0, 1
    )


def _shingles(canonicalizer: Canonicalizer, scheme: Scheme, language: str, hashes: Uint64s) -> Uint64s:
    by_char = canonicalizer.unit(language) == "char"
    width = scheme.sketch.char_width if by_char else scheme.sketch.word_width
    return shingle_set(hashes, width, scheme.sketch.counted)


def _same(batch: TokenBatch) -> bool:
    """Return whether both texts have the same tokens, at least one. A digest needs two tokens."""
    one, other = (batch.hashes[batch.offsets[d] : batch.offsets[d + 1]] for d in (0, 1))
    return one.size > 0 and np.array_equal(one, other)


def _similarity(words: Words) -> float | None:
    found = float(words.similarities(np.array([0]), np.array([1]), 0.0)[0])
    return None if np.isnan(found) else found


def _estimate_resemblance(prints: FingerprintArrays, scheme: Scheme) -> Estimate | None:
    if not prints.valid.all():
        return None
    values, bits = scheme.sketch.values, scheme.sketch.bits
    agreeing = int(agreement_rows(prints.signatures[:1], prints.signatures[1:], bits, values)[0])
    resemblance, error = estimate(agreeing, values, bits)
    stored = prints.supershingles[:, : scheme.sketch.groups]
    shared = int(np.count_nonzero(stored[0] == stored[1]))
    return Estimate(resemblance, error, shared)
