"""Why two documents fold: their fingerprints, and the passages that their texts share."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from shinglefold.contracts.engine import JSON
from shinglefold.documents import FORMAT
from shinglefold.errors import ConfigError, InputError, SchemeMismatch, shorten
from shinglefold.model.recipe import FIELD, LANGUAGE, signed_fields
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint, PlacedTokens, Token, facts_differ, text_digest
from shinglefold.options.validation import check_object, check_strings, expected
from shinglefold.rerank.fold.clustering import collapse
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.fold.uncertain_pairs import Signatures
from shinglefold.rerank.hits import (
    FingerprintReader,
    Hit,
    joined_texts,
    stored_fingerprint,
    stored_texts,
)
from shinglefold.rerank.index_fields import hit_language, languages_of
from shinglefold.rerank.request.arguments import request_source_filter
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate, length_ratio
from shinglefold.sketch.verification import DecidedBy

if TYPE_CHECKING:
    from shinglefold.passages.alignment import Passage, Span
    from shinglefold.rerank.fold.text_verification import TextStage

#: Returns the tokens of a text in a declared language; None if it declares none.
Tokenize = Callable[[str, str | None], Sequence[Token] | PlacedTokens]
#: The separator token between the texts of a document, by side; those of the two sides differ.
_BORDERS = {"a": 1, "b": 2}
#: The most characters of a document that are compared.
_MOST_CHARACTERS = 1_000_000
_MOST_FIELDS = 1_000


class PassageTexts(NamedTuple):
    """The fields whose texts are compared, the tokenizer, and the languages of each index.

    ``languages``: see ``languages_of``.
    """

    fields: tuple[str, ...]
    tokenize: Tokenize
    scheme: Scheme
    languages: Mapping[str, tuple[str, str]]

    @property
    def sources(self) -> tuple[str, ...]:
        """The parts of a source that ``passages`` reads."""
        declared = {LANGUAGE, *(field for field, _ in self.languages.values() if field)}
        return (*self.fields, FORMAT, *sorted(declared))

    def passages(self, shown: tuple[Hit, JSON], member: tuple[Hit, JSON]) -> list[JSON]:
        """Return the passages that two hits have in common; each is given with its source."""
        one, other = (hit_language(self.scheme, *side, self.languages) for side in (shown, member))
        return matched_passages(shown[1], member[1], self.fields, self.tokenize, (one, other))


def shown_fields(source: object, named: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields whose texts are compared; passages show only fields that hits show.

    Args:
        source: the request's own ``_source`` filter.
        named: the fields that the request names for passages, all of which must be shown; () means those
            of ``known`` that are shown.

    Raises:
        ConfigError: the filter leaves out a field that the request names, or all known ones.
    """
    wanted = request_source_filter(source)
    shown = tuple(field for field in named or known if wanted.shows(field))
    if not shown or (named and len(shown) < len(named)):
        hidden = ", ".join(field for field in named or known if field not in shown)
        raise ConfigError(
            f"passages would show fields that _source leaves out: {shorten(hidden)}. Let _source show them, "
            'name other fields ({"explain": {"fields": […]}}), or ask without passages ("explain": true)'
        )
    return shown


class _Part(NamedTuple):
    """The text of a field, and its start in the joined text; ``value``: its index in a list."""

    begin: int
    field: str
    value: int | None
    text: str


@dataclass(frozen=True, slots=True)
class StoredText:
    """The texts of several fields, joined, and their language; passages stay within a field."""

    parts: tuple[_Part, ...]
    tokenize: Tokenize
    language: str | None

    @property
    def borders(self) -> int:
        """How many tokens are separators."""
        from shinglefold.passages.alignment import GAP

        return (GAP + 1) * max(0, len(self.parts) - 1)

    def tokens(self, side: Literal["a", "b"]) -> PlacedTokens:
        """Return the tokens of all parts; separators between them match nothing of the other side."""
        from shinglefold.passages.alignment import GAP
        from shinglefold.passages.shingle_positions import in_columns

        found: list[PlacedTokens] = [in_columns(())]
        for at, part in enumerate(self.parts):
            if at:
                place = np.full(GAP + 1, part.begin, np.int64)
                found.append(PlacedTokens(np.full(GAP + 1, _BORDERS[side], np.uint64), place, place))
            own = in_columns(self.tokenize(part.text, self.language))
            found.append(PlacedTokens(own.hashes, own.starts + part.begin, own.ends + part.begin))
        return PlacedTokens(
            np.concatenate([one.hashes for one in found]),
            np.concatenate([one.starts for one in found]),
            np.concatenate([one.ends for one in found]),
        )


