"""Recover the recipe of an index from its fingerprints, if somebody replaced ``_meta`` of the mappings."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, permutations
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.errors import ConfigError, InputError, shorten
from shinglefold.ingest.field_statistics import string_fields
from shinglefold.ingest.pipeline.pipeline import Pipeline, default_definition
from shinglefold.ingest.processors.texts import WORD_CLASSES, NeverDiffer
from shinglefold.model.recipe import (
    PASSAGES,
    TEXTS,
    Recipe,
    fingerprint_field,
    with_keywords,
    with_never_differ,
    with_passages,
)
from shinglefold.model.scheme import PRESETS, CanonOptions, Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import is_placeholder, stored_parts, without_fingerprint
from shinglefold.model.values import FACTS_MARK, Fingerprint
from shinglefold.registry import references, usable

#: The documents whose fingerprints are compared; the first few rule out most candidates.
_SAMPLE, _FEW = 100, 8
#: The most fields with text that are tried in every combination.
_FIELDS = 6
_MODES = ("lemma", "stem", "surface")


class RecoveredRecipe(NamedTuple):
    """A recipe, and how many of the documents compared have the fingerprint that it makes."""

    recipe: Recipe
    matched: int
    compared: int


@dataclass(frozen=True, slots=True)
class _SignedDocument:
    """A stored document without its fingerprint, and the fingerprint with all parts that are stored."""

    document: Document
    print: Fingerprint
    parts: Mapping[str, Any]


def recover_recipe(
    engine: Engine,
    index: str,
    known: Iterable[Recipe] = (),
    seal: Seal | None = None,
    options: tuple[CanonOptions, Mapping[str, CanonOptions]] = (CanonOptions(), {}),
) -> RecoveredRecipe | None:
    """Return the recipe whose fingerprints the documents of an index have; None if they have none.

    The fingerprints name their scheme, and fields are those whose texts give the stored digests.

    Args:
        known: recipes that are tried first, such as those of other indices.
        seal: the seal with the key of the settings.
        options: those of all languages, and by code of some; see ``shinglefold.registry.references``.

    Raises:
        ConfigError: no installed scheme, or no fields, give these fingerprints.

    Cost: one search, and some 1,000 fingerprints.
    """
    field = fingerprint_field(engine.mappings(index))
    query = {"bool": {"filter": [{"exists": {"field": f"{field}.digest"}}]}}
    body = {"query": query, "size": _SAMPLE, "track_total_hits": False, **engine.can.unaltered}
    signed = list(_signed_documents(engine.search(index, body)["hits"]["hits"], field)) if field else []
    if not signed:
        return None
    id_ = Counter(one.print.scheme for one in signed).most_common(1)[0][0]
    signed = [one for one in signed if one.print.scheme == id_]
    known = [one for one in known if one.scheme.id == id_]
    schemes = chain((one.scheme for one in known), _schemes(*options))
    scheme = next((one for one in schemes if one.id == id_), None)
    if scheme is None:
        raise ConfigError(
            _lost_recipe_message(index, f"no scheme {id_} can be made of the languages installed")
        )
    own = _seal_of(signed, seal, index)
    pipelines = [one.pipeline for one in known if one.field == field]
    found = _best(signed, [*pipelines, *_default_definitions(signed, field)], scheme, own, field)
    if 2 * found.matched <= found.compared:
        tried = ", ".join(string_fields([one.document for one in signed])[:_FIELDS])
        raise ConfigError(
            _lost_recipe_message(index, f"no default pipeline of {shorten(tried)} gives its fingerprints")
        )
    return found


def _lost_recipe_message(index: str, why: str) -> str:
    return (
        f"the recipe of index {index!r} is gone (_meta.shinglefold of its mappings), and {why}: give setup "
        "the fields and the languages, or the pipeline, with which they were made (--field, --languages, "
        "--preset, --never-differ, --pipeline)"
    )


def _signed_documents(hits: Sequence[JSON], field: str) -> Iterator[_SignedDocument]:
    for hit in hits:
        parts = stored_parts(hit["_source"], field)
        try:
            stored = Fingerprint.from_field(parts)
        except InputError:
            continue
        # Texts without tokens have equal fingerprints, whatever the fields.
        if stored.digest and not is_placeholder(hit["_source"], field):
            document = {"_id": hit["_id"], **without_fingerprint(hit["_source"], field)}
            yield _SignedDocument(document, stored, parts)


def _schemes(options: CanonOptions, overrides: Mapping[str, CanonOptions]) -> Iterator[Scheme]:
    """Yield the schemes of all presets with all installed languages, then with some of them."""
    codes = usable()[0]
    each = [options, *(CanonOptions(mode=mode) for mode in _MODES)]  # type: ignore[arg-type]
    for chosen in each:
        own = overrides if chosen is options else None
        made = references(codes, chosen, own)
        for count in range(len(made), 0, -1):
            for languages in combinations(made, count):
                for preset in PRESETS.values():
                    yield replace(preset, languages=languages)


def _seal_of(signed: Sequence[_SignedDocument], seal: Seal | None, index: str) -> Seal | None:
    """Return the seal of fingerprints; None if they have none."""
    if not any(one.print.seal for one in signed):
        return None
    if seal is None or not any(seal.fits(one.print) for one in signed):
        raise ConfigError(
            _lost_recipe_message(index, "its fingerprints are sealed with a key that is not in the settings")
        )
    return seal


def _default_definitions(signed: Sequence[_SignedDocument], field: str) -> Iterator[JSON]:
    """Yield default pipelines: for the default fields, then for one to three fields with text."""
    names = string_fields([one.document for one in signed])[:_FIELDS]
    keywords = any("supershingles" in one.parts for one in signed)
    passages = any(PASSAGES in one.parts for one in signed)
    # A hash does not show which fields are among the facts.
    stated = any(FACTS_MARK in one.print.digest for one in signed)
    facts = [some for count in range(1, len(WORD_CLASSES) + 1) for some in combinations(WORD_CLASSES, count)]
    for fields in (TEXTS, *(some for count in (1, 2, 3) for some in permutations(names, count))):
        definition = with_keywords(default_definition(field, fields), field, keywords)
        definition = with_passages(definition, field) if passages else definition
        for classes in facts if stated else ():
            yield with_never_differ(definition, field, NeverDiffer.parse(classes).names)
        if not stated:
            yield definition


def _best(
    signed: Sequence[_SignedDocument],
    definitions: Sequence[Mapping[str, Any]],
    scheme: Scheme,
    seal: Seal | None,
    field: str,
) -> RecoveredRecipe:
    """Return the recipe of the first pipeline that gives most of the fingerprints."""
    pipelines = [Pipeline.from_json(one, scheme, seal=seal) for one in definitions]
    for some in (signed[:_FEW], signed):
        counts = [_count_matches(some, one, field) for one in pipelines]
        pipelines = [one for one, count in zip(pipelines, counts, strict=True) if count == max(counts)]
    recipe = pipelines[0].recipe(field)
    recipe = replace(recipe, groups=recipe.keywords and any("group" in one.parts for one in signed))
    return RecoveredRecipe(recipe, max(counts), len(signed))


def _count_matches(signed: Sequence[_SignedDocument], pipeline: Pipeline, field: str) -> int:
    """Return how many documents have the digest that a pipeline makes."""
    outcomes = pipeline.run_block([one.document for one in signed])
    made = [{} if one.document is None else stored_parts(one.document, field) for one in outcomes]
    own = [str(parts.get("digest", "")) for parts in made]
    return sum(
        digest in (one.print.head, one.print.stored_digest) for digest, one in zip(own, signed, strict=True)
    )
