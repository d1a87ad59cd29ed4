"""Why a hit was folded: what it shares with the hit shown, and how alike the two are by estimate."""

from typing import Any

import numpy as np

from shinglefold.checks import check_object
from shinglefold.contracts import JSON
from shinglefold.errors import InputError
from shinglefold.model import Fingerprint
from shinglefold.rerank.hits import Hit, stored_fingerprint
from shinglefold.scheme import Scheme, checked_scheme
from shinglefold.sketch import agreement, estimate


def explain(shown: Hit, member: Hit, scheme: Scheme, field: str = "dedup") -> JSON:
    """Return what ties a member to the hit shown.

    Returns:
        ``_index``, ``_id``, ``same_text`` (equal digests), ``lang``, ``scheme``, ``shared`` (supershingles in
        common) and, where both have a signature, ``resemblance`` with its ``standard_error``.
    """
    for hit in (shown, member):
        check_object("hit", hit, "a hit as engines return it")
    scheme = checked_scheme(scheme)
    one, other = _read(shown, field), _read(member, field)
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


def _read(hit: Hit, field: str) -> Fingerprint | None:
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