def matched_passages(
    shown: Mapping[str, Any],
    member: Mapping[str, Any],
    fields: Sequence[str],
    tokenize: Tokenize,
    languages: tuple[str | None, str | None] = (None, None),
) -> list[JSON]:
    """Return the passages that two sources have in common, in the order of the first.

    Args:
        shown: the ``_source`` of the representative.
        member: the ``_source`` of a member of its group.
        fields: the fields to compare, as dotted paths. A passage stays within one field on each side; the two
            fields may differ.
        tokenize: ``placed`` or ``tokens`` of a canonicalizer.
        languages: those that the two sources declare; None chooses the language word by word.

    Returns:
        for each passage ``equal_tokens``, and under ``shown`` and ``member`` its two sides. A side has
        ``field``, ``text``, ``start`` and ``end`` in characters of the stored text (of a document whose
        ``format`` is ``html``: without its markup), and under ``differing`` the spans that the other side
        lacks. If a field is a list, ``value`` is the index of the text.
    """
    # Imported only by searches that show passages.
    from shinglefold.passages.alignment import find_passages

    for source in (shown, member):
        # A whole hit is a likely mistake: its fields are one level down.
        if not isinstance(source, Mapping) or isinstance(source.get("_source"), Mapping):
            raise expected("source", 'the _source of a hit, hit["_source"]', source)
    check_strings("fields", fields, _MOST_FIELDS)
    one, other = (
        stored_text(source, fields, tokenize, language, _MOST_CHARACTERS)
        for source, language in zip((shown, member), languages, strict=True)
    )
    found = find_passages(one.tokens("a"), other.tokens("b"))
    return [passage_json(passage, shown=one, member=other) for passage in found]


def passage_json(passage: "Passage", **sides: StoredText) -> JSON:
    """Return a passage of two texts as JSON, with its spans on both sides, by the names of the sides."""
    (a, one), (b, other) = sides.items()
    return {
        "equal_tokens": passage.equal,
        a: _side(one.parts, passage.a, passage.marks_a),
        b: _side(other.parts, passage.b, passage.marks_b),
    }


def stored_text(
    source: Mapping[str, Any],
    fields: Sequence[str],
    tokenize: Tokenize,
    language: str | None,
    most: float = inf,
) -> StoredText:
    """Return the texts of the fields of a source, given as dotted paths, up to ``most`` characters."""
    return StoredText(tuple(_parts(source, fields, most)), tokenize, language)


def _parts(source: Mapping[str, Any], fields: Sequence[str], most: float) -> Iterator[_Part]:
    begin = 0
    for field in fields:
        for number, text in stored_texts(source, field):
            if begin < most:
                part = text if most == inf else text[: int(most) - begin]
                yield _Part(begin, field, number, part)
                begin += len(part) + 1


def _side(parts: Sequence[_Part], span: "Span", marks: Sequence["Span"]) -> JSON:
    part = parts[bisect_right(parts, span.start, key=lambda one: one.begin) - 1]
    which = {} if part.value is None else {"value": part.value}
    differing = [_place(part, mark) for mark in marks]
    return {"field": part.field, **which, **_place(part, span), "differing": differing}


def _place(part: _Part, span: "Span") -> JSON:
    start, end = span.start - part.begin, span.end - part.begin
    return {"start": start, "end": end, "text": part.text[start:end]}


class PairExplanation(NamedTuple):
    """Why two documents fold: ``facts`` as JSON; their ``texts``, and the ``passages`` in these.

    ``tokens``: those of the texts, by which passages were found. ``hits``: the documents.
    """

    facts: dict[str, Any]
    texts: tuple[str, str]
    passages: "list[Passage]"
    tokens: tuple[PlacedTokens, PlacedTokens]
    hits: tuple[Hit, Hit]

    def to_json(self) -> JSON:
        """Return the facts, and the passages by their positions in the texts."""
        return {**self.facts, "passages": [passage._asdict() for passage in self.passages]}


