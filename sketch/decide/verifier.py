"""The decision on candidates: which pairs of documents are near-duplicates, and how alike they are."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import Decision, SketchOptions
from shinglefold.model.values import Bytes, Int64s
from shinglefold.sketch.bit_agreement import agreement_rows
from shinglefold.sketch.decide.edit_similarity import Texts, alike_by_text, least_estimate
from shinglefold.sketch.decide.estimators import Floats, estimate, length_ratio


class PairVerdicts(NamedTuple):
    """Of P candidates, which are pairs and how alike they are."""

    kept: NDArray[np.bool_]
    resemblance: Floats
    similarity: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PairVerifier:
    """Decides on candidates as a scheme's decision says."""

    signatures: Bytes
    shingles: Int64s
    options: SketchOptions
    decision: Decision
    texts: Texts | None

    def near(self, a: Int64s, b: Int64s) -> NDArray[np.bool_]:
        """Tell which pairs of documents are near enough in length."""
        if self.decision.verify == "keywords":
            return np.ones(len(a), np.bool_)
        return length_ratio(self.shingles[a], self.shingles[b]) >= self.decision.min_length_ratio

    def verified(self, a: Int64s, b: Int64s) -> PairVerdicts:
        """Decide on pairs of documents of a length."""
        options, decision = self.options, self.decision
        rows = self.signatures[a], self.signatures[b]
        agreeing = agreement_rows(*rows, options.bits, options.values)
        resemblance, _ = estimate(agreeing, options.values, options.bits)
        similarity = np.full(len(a), np.nan)
        if decision.verify == "keywords":
            return PairVerdicts(np.ones(len(a), np.bool_), resemblance, similarity)
        kept = resemblance >= decision.min_resemblance
        if decision.verify == "text" and self.texts is not None:
            by_text = self._by_text(self.texts, a, b, resemblance, similarity)
            kept = by_text | (kept & np.isnan(similarity) & self.texts.same_facts(a, b))
        return PairVerdicts(kept, resemblance, similarity)

    def _by_text(
        self, texts: Texts, a: Int64s, b: Int64s, resemblance: Floats, similarity: Floats
    ) -> NDArray[np.bool_]:
        """Ask the texts of the pairs that may be alike; write what they tell to ``similarity``."""
        least = self.decision.min_similarity
        asked = self._may_reach(least, resemblance)
        similarity[~asked] = 0.0
        rows = np.flatnonzero(asked)
        hopeful = self._may_reach((1 + least) / 2, resemblance[rows])
        alike, similarity[rows] = alike_by_text(texts, a[rows], b[rows], least, hopeful)
        kept = np.zeros(len(a), np.bool_)
        kept[rows] = alike
        return kept

    def _may_reach(self, similar: float, resemblance: Floats) -> NDArray[np.bool_]:
        width = max(self.options.word_width, self.options.char_width)
        return resemblance >= least_estimate(similar, width, self.options)
