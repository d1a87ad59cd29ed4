"""The text stage of a page: pairs of it that their signatures leave in doubt are decided by their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shinglefold.rerank.fold.columns import Reader
from shinglefold.rerank.fold.folding import Group
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.hits import Hit, stored_value
from shinglefold.rerank.request.options import FoldOptions
from shinglefold.scheme import Scheme
from shinglefold.seal import Seal
from shinglefold.sketch import Texts, Words, alike_by_text, least_estimate, standard_error

if TYPE_CHECKING:
    from shinglefold.canon import Canonicalizer

#: Standard errors of the estimate above the threshold within which texts are asked.
DOUBT = 2.0
Pair = tuple[int, int]


class Settled(NamedTuple):
    """A page after its texts were asked; ``joined``: groups that went into another; ``parted``: members that
    stand for themselves.
    """

    groups: list[Group]
    joined: int
    parted: int


@dataclass(frozen=True, slots=True)
class TextStage:
    """Decides on pairs of stored texts as ``pairs`` does."""

    scheme: Scheme
    fields: tuple[str, ...]
    _canonical: "Canonicalizer" = field(repr=False)
    _written: "Canonicalizer" = field(repr=False)

    @classmethod
    def of(cls, scheme: Scheme, fields: tuple[str, ...], canonicalizer: "Canonicalizer") -> "TextStage":
        """Return the stage of a scheme.

        Args:
            fields: whose texts say what a document is; what fingerprints were made of.
        """
        from shinglefold.canon import Canonicalizer

        return cls(scheme, fields, canonicalizer, Canonicalizer.as_written(scheme))

    def decide(self, pairs: Sequence[Pair], sources: Mapping[int, Mapping[str, Any]]) -> dict[Pair, bool]:
        """Return of pairs of places whether their texts are alike; pairs without both texts are left out.

        Cost: 5 to 40 µs a pair of usual texts, beside reading them: some 100 µs each.
        """
        texts = {place: self._text(source) for place, source in sources.items()}
        known = [(a, b) for a, b in pairs if texts.get(a) and texts.get(b)]
        if not known:
            return {}
        places = sorted({place for pair in known for place in pair})
        row = {place: at for at, place in enumerate(places)}
        said = [texts[place] for place in places]
        ones, others = (np.array([row[pair[side]] for pair in known], np.int64) for side in (0, 1))
        least = self.scheme.decision.min_similarity
        batches = [one.hash_batch(said) for one in (self._written, self._canonical)]
        words = Texts(*(Words.of(batch.hashes, batch.offsets) for batch in batches))
        alike, similarity = alike_by_text(words, ones, others, least)
        told = zip(known, alike.tolist(), np.isnan(similarity).tolist(), strict=True)
        return {pair: verdict for pair, verdict, unknown in told if not unknown}

    def _text(self, source: Mapping[str, Any]) -> str:
        found = (stored_value(source, name) for name in self.fields)
        parts = (part for value in found for part in (value if isinstance(value, list) else [value]))
        return "\n".join(part for part in parts if isinstance(part, str))


def in_doubt(
    hits: Mapping[int, Hit], scheme: Scheme, options: FoldOptions, dedup: str, seal: Seal | None
) -> tuple[set[Pair], set[Pair]]:
    """Return the pairs of places, a < b, on which signatures are no word, and those that surely match.

    In doubt are pairs that would match at the least estimate at which texts can still be alike, and not at
    two standard errors above the threshold. Below it a page has few: two standard errors would leave as many
    copies as they find. The language of a half-translated page is no word either: texts of two languages have
    no words in common, so these pairs are in doubt, too.
    """
    decision = scheme.decision
    asked = options.min_resemblance
    least = decision.min_resemblance if asked is None else asked
    if least <= 0 or len(hits) < 2:
        return set(), set()
    sketch = scheme.sketch
    most = least + DOUBT * standard_error(least, sketch.values, sketch.bits)
    width = max(sketch.word_width, sketch.char_width)
    low = min(least, max(1e-9, least_estimate(decision.min_similarity, width, sketch)))
    places = sorted(hits)
    prints = Reader(scheme, dedup, options.scope, seal).read([hits[place] for place in places])
    rows = np.arange(len(places))
    found = []
    for edge, across in ((low, True), (min(1.0, most), options.across_languages)):
        matcher = Matcher.of(scheme, replace(options, min_resemblance=edge, across_languages=across))
        ready = matcher.prepare(prints)
        found.append(matcher.matches(ready, rows, ready))
    doubtful, sure = (
        {(places[a], places[b]) for a, b in np.argwhere(np.triu(mask, 1)).tolist()}
        for mask in (found[0] & ~found[1], found[1])
    )
    return doubtful, sure


def pairs_to_ask(groups: Sequence[Group], attached: Sequence[Sequence[int]], doubt: set[Pair]) -> list[Pair]:
    """Return those in doubt that decide on a page: hits shown with one another and with their own members."""
    shown = {group.representative for group in groups}
    own = {_pair(group.representative, at) for group, at_ in zip(groups, attached, strict=True) for at in at_}
    return sorted(pair for pair in doubt if pair in own or shown.issuperset(pair))


def settle(groups: Sequence[Group], verdicts: Mapping[Pair, bool], part: bool = True) -> Settled:
    """Return the groups of a page as texts decide, by their best-ranked members.

    A member whose text is another than that of the hit shown becomes a group of its own; a group whose hit
    shown has the text of one before goes into that one. Each is decided with hits shown only, so that no
    chain forms.

    Args:
        verdicts: of pairs of places, a < b; pairs that are not there stay as they are.
        part: whether members may leave their groups; not where chains are wanted.
    """
    apart: list[Group] = []
    kept: list[Group] = []
    for group in groups:
        gone = [at for at in group.members if part and verdicts.get(_pair(group.representative, at)) is False]
        kept.append(Group(group.representative, tuple(at for at in group.members if at not in gone)))
        apart += [Group(at, (at,)) for at in gone]
    result: list[Group] = []
    for group in sorted([*kept, *apart], key=lambda one: one.members[0]):
        for place, other in enumerate(result):
            if verdicts.get(_pair(other.representative, group.representative)):
                members = tuple(sorted(other.members + group.members))
                result[place] = Group(other.representative, members)
                break
        else:
            result.append(group)
    return Settled(result, len(kept) + len(apart) - len(result), len(apart))


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