def explain_pair(
    hits: tuple[Hit, Hit],
    scheme: Scheme,
    field: str,
    texts: Sequence[str],
    *,
    seal: Seal | None = None,
    mappings: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    options: FoldOptions | None = None,
) -> PairExplanation:
    """Return why two documents of an index fold on a page of the two, or why not.

    Args:
        hits: the documents with their sources.
        field: the field of their fingerprints.
        texts: the fields whose texts are aligned, one text after the other.
        seal: the seal with the key of the index.
        mappings: those of the indices, by name. With them, a document whose fingerprint is of another text
            than it has is marked as ``stale``, and folds with none.
        options: those of the page: thresholds, scopes, and whether texts decide.

    Raises:
        InputError: one of them has no fingerprint, or one without that seal.
        SchemeMismatch: one has a fingerprint of another scheme.
    """
    from shinglefold.canon import Canonicalizer
    from shinglefold.passages.alignment import find_passages
    from shinglefold.rerank.fold.text_verification import TextStages

    prints = [_print(hit, scheme, field, seal) for hit in hits]
    several, languages = list(mappings.values()), languages_of(mappings, field)

    def tokens(hit: Hit, text: str) -> PlacedTokens:
        return Canonicalizer.of(scheme).placed(text, hit_language(scheme, hit, hit["_source"], languages))

    one, other = (joined_texts(hit["_source"], texts) for hit in hits)
    sides = tokens(hits[0], one), tokens(hits[1], other)
    stages = TextStages()
    stage = stages.stage(scheme, tuple(texts), wanted=False)
    given = options or FoldOptions()
    decisive = ("min_resemblance", "min_shared", "min_length_ratio", "scope")
    own = FoldOptions(**{name: getattr(given, name) for name in decisive})
    facts = _stored_facts(hits, prints, scheme, field, seal, own)
    facts |= {"text": _text_verdict(hits, scheme, field, seal, stage, facts, own)}
    if given.verify == "text":
        facts |= {name: facts["text"][name] for name in ("folds", "decided_by")}
    current = stages.stage(scheme, signed_fields(several), wanted=False, mappings=several)
    stored = zip("ab", hits, prints, strict=True)
    for name in current.stale({name: (hit["_source"], made.stored_digest) for name, hit, made in stored}):
        facts[name] |= {"stale": True}
        facts |= {"folds": False, "text": {**facts["text"], "folds": False}}
    return PairExplanation(facts, (one, other), find_passages(*sides), sides, hits)


def _print(hit: Hit, scheme: Scheme, field: str, seal: Seal | None) -> Fingerprint:
    stored = stored_parts(hit["_source"], field)
    if not stored:
        raise InputError(f"document {hit['_id']!r} has no fingerprint in {field!r}; index it again")
    made = Fingerprint.from_field(stored)
    if made.scheme != scheme.id:
        raise SchemeMismatch(
            made.scheme, scheme.id, f"the fingerprint of {hit['_id']!r}", "Index the document again."
        )
    if seal is not None and not seal.fits(made):
        raise InputError(
            f"the fingerprint of {hit['_id']!r} does not have the seal of the index: it was altered or made "
            "without the key, and no search compares it; backfill the index, or index the document again"
        )
    return made


def _text_verdict(  # noqa: PLR0917 - of one pair
    hits: Sequence[Hit],
    scheme: Scheme,
    field: str,
    seal: Seal | None,
    stage: "TextStage",
    facts: Mapping[str, Any],
    options: FoldOptions,
) -> dict[str, Any]:
    """Return the verdict of the text stage; ``asked``: whether signatures leave the pair uncertain."""
    texts = [stage.text_of(hit) for hit in hits]
    similarity = stage.similarity(*texts)
    prints = FingerprintReader(scheme, field, options.scope, seal).read(hits)
    doubt, _, as_bags = Signatures(scheme, options, (0, 1), prints).classify([(0, 1)])
    verdict = stage.decide_texts(doubt, dict(enumerate(texts)), as_bags).get((0, 1))
    return {
        "similarity": None if similarity is None else round(similarity, 4),
        "needed": stage.needed,
        "asked": bool(doubt),
        "decided": verdict is not None,
        "folds": facts["folds"] if verdict is None else verdict.alike,
        "decided_by": facts["decided_by"] if verdict is None else verdict.decided_by(stage.needed),
    }


