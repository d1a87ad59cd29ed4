"""What the index knows of two documents, and the alignment of their stored texts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shinglefold.canon import Canonicalizer
from shinglefold.cli.hints import Hints
from shinglefold.cli.stores import Store
from shinglefold.errors import InputError, SchemeMismatch
from shinglefold.ingest.paths import get
from shinglefold.model import Fingerprint
from shinglefold.rerank import collapse
from shinglefold.rerank import explain as explain_hits
from shinglefold.rerank.passages import Passage, find_passages
from shinglefold.scheme import Scheme
from shinglefold.sketch import length_ratio
from shinglefold.stored import stored_parts


class Explanation(NamedTuple):
    """``told``: the stored facts as JSON; ``texts``: what ``passages`` are places in."""

    told: dict[str, Any]
    texts: tuple[str, str]
    passages: list[Passage]


def explain_pair(
    store: Store, index: str, ids: tuple[str, str], fields: Sequence[str], hints: Hints
) -> Explanation:
    """Return why two documents of an index fold, or why not.

    Raises:
        InputError: one of them is not there, or has no fingerprint.
        SchemeMismatch: one has a fingerprint of another scheme than the index.
    """
    hits = [_hit(store, index, id_, hints) for id_ in ids]
    prints = [_print(store, hit) for hit in hits]
    texts = (_text(hits[0], fields), _text(hits[1], fields))
    canonicalizer = Canonicalizer.of(store.scheme)
    tokens = [
        canonicalizer.tokens(text, _language(store.scheme, hit))
        for text, hit in zip(texts, hits, strict=True)
    ]
    return Explanation(_told(store, hits, prints), texts, find_passages(*tokens))


def _hit(store: Store, index: str, id_: str, hints: Hints) -> Mapping[str, Any]:
    hit = store.engine.get(index, id_)
    if hit is None:
        raise InputError(
            f"no document {id_!r} in the index {index!r}; this shows ids: "
            f"{hints.command('search', id_, index=index, json=True, no_fold=True)}"
        )
    return hit


def _print(store: Store, hit: Mapping[str, Any]) -> Fingerprint:
    stored = stored_parts(hit["_source"], store.field)
    if not stored:
        raise InputError(f"document {hit['_id']!r} has no fingerprint in {store.field!r}; index it again")
    made = Fingerprint.from_field(stored)
    if made.scheme != store.scheme.id:
        raise SchemeMismatch(
            made.scheme, store.scheme.id, f"the fingerprint of {hit['_id']!r}", "Index the document again."
        )
    return made


def _text(hit: Mapping[str, Any], fields: Sequence[str]) -> str:
    found = (get(hit["_source"], name) for name in fields)
    return "\n".join(text for text in found if isinstance(text, str))


def _language(scheme: Scheme, hit: Mapping[str, Any]) -> str | None:
    """Return the language the document declares, where it is one of the scheme's."""
    code = str(hit["_source"].get("lang", "")).replace("_", "-").split("-")[0].lower()
    return code if code in {reference.code for reference in scheme.languages} else None


def _told(store: Store, hits: Sequence[Mapping[str, Any]], prints: Sequence[Fingerprint]) -> dict[str, Any]:
    shared = explain_hits(hits[0], hits[1], store.scheme, store.field)
    estimated = {name: shared[name] for name in ("resemblance", "standard_error") if name in shared}
    one, other = prints
    return {
        "scheme": store.scheme.id,
        "a": {"id": hits[0]["_id"], "lang": one.lang, "shingles": one.shingles},
        "b": {"id": hits[1]["_id"], "lang": other.lang, "shingles": other.shingles},
        "same_text": shared["same_text"],
        "shared": shared["shared"],
        "estimate": estimated or None,
        "length_ratio": round(float(length_ratio(one.shingles, other.shingles)), 4),
        # The verdict is that of a search which finds these two.
        "folds": len(collapse(hits, store.scheme, field=store.field).groups) == 1,
    }
