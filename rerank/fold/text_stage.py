"""The text stage: pairs that signatures leave in doubt are decided by the texts themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shinglefold.contracts import JSON
from shinglefold.errors import ShinglefoldError
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
#: Texts whose words are kept, and the most bytes of one (1,000 words): pages show the same hits again.
_KEPT, _LONGEST_KEPT = 2000, 4000
Pair = tuple[int, int]


class Said(NamedTuple):
    """What the texts of a pair say: whether they are alike, and their edit similarity.

    The similarity is 0 where it is below what is needed. ``same_facts``: whether their numbers are the same,
    where these count.
    """

    alike: bool
    similarity: float
    same_facts: bool = True

    def to_json(self, needed: float) -> JSON:
        """Return it as explanations have it."""
        told: JSON = {"similarity": round(self.similarity, 4)} if self.similarity else {}
        if not self.same_facts:
            told["facts"] = "differ"
        return {**told, "needed": needed, "decided": True}


class Settled(NamedTuple):
    """A page after its texts were asked; ``joined``: groups that went into another; ``parted``: members that
    stand for themselves.
    """

    groups: list[Group]
    joined: int
    parted: int


class Zone(NamedTuple):
    """Where signatures are no word: which pairs may be alike by their texts, and which surely are.

    ``possible``: matches from the least estimate at which texts can still be alike. Below the threshold a
    page has few: two standard errors would leave as many copies as they find. The language of a
    half-translated page is no word either: these are of any languages, which share few words.
    ``sure``: matches from two standard errors above the threshold; of equal texts alone where facts count.
    """

    possible: Matcher
    sure: Matcher

    @classmethod
    def of(cls, scheme: Scheme, options: FoldOptions) -> "Zone | None":
        """Return the zone of a decision; None where no estimate is asked for."""
        decision, sketch = scheme.decision, scheme.sketch
        asked = options.min_resemblance
        least = decision.min_resemblance if asked is None else asked
        if least <= 0:
            return None
        low, most = doubtful(scheme, least)
        possible = replace(options, min_resemblance=low, across_languages=True)
        sure = Matcher.of(scheme, replace(options, min_resemblance=min(1.0, most)))
        if most > 1:
            sure = replace(sure, need=sketch.values + 1)
        return cls(Matcher.of(scheme, possible), sure)


def doubtful(scheme: Scheme, least: float) -> tuple[float, float]:
    """Return from which estimate on texts are asked, and from which on no more, at a threshold of it.

    Where facts count the second is above 1: no estimate tells of them, only equal texts surely have the same.
    """
    decision, sketch = scheme.decision, scheme.sketch
    width = max(sketch.word_width, sketch.char_width)
    low = min(least, max(1e-9, least_estimate(decision.min_similarity, width, sketch)))
    if decision.facts == "numbers":
        return low, 2.0
    return low, min(1.0, least + DOUBT * standard_error(least, sketch.values, sketch.bits))


class _Dictionaries:
    """The canonicalizers of a scheme, loaded when a text is first read, and words of texts read lately."""

    def __init__(self, scheme: Scheme, canonical: "Canonicalizer | None") -> None:
        self._scheme, self._given = scheme, canonical
        self._known: dict[bytes, tuple[bytes, bytes]] = {}
        self.missing = ""

    @cached_property
    def both(self) -> "tuple[Canonicalizer, Canonicalizer]":
        """Words as written, and canonical tokens."""
        from shinglefold.canon import Canonicalizer

        return Canonicalizer.as_written(self._scheme), self._given or Canonicalizer.of(self._scheme)

    def forget(self) -> None:
        """Forget the words of texts read lately."""
        self._known = {}

    def words(self, texts: Sequence[str]) -> Texts:
        """Return what texts say; those read lately are not read again."""
        names = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        known = self._known
        said = {name: known[name] for name in names if name in known}
        new = {name: text for name, text in zip(names, texts, strict=True) if name not in said}
        if new:
            batches = [one.hash_batch(list(new.values())) for one in self.both]
            each = (Words.of(batch.hashes, batch.offsets).bytes_of() for batch in batches)
            said |= dict(zip(new, zip(*each, strict=True), strict=True))
            if len(known) + len(new) > _KEPT:
                # Another thread may hold the old one, which it may go on reading.
                self._known = known = {}
            known |= {name: said[name] for name in new if len(said[name][0]) <= _LONGEST_KEPT}
        written, canonical = zip(*(said[name] for name in names), strict=True)
        return Texts(Words.packed(written), Words.packed(canonical))


@dataclass(frozen=True, slots=True)
class TextStage:
    """Decides on pairs of texts as ``pairs`` does.

    Attributes:
        fields: whose texts say what a document is; what fingerprints were made of.
        by_index: the same of each index by its name, where several are searched.
        wanted: whether somebody asked for it; else signatures decide where a dictionary is missing.
    """

    scheme: Scheme
    fields: tuple[str, ...]
    _dictionaries: _Dictionaries
    wanted: bool = True
    by_index: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        scheme: Scheme,
        fields: tuple[str, ...],
        canonicalizer: "Canonicalizer | None" = None,
        *,
        wanted: bool = True,
    ) -> "TextStage":
        """Return the stage of a scheme, whose dictionaries are loaded when it is first asked."""
        return cls(scheme, fields, _Dictionaries(scheme, canonicalizer), wanted)

    @property
    def needed(self) -> float:
        """The edit similarity that pairs must reach."""
        return self.scheme.decision.min_similarity

    def ready(self) -> bool:
        """Tell whether the dictionaries are there, loading them the first time.

        Raises:
            ShinglefoldError: one is missing or is another version, and texts were asked for.
        """
        try:
            return bool(self._dictionaries.both)
        except ShinglefoldError as error:
            if self.wanted:
                raise
            self._dictionaries.missing = str(error)
            return False

    @property
    def missing(self) -> str:
        """Why texts could not be read when they would have been asked; empty where they could."""
        return self._dictionaries.missing

    def decide(self, pairs: Sequence[Pair], sources: Mapping[int, Mapping[str, Any]]) -> dict[Pair, Said]:
        """Return what the texts of sources say of pairs of them; pairs without both texts are left out."""
        return self.decide_texts(pairs, {place: self.text(source) for place, source in sources.items()})

    def decide_texts(self, pairs: Sequence[Pair], texts: Mapping[int, str]) -> dict[Pair, Said]:
        """Return what texts say of pairs of them; pairs without both, or with one too long, are left out.

        Cost: 5 to 40 µs a pair of usual texts, beside reading them: some 100 µs each the first time.
        """
        known = [(a, b) for a, b in pairs if texts.get(a) and texts.get(b)]
        if not known or not self.ready():
            return {}
        places = sorted({place for pair in known for place in pair})
        row = {place: at for at, place in enumerate(places)}
        ones, others = (np.array([row[pair[side]] for pair in known], np.int64) for side in (0, 1))
        said = [texts[place] for place in places]
        words = self._dictionaries.words(said)
        if self.scheme.decision.facts == "numbers":
            from shinglefold.canon.facts import facts_of

            words = replace(words, facts=facts_of(said))
        alike, similarity = alike_by_text(words, ones, others, self.needed)
        unknown, same = np.isnan(similarity), words.same_facts(ones, others)
        told = zip(known, alike.tolist(), similarity.tolist(), same.tolist(), unknown.tolist(), strict=True)
        # Of a text that is too long its facts can be told all the same.
        return {
            pair: Said(verdict, 0.0 if unasked else share, equal)
            for pair, verdict, share, equal, unasked in told
            if not (unasked and equal)
        }

    def similarity(self, one: str, other: str) -> float | None:
        """Return the edit similarity of two texts, however small; None where one is too long, or empty."""
        if not self.ready():
            return None
        words = self._dictionaries.words([one, other]).written
        (found,) = words.similarities(np.zeros(1, np.int64), np.ones(1, np.int64), 0.0).tolist()
        return None if np.isnan(found) or not (one and other) else float(found)

    def text(self, source: Mapping[str, Any]) -> str:
        """Return what a document says."""
        return _said_in(source, self.fields)

    def text_of(self, hit: Hit) -> str:
        """Return what a document says in the fields that its index makes fingerprints of."""
        return _said_in(hit.get("_source") or {}, self.by_index.get(hit["_index"], self.fields))


def _said_in(source: Mapping[str, Any], fields: Sequence[str]) -> str:
    found = (stored_value(source, name) for name in fields)
    parts = (part for value in found for part in (value if isinstance(value, list) else [value]))
    return "\n".join(part for part in parts if isinstance(part, str))


class Stages:
    """Makes the stages of searches, which load the dictionaries of a scheme once.

    Args:
        canonicalizer: of the scheme that is searched with; None makes one when a text is first read.
    """

    def __init__(self, canonicalizer: "Canonicalizer | None" = None) -> None:
        self._canonicalizer = canonicalizer
        self._known: dict[str, _Dictionaries] = {}

    def stage(
        self,
        scheme: Scheme,
        fields: tuple[str, ...],
        *,
        wanted: bool = True,
        by_index: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> TextStage:
        """Return the stage of a scheme for texts in these fields; ``by_index``: those of each index."""
        if scheme.id not in self._known:
            self._known[scheme.id] = _Dictionaries(scheme, self._canonicalizer)
        return TextStage(scheme, fields, self._known[scheme.id], wanted, by_index)

    def forget(self) -> None:
        """Forget the words of texts read lately."""
        for dictionaries in self._known.values():
            dictionaries.forget()


def in_doubt(
    hits: Mapping[int, Hit], scheme: Scheme, options: FoldOptions, dedup: str, seal: Seal | None
) -> tuple[set[Pair], set[Pair]]:
    """Return the pairs of places, a < b, on which signatures are no word, and those that surely match."""
    zone = Zone.of(scheme, options)
    if zone is None or len(hits) < 2:
        return set(), set()
    places = sorted(hits)
    prints = Reader(scheme, dedup, options.scope, seal).read([hits[place] for place in places])
    rows = np.arange(len(places))
    found = []
    for matcher in (zone.possible, zone.sure):
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