def _stored_facts(  # noqa: PLR0917 - of one pair
    hits: Sequence[Hit],
    prints: Sequence[Fingerprint],
    scheme: Scheme,
    field: str,
    seal: Seal | None,
    options: FoldOptions,
) -> dict[str, Any]:
    shared = explain(hits[0], hits[1], scheme, field)
    estimated = {name: shared[name] for name in ("resemblance", "standard_error") if name in shared}
    one, other = prints
    # The verdict of a page with these two hits and without text verification; a document may be both.
    page = [{**hit, "_id": side} for side, hit in zip("ab", hits, strict=True)]
    folds = len(collapse(page, scheme, options, field, seal).groups) == 1
    return {
        "scheme": scheme.id,
        "a": {"id": hits[0]["_id"], "lang": one.lang, "shingles": one.shingles},
        "b": {"id": hits[1]["_id"], "lang": other.lang, "shingles": other.shingles},
        "same_text": shared["same_text"],
        "shared": shared["shared"],
        "estimate": estimated or None,
        "length_ratio": round(float(length_ratio(one.shingles, other.shingles)), 4),
        "folds": folds,
        "decided_by": decided_by((one, other), scheme, options, folds=folds),
    }


def decided_by(
    prints: tuple[Fingerprint, Fingerprint], scheme: Scheme, options: FoldOptions, *, folds: bool
) -> DecidedBy:
    """Return what decided whether two fingerprints of one scheme fold on a page without text verification."""
    one, other = prints
    if facts_differ(one.digest, other.digest):
        return "facts"
    if one.digest and text_digest(one.digest) == text_digest(other.digest):
        return "same_text" if folds else "scope"
    matcher = Matcher.of(scheme, options)
    obstacle = _obstacle(one, other, scheme, matcher)
    if folds:
        return "chain" if obstacle else "estimate" if matcher.need else "supershingles"
    return obstacle or "scope"


def _obstacle(one: Fingerprint, other: Fingerprint, scheme: Scheme, matcher: Matcher) -> DecidedBy | None:
    """Return why two fingerprints do not match; None if they do, apart from scopes and facts."""
    if not (one.signature and other.signature):
        return "too_short"
    if length_ratio(one.shingles, other.shingles) < matcher.min_length_ratio:
        return "length"
    if len(set(one.supershingles) & set(other.supershingles)) < matcher.min_shared:
        return "supershingles"
    return "estimate" if _agreement_count(one, other, scheme) < matcher.need else None


def explain(
    shown: Hit, member: Hit, scheme: Scheme, field: str = FIELD, options: FoldOptions | None = None
) -> JSON:
    """Return what a member has in common with its representative.

    Returns:
        ``_index``, ``_id``, ``same_text`` (equal digests), ``lang``, ``scheme``, ``shared`` (supershingles in
        common) and, if both have a signature, ``resemblance`` with its ``standard_error``. ``decided_by``
        names what decided that it folds under the options.
    """
    for hit in (shown, member):
        check_object("hit", hit, "a hit as engines return it")
    scheme = checked_scheme(scheme)
    one, other = _read_fingerprint(shown, field), _read_fingerprint(member, field)
    facts: dict[str, Any] = {"_index": member.get("_index"), "_id": member.get("_id")}
    if one is None or other is None:
        return facts
    facts |= {
        "same_text": bool(one.digest)
        and (one.scheme, text_digest(one.digest)) == (other.scheme, text_digest(other.digest)),
        "lang": other.lang,
        "scheme": other.scheme,
    }
    if one.scheme == other.scheme:
        facts["shared"] = sorted(set(one.supershingles) & set(other.supershingles))
        facts |= _estimate_json(one, other, scheme)
    if one.scheme == other.scheme == scheme.id:
        facts["decided_by"] = decided_by((one, other), scheme, options or FoldOptions(), folds=True)
    return facts


def _read_fingerprint(hit: Hit, field: str) -> Fingerprint | None:
    try:
        return Fingerprint.from_field(stored_fingerprint(hit, field))
    except InputError:
        return None


def _estimate_json(one: Fingerprint, other: Fingerprint, scheme: Scheme) -> JSON:
    if one.scheme != scheme.id or not one.signature or len(one.signature) != len(other.signature):
        return {}
    resemblance, error = estimate(
        _agreement_count(one, other, scheme), scheme.sketch.values, scheme.sketch.bits
    )
    return {"resemblance": round(resemblance, 4), "standard_error": round(error, 4)}


def _agreement_count(one: Fingerprint, other: Fingerprint, scheme: Scheme) -> int:
    """Return in how many values two signatures of the scheme agree."""
    first, second = (np.frombuffer(read.signature, np.uint8) for read in (one, other))
    return int(agreement_rows(first[None], second[None], scheme.sketch.bits, scheme.sketch.values)[0])
