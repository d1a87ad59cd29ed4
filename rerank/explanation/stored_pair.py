"""Why two hits, or two stored documents, were folded: their fingerprints, and where their texts match."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON
from shinglefold.errors import InputError, SchemeMismatch
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_object
from shinglefold.passages.alignment import Passage, find_passages
from shinglefold.rerank.fold.clustering import collapse
from shinglefold.rerank.fold.fingerprint_columns import FingerprintReader
from shinglefold.rerank.fold.text_verification import TextStage
from shinglefold.rerank.fold.uncertain_pairs import Signatures
from shinglefold.rerank.hits import Hit, stored_fingerprint, stored_value
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch import agreement, estimate, length_ratio


class PairExplanation(NamedTuple):
    """``told``: the stored facts as JSON; ``texts``: what ``passages`` are places in."""

    told: dict[str, Any]
    texts: tuple[str, str]
    passages: list[Passage]


def explain_pair(
    hits: tuple[Hit, Hit],
    scheme: Scheme,
    canonicalizer: Canonicalizer,
    field: str,
    texts: Sequence[str],
    *,
    seal: Seal | None = None,
) -> PairExplanation:
    """Return why two documents of an index fold, or why not.

    Args:
        hits: the documents with their sources.
        field: the field of their fingerprints.
        texts: the fields whose texts are aligned, one text after the other.
        seal: of the key the index is sealed with.

    Raises:
        InputError: one of them has no fingerprint, or one without that seal.
        SchemeMismatch: one has a fingerprint of another scheme.
    """
    prints = [_print(hit, scheme, field, seal) for hit in hits]
    one, other = (_text(hit, texts) for hit in hits)
    tokens = [
        canonicalizer.placed(text, declared_language(scheme, hit))
        for text, hit in zip((one, other), hits, strict=True)
    ]
    stage = TextStage.of(scheme, tuple(texts), canonicalizer, wanted=False)
    told = _stored_facts(hits, prints, scheme, field, seal)
    told |= {"text": _text_verdict(hits, scheme, field, seal, stage, folds=told["folds"])}
    return PairExplanation(told, (one, other), find_passages(*tokens))


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


def _text(hit: Hit, fields: Sequence[str]) -> str:
    found = (stored_value(hit["_source"], name) for name in fields)
    return "\n".join(text for text in found if isinstance(text, str))


def declared_language(scheme: Scheme, hit: Hit) -> str | None:
    """Return the language the document declares, where it is one of the scheme's."""
    code = str(hit["_source"].get("lang", "")).replace("_", "-").split("-")[0].lower()
    return code if code in {reference.code for reference in scheme.languages} else None


def _text_verdict(
    hits: Sequence[Hit], scheme: Scheme, field: str, seal: Seal | None, stage: TextStage, *, folds: bool
) -> dict[str, Any]:
    """Return the verdict of the text stage; ``asked`` where signatures leave the pair uncertain."""
    texts = [stage.text_of(hit) for hit in hits]
    similarity = stage.similarity(*texts)
    prints = FingerprintReader(scheme, field, seal=seal).read(hits)
    doubt, _, _ = Signatures(scheme, FoldOptions(), (0, 1), prints).weigh([(0, 1)])
    said = stage.decide_texts(doubt, dict(enumerate(texts))).get((0, 1))
    return {
        "similarity": None if similarity is None else round(similarity, 4),
        "needed": stage.needed,
        "asked": bool(doubt),
        "decided": said is not None,
        "folds": folds if said is None else said.alike,
    }


def _stored_facts(
    hits: Sequence[Hit], prints: Sequence[Fingerprint], scheme: Scheme, field: str, seal: Seal | None
) -> dict[str, Any]:
    shared = explain(hits[0], hits[1], scheme, field)
    estimated = {name: shared[name] for name in ("resemblance", "standard_error") if name in shared}
    one, other = prints
    return {
        "scheme": scheme.id,
        "a": {"id": hits[0]["_id"], "lang": one.lang, "shingles": one.shingles},
        "b": {"id": hits[1]["_id"], "lang": other.lang, "shingles": other.shingles},
        "same_text": shared["same_text"],
        "shared": shared["shared"],
        "estimate": estimated or None,
        "length_ratio": round(float(length_ratio(one.shingles, other.shingles)), 4),
        # The verdict of a page with these two hits and without text verification.
        "folds": len(collapse(hits, scheme, field=field, seal=seal).groups) == 1,
    }


def explain(shown: Hit, member: Hit, scheme: Scheme, field: str = "dedup") -> JSON:
    """Return what a member has in common with its representative.

    Returns:
        ``_index``, ``_id``, ``same_text`` (equal digests), ``lang``, ``scheme``, ``shared`` (supershingles in
        common) and, where both have a signature, ``resemblance`` with its ``standard_error``.
    """
    for hit in (shown, member):
        check_object("hit", hit, "a hit as engines return it")
    scheme = checked_scheme(scheme)
    one, other = _read_fingerprint(shown, field), _read_fingerprint(member, field)
    told: dict[str, Any] = {"_index": member.get("_index"), "_id": member.get("_id")}
    if one is None or other is None:
        return told
    told |= {
        "same_text": bool(one.digest) and (one.scheme, one.digest) == (other.scheme, other.digest),
        "lang": other.lang,
        "scheme": other.scheme,
    }
    if one.scheme == other.scheme:
        told["shared"] = sorted(set(one.supershingles) & set(other.supershingles))
        told |= _estimated(one, other, scheme)
    return told


def _read_fingerprint(hit: Hit, field: str) -> Fingerprint | None:
    try:
        return Fingerprint.from_field(stored_fingerprint(hit, field))
    except InputError:
        return None


def _estimated(one: Fingerprint, other: Fingerprint, scheme: Scheme) -> JSON:
    if one.scheme != scheme.id or not one.signature or len(one.signature) != len(other.signature):
        return {}
    first, second = (np.frombuffer(read.signature, np.uint8) for read in (one, other))
    agreeing = int(agreement(first, second[None, :], scheme.sketch.bits, scheme.sketch.values)[0])
    resemblance, error = estimate(agreeing, scheme.sketch.values, scheme.sketch.bits)
    return {"resemblance": round(resemblance, 4), "standard_error": round(error, 4)}
