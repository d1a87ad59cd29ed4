"""The text stage: decides uncertain pairs by their texts."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from math import isnan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shinglefold.contracts.engine import JSON
from shinglefold.documents import FORMAT
from shinglefold.errors import ShinglefoldError
from shinglefold.model.recipe import stored_recipe
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import split_digest, text_digest
from shinglefold.rerank.fold.uncertain_pairs import Pair, bag_estimate
from shinglefold.rerank.hits import Hit, joined_texts, language_code, stored_value
from shinglefold.rerank.index_fields import mapped_at
from shinglefold.sketch.sketcher import token_digests
from shinglefold.sketch.verification import DecidedBy, Texts, Words, alike_by_text, text_decided_by

if TYPE_CHECKING:
    from shinglefold.canon import Canonicalizer

#: The most texts in the cache, the most bytes of one (1,000 words), and the most verdicts in the cache, 150
#: bytes each. They are cached because many pages show the same hits.
_KEPT, _LONGEST_KEPT, _DECIDED = 2000, 4000, 20_000
#: Two texts by their hashes, and whether equal tokens count in any order.
_Names = tuple[bytes, bytes, bool]
Key = TypeVar("Key")
Value = TypeVar("Value")


class TextVerdict(NamedTuple):
    """Whether the texts of a pair are alike, and their edit similarity.

    The similarity is 0 if it is below the threshold.
    """

    alike: bool
    similarity: float

    def decided_by(self, needed: float) -> DecidedBy:
        """Return what decided; ``needed``: the least edit similarity."""
        return text_decided_by(self.similarity, needed)

    def to_json(self, needed: float) -> JSON:
        """Return the verdict as JSON for explanations."""
        result: JSON = {"similarity": round(self.similarity, 4)} if self.similarity else {}
        return {**result, "needed": needed, "decided": True}


class _Dictionaries:
    """The canonicalizers of a scheme, loaded on first use, with caches of words and of verdicts."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._written: dict[bytes, bytes] = {}
        self._tokens: dict[bytes, bytes] = {}
        self._verdicts: dict[tuple[_Names, float], tuple[bool, float]] = {}
        self._digests: dict[tuple[bytes, str], str] = {}
        self.missing = ""

    @cached_property
    def both(self) -> "tuple[Canonicalizer, Canonicalizer]":
        """The canonicalizer of words as written, and that of canonical tokens."""
        from shinglefold.canon import Canonicalizer

        return Canonicalizer.as_written(self._scheme), Canonicalizer.of(self._scheme)

    def alike(
        self, pairs: Sequence[_Names], texts: Mapping[bytes, str], least: float
    ) -> list[tuple[bool, float]]:
        """Return for each pair of texts whether they match, and their similarity; NaN if one is too long."""
        cache = self._verdicts
        verdicts = {pair: found for pair in pairs if (found := cache.get((pair, least))) is not None}
        new = [pair for pair in dict.fromkeys(pairs) if pair not in verdicts]
        if new:
            verdicts |= zip(new, self._decide(new, texts, least), strict=True)
            _add_to_cache(cache, {(pair, least): verdicts[pair] for pair in new}, _DECIDED)
        return [verdicts[pair] for pair in pairs]

    def _decide(
        self, pairs: Sequence[_Names], texts: Mapping[bytes, str], least: float
    ) -> Iterator[tuple[bool, float]]:
        """Compare words as written first: few pairs remain for canonical tokens, which cost more."""
        alike, similarity = self._compare(pairs, texts, least, anywhere=False)
        as_bags = np.array([pair[2] for pair in pairs])
        rest = np.flatnonzero(as_bags & ~alike & ~np.isnan(similarity)).tolist()
        if rest:
            alike[rest], similarity[rest] = self._compare(
                [pairs[at] for at in rest], texts, least, anywhere=True
            )
        return zip(alike.tolist(), similarity.tolist(), strict=True)

    def _compare(
        self, pairs: Sequence[_Names], texts: Mapping[bytes, str], least: float, *, anywhere: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        row = {name: at for at, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair[:2]))}
        ones = np.array([row[one] for one, _, _ in pairs], np.int64)
        others = np.array([row[other] for _, other, _ in pairs], np.int64)
        own = {name: texts[name] for name in row}
        written = self.written_words(own)
        tokens = Texts(written, self._words(self._tokens, self.both[1], own) if anywhere else written)
        return alike_by_text(tokens, ones, others, least, np.full(len(pairs), anywhere))

    def digests(self, texts: Sequence[tuple[str, str]]) -> list[str]:
        """Return the digests of texts, each given with its declared language, or an empty one."""
        keys = [(_text_hash(text), language) for text, language in texts]
        known = {key: found for key in keys if (found := self._digests.get(key)) is not None}
        new = {key: one for key, one in zip(keys, texts, strict=True) if key not in known}
        if new:
            each = [text for text, _ in new.values()], [language or None for _, language in new.values()]
            batch = self.both[1].hash_batch(*each)
            made = dict(zip(new, token_digests(batch.hashes, batch.offsets), strict=True))
            _add_to_cache(self._digests, made, _DECIDED)
            known |= made
        return [known[key] for key in keys]

    def written_words(self, texts: Mapping[bytes, str]) -> Words:
        """Return the words of texts as written."""
        return self._words(self._written, self.both[0], texts)

    def _words(self, cache: dict[bytes, bytes], tool: "Canonicalizer", texts: Mapping[bytes, str]) -> Words:
        """Return the words of texts, from the cache if it has them."""
        words = {name: found for name in texts if (found := cache.get(name)) is not None}
        new = {name: text for name, text in texts.items() if name not in words}
        if new:
            batch = tool.hash_batch(list(new.values()))
            words |= zip(new, Words.of(batch.hashes, batch.offsets).bytes_of(), strict=True)
            _add_to_cache(cache, {key: words[key] for key in new if len(words[key]) <= _LONGEST_KEPT}, _KEPT)
        return Words.packed([words[name] for name in texts])


