"""Statistics of indices: documents, fingerprints, signatures, languages and recipes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shinglefold.contracts.engine import JSON, Engine, IndexInfo
from shinglefold.errors import EngineError, ShinglefoldError
from shinglefold.model.recipe import Recipe, stored_recipe
from shinglefold.model.stored_fingerprint import placeholder_query
from shinglefold.model.values import UNDETERMINED
from shinglefold.options.validation import check_engine, check_str
from shinglefold.rerank.hits import check_complete

#: The most buckets for schemes; more than an index has.
_MOST = 1000


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """The statistics of one index.

    Attributes:
        info: name, size and aliases.
        documents: None if they can't be counted.
        recipe: None if the index was not made for fingerprints, or by an unknown version.
        scheme: the id of its scheme, even if this version does not know it.
        fingerprints: documents with a fingerprint of the scheme.
        signed: documents whose fingerprint has a signature; texts with few words have none.
        languages: documents with a fingerprint by language, most frequent first.
        grouped: documents with a group number; None if the index has none.
        placeholders: ids that a gate reserves, which ``documents`` includes.
        problem: why statistics are missing.
        unknown: its mappings can't be read.
    """

    info: IndexInfo
    documents: int | None = None
    recipe: Recipe | None = None
    scheme: str = ""
    fingerprints: int = 0
    signed: int = 0
    languages: dict[str, int] = field(default_factory=dict)
    grouped: int | None = None
    placeholders: int = 0
    problem: str = ""
    unknown: bool = False

    @property
    def without_fingerprint(self) -> int:
        """Documents without a fingerprint of the scheme."""
        return (self.documents or 0) - self.fingerprints - self.placeholders

    @property
    def ungrouped(self) -> int | None:
        """Documents without a group number; None if the index has no group numbers."""
        return None if self.grouped is None else (self.documents or 0) - self.grouped - self.placeholders

    @property
    def signed_share(self) -> float | None:
        """The share of documents that are signed; None if there are none, or these can't be read."""
        known = self.recipe is not None and not self.problem
        return self.signed / self.documents if known and self.documents else None

    def to_json(self) -> JSON:
        """Return the statistics as JSON."""
        share = self.signed_share
        return {
            "index": self.info.name,
            "aliases": list(self.info.aliases),
            "documents": self.documents,
            "fingerprints": self.fingerprints,
            "signed": self.signed,
            "signed_share": None if share is None else round(share, 4),
            "placeholders": self.placeholders,
            **({} if self.grouped is None else {"grouped": self.grouped, "ungrouped": self.ungrouped}),
            "bytes": self.info.size,
            "scheme": self.scheme or None,
            "languages": self.languages,
            "recipe": None if self.recipe is None else self.recipe.to_json(),
            **({"problem": self.problem} if self.problem else {}),
        }


def statistics(engine: Engine, pattern: str = "*") -> list[IndexStatistics]:
    """Return the statistics of each index of a name, an alias or a pattern, sorted by name.

    Raises:
        IndexMissing: there is no index of a name without ``*``.
    """
    check_engine(engine)
    check_str("pattern", pattern)
    infos = engine.indices(pattern)
    known = [_read_recipe(engine, info) for info in infos]
    unaltered = engine.can.unaltered
    searches = [(one.info.name, body | unaltered) for one in known for body in _bodies(one)]
    answers = iter(engine.msearch(searches) if searches else ())
    return [_with_counts(one, [next(answers) for _ in _bodies(one)]) for one in known]


def _read_recipe(engine: Engine, info: IndexInfo) -> IndexStatistics:
    try:
        mappings = engine.mappings(info.name)
    except EngineError as error:
        return IndexStatistics(info, problem=str(error), unknown=True)
    stored = stored_recipe(mappings)
    if stored is None:
        return IndexStatistics(info)
    scheme = str(stored["id"])
    try:
        return IndexStatistics(info, recipe=Recipe.of(mappings, info.name), scheme=scheme)
    except ShinglefoldError as error:
        return IndexStatistics(info, scheme=scheme, problem=str(error))


def _bodies(one: IndexStatistics) -> list[JSON]:
    """Return the searches that count documents: all by scheme, signed, placeholders, by language, grouped."""
    everything: JSON = {"size": 0, "track_total_hits": True}
    bodies = [everything, _count_signed(one)]
    if one.recipe is not None:
        everything["aggs"] = {"scheme": {"terms": {"field": f"{one.recipe.field}.scheme", "size": _MOST}}}
        bodies.append(_count_query(placeholder_query(one.recipe.field)))
        # A digest begins with scheme and language, so neither needs an indexed field of its own.
        digest = f"{one.recipe.field}.digest"
        bodies += [_count_query({"prefix": {digest: f"{one.scheme}.{code}."}}) for code in _languages(one)]
        if one.recipe.groups:
            bodies.append(_count_query({"exists": {"field": f"{one.recipe.field}.group"}}))
    return bodies


def _languages(one: IndexStatistics) -> list[str]:
    """Return the languages that fingerprints of the index may have."""
    return [] if one.recipe is None else [*(ref.code for ref in one.recipe.scheme.languages), UNDETERMINED]


def _count_query(query: JSON) -> JSON:
    return {"size": 0, "track_total_hits": True, "query": query}


def _count_signed(one: IndexStatistics) -> JSON:
    """Return a search that counts documents with a signature of the scheme."""
    if one.recipe is None:
        return _count_query({"ids": {"values": []}})
    # Supershingles are indexed, unlike signatures, and every document with a signature has them if stored.
    part = "supershingles" if one.recipe.keywords else "signature"
    keywords = {"exists": {"field": f"{one.recipe.field}.{part}"}}
    of_scheme = {"term": {f"{one.recipe.field}.scheme": one.scheme}}
    return _count_query({"bool": {"filter": [keywords, of_scheme]}})


def _with_counts(one: IndexStatistics, answers: Sequence[JSON | EngineError]) -> IndexStatistics:
    try:
        answer, signed, *rest = map(_complete, answers)
    except EngineError as error:
        return replace(one, documents=one.info.documents, problem=one.problem or str(error))
    buckets = (answer.get("aggregations") or {}).get("scheme", {}).get("buckets", ())
    schemes = {str(bucket["key"]): int(bucket["doc_count"]) for bucket in buckets}
    codes = _languages(one)
    placeholders, *others = [*map(_total, rest)] or [0]
    languages = {code: count for code, count in zip(codes, others, strict=False) if count}
    grouped = others[len(codes)] if len(others) > len(codes) else None
    return replace(
        one,
        documents=_total(answer),
        fingerprints=schemes.get(one.scheme, 0),
        signed=_total(signed),
        languages=dict(sorted(languages.items(), key=lambda entry: -entry[1])),
        grouped=grouped,
        placeholders=placeholders,
    )


def _complete(answer: JSON | EngineError) -> JSON:
    if isinstance(answer, EngineError):
        raise answer
    return check_complete(answer)


def _total(answer: JSON) -> int:
    return int(answer["hits"]["total"]["value"])