def _add_to_cache(cache: dict[Key, Value], new: Mapping[Key, Value], most: int) -> None:
    """Add entries to a cache; clear it first if it would grow too large."""
    if len(cache) + len(new) > most:
        cache.clear()
    cache.update(new)


@dataclass(frozen=True, slots=True)
class TextStage:
    """Decides pairs of texts as the command ``pairs`` does.

    Attributes:
        fields: the fields whose texts are compared, those of the fingerprints.
        by_index: the same by index name, if several indices are searched.
        wanted: whether a missing dictionary is an error; else signatures decide then.
        signed: how fingerprints were made of the texts; None if a text does not tell whether it is theirs.
    """

    scheme: Scheme
    fields: tuple[str, ...]
    _dictionaries: _Dictionaries
    wanted: bool = True
    by_index: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    signed: "SignedTexts | None" = None

    @property
    def needed(self) -> float:
        """The edit similarity that pairs must reach."""
        return self.scheme.decision.min_similarity

    def ready(self) -> bool:
        """Load the dictionaries and return whether that worked; raise if the caller requires texts."""
        try:
            return bool(self._dictionaries.both)
        except ShinglefoldError as error:
            if self.wanted:
                raise
            self._dictionaries.missing = str(error)
            return False

    @property
    def missing(self) -> str:
        """Why texts were not compared; empty if they could be."""
        return self._dictionaries.missing

    def decide_texts(
        self, pairs: Sequence[Pair], texts: Mapping[int, str], as_bags: Container[Pair]
    ) -> dict[Pair, TextVerdict]:
        """Return the verdicts on pairs of texts; pairs with an unknown or too long text are left out.

        Args:
            as_bags: pairs whose equal tokens count in any order, from the method of this name.

        Cost: 5 to 40 µs for a pair of usual texts, and some 100 µs for each new text; 15 µs for a cached
        pair.
        """
        known = [(a, b) for a, b in pairs if texts.get(a) and texts.get(b)]
        if not known or not self.ready():
            return {}
        name = {place: _text_hash(texts[place]) for pair in known for place in pair}
        named = [(name[a], name[b], (a, b) in as_bags) for a, b in known]
        alike = self._dictionaries.alike(named, {name[place]: texts[place] for place in name}, self.needed)
        return {
            pair: TextVerdict(matches, share)
            for pair, (matches, share) in zip(known, alike, strict=True)
            if not isnan(share)
        }

    def as_bags(self, pairs: Iterable[Pair], resemblance: Iterable[float]) -> set[Pair]:
        """Return the pairs whose estimates are so high that equal tokens count in any order."""
        least = bag_estimate(self.scheme)
        return {pair for pair, alike in zip(pairs, resemblance, strict=True) if alike >= least}

    def similarity(self, one: str, other: str) -> float | None:
        """Return the edit similarity of two texts, however small; None if one is too long, or empty."""
        if not (one and other and self.ready()):
            return None
        if one == other:
            return 1.0
        words = self._dictionaries.written_words({_text_hash(text): text for text in (one, other)})
        (found,) = words.similarities(np.zeros(1, np.int64), np.ones(1, np.int64), 0.0).tolist()
        return None if isnan(found) else float(found)

    @property
    def sources(self) -> tuple[str, ...]:
        """The parts of a source that ``text`` reads."""
        declared = () if self.signed is None else (self.signed.language_field,)
        return (*self.fields, FORMAT, *filter(None, declared))

    def text(self, source: Mapping[str, Any], index: str = "") -> str:
        """Return the text of a document, joined from the fields that are fingerprinted in its index."""
        return joined_texts(source, self.by_index.get(index, self.fields))

    def stale(self, documents: Mapping[Key, tuple[Mapping[str, Any], str]]) -> set[Key]:
        """Return the documents whose fingerprints were made of another text.

        Uncertain documents are omitted, such as those whose text a role may hide in part.

        Args:
            documents: the source with the fields of texts, and the stored digest of each.

        Cost: some 100 µs for a new text of usual length; a few µs if it was compared before.
        """
        signed = self.signed
        if signed is None or self.by_index:
            return set()
        heads = {key: split_digest(digest) for key, (_, digest) in documents.items()}
        left = {
            key: self._readings(source, signed.language_field)
            for key, (source, _) in documents.items()
            if heads[key].scheme == self.scheme.id and signed.has_whole_text(source, self.fields)
        }
        if not left or not self.ready():
            return set()
        # The first reading fits nearly all; further ones are made of the others.
        while tried := {key: one for key, some in left.items() if (one := next(some, None)) is not None}:
            for key, digest in zip(tried, self._dictionaries.digests(list(tried.values())), strict=True):
                if digest == text_digest(heads[key].digest):
                    del left[key]
        return set(left)

    def _readings(self, source: Mapping[str, Any], language_field: str) -> Iterator[tuple[str, str]]:
        """Yield the texts that a fingerprint may be made of, each with a language."""
        declared = language_code(self.scheme, stored_value(source, language_field))
        for one in _without_markup(source, self.fields):
            text = joined_texts(one, self.fields)
            yield from ((text, language) for language in dict.fromkeys((declared, "")))

    def text_of(self, hit: Hit) -> str:
        """Return the text of the document of a hit."""
        return self.text(hit.get("_source") or {}, hit["_index"])


#: The processors of pipelines whose fingerprints can be made again of a stored text.
_REPEATABLE = frozenset({"html_strip", "set", "supershingle", "detect_language", "canonicalize"})


@dataclass(frozen=True, slots=True)
class SignedTexts:
    """How the fingerprints of an index were made of the texts in its documents.

    ``language_field``: the field of a declared language. ``mapped``: the text fields that all mappings have,
    so that a document without one lacks it; others may be hidden from the role.
    """

    language_field: str
    mapped: frozenset[str]

    @classmethod
    def of(cls, several: Iterable[Mapping[str, Any]]) -> "SignedTexts | None":
        """Return what the mappings of indices say; None if a text can't tell whether it was fingerprinted."""
        found = list(several)
        recipes = [stored_recipe(one) or {} for one in found]
        steps = [step for one in recipes for step in (one.get("pipeline") or {}).get("processors", ())]
        names = {str(name) for step in steps for name in step}
        made = [step["supershingle"] for step in steps if "supershingle" in step]
        # A text may be changed by other processors, and by a step that writes to a field that is read.
        targets = {str(options.get("target_field", "")) for step in steps for options in step.values()}
        targets |= {str(step["set"].get("field", "")) for step in steps if "set" in step}
        fields = {str(field) for one in recipes for field in one.get("fields", ())}
        if not found or names - _REPEATABLE or len(made) != len(found) or targets & fields:
            return None
        declared = {str(one.get("language_field", "")) for one in made}
        if len(declared) > 1 or any("language" in one for one in made):
            return None
        mapped = {name for name in fields if all(mapped_at(one, name) is not None for one in found)}
        return cls(declared.pop(), frozenset(mapped))

    def has_whole_text(self, source: Mapping[str, Any], fields: Sequence[str]) -> bool:
        """Return whether a source has the whole text, as far as its client may read it."""
        values = {name: stored_value(source, name) for name in fields}
        return any(isinstance(value, str) for value in values.values()) and all(
            isinstance(value, str) or (value is None and name in self.mapped)
            for name, value in values.items()
        )


def _without_markup(source: Mapping[str, Any], fields: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield a source, and its text fields without markup if they have any."""
    yield source
    values = {name: stored_value(source, name) for name in fields}
    if any(isinstance(value, str) and "<" in value for value in values.values()):
        from shinglefold.canon import strip_html

        for keep_hidden in (True, False):
            yield {
                name: strip_html(value, keep_hidden) if isinstance(value, str) and name != "title" else value
                for name, value in values.items()
            }


def _text_hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class TextStages:
    """Creates text stages that share the verdicts of a scheme."""

    def __init__(self) -> None:
        self._dictionaries: dict[str, _Dictionaries] = {}

    def stage(
        self,
        scheme: Scheme,
        fields: tuple[str, ...],
        *,
        wanted: bool = True,
        by_index: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        mappings: Iterable[Mapping[str, Any]] = (),
    ) -> TextStage:
        """Return the stage of a scheme for texts in these fields.

        Args:
            by_index: the fields of each index.
            mappings: those of the indices, which tell how fingerprints were made.
        """
        if scheme.id not in self._dictionaries:
            self._dictionaries[scheme.id] = _Dictionaries(scheme)
        signed = SignedTexts.of(mappings)
        return TextStage(scheme, fields, self._dictionaries[scheme.id], wanted, by_index, signed)
