"""The arguments of a search for copies: the document, the options, and the queries for candidates."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, InputError, quote
from shinglefold.model.scheme import Scheme, Verify, verified_by
from shinglefold.model.seal import Seal
from shinglefold.model.values import UNDETERMINED, Fingerprint, text_digest
from shinglefold.options.validation import check_choice, check_fraction, check_int
from shinglefold.rerank.hits import Hit, field_values, identity, stored_fingerprint
from shinglefold.rerank.request.arguments import read_source_filter
from shinglefold.rerank.request.fold_options import FoldOptions, Scope


@dataclass(frozen=True, slots=True)
class QueryDocument:
    """A document to find the copies of.

    Args:
        print: its fingerprint, with supershingles, signature and digest.
        values: a list of values for each field of a scope.
        own: index, id and routing of a stored document, which is not its own copy; else None.
        text: its text, which decides uncertain pairs; empty if it is unknown.
    """

    print: Fingerprint
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    own: tuple[Any, Any, Any] | None = None
    text: str = ""

    @classmethod
    def of_hit(cls, hit: Hit, dedup: str, scopes: Sequence[Scope]) -> "QueryDocument":
        """Return the document of a hit, with its fingerprint from ``fields`` and ``_source``.

        Raises:
            InputError: it has no fingerprint, or a damaged one.
        """
        stored = stored_fingerprint(hit, dedup)
        if not stored:
            raise InputError(
                f"document {hit.get('_id')!r} of {hit.get('_index')!r} has no fingerprint in {dedup!r}: "
                "backfill the index, or index the document again"
            )
        values = {scope.field: field_values(hit, scope.field) for scope in scopes}
        return cls(Fingerprint.from_field(stored), values, identity(hit))

    def as_hit(self, dedup: str, *, keywords: bool = True) -> JSON:
        """Return the document in the shape of a hit with doc values; ``keywords`` includes supershingles."""
        fields: dict[str, Any] = {**self.values, f"{dedup}.digest": [self.print.stored_digest]}
        if keywords:
            fields[f"{dedup}.supershingles"] = self.print.supershingles
        if self.print.signature:
            fields[f"{dedup}.signature"] = [self.print.stored_signature]
        return {"fields": fields}


@dataclass(frozen=True, slots=True)
class FoundDocument(ABC):
    """A stored document that a search among candidates found."""

    index: str
    id: str
    routing: str | None

    @property
    @abstractmethod
    def score(self) -> float:
        """How well it matches: the best come first."""

    @property
    def identity(self) -> tuple[str, str, str | None]:
        """Index, id and routing: no two documents share all three."""
        return self.index, self.id, self.routing

    @property
    def place(self) -> tuple[float, str, str, str]:
        """The key that documents are sorted by: the best first, equal ones by name."""
        return -self.score, self.index, self.id, self.routing or ""

    def to_json(self) -> JSON:
        """Return the document as JSON: index, id and routing; subclasses add what was found."""
        address: JSON = {"_index": self.index, "_id": self.id}
        return address if self.routing is None else {**address, "_routing": self.routing}


@dataclass(frozen=True, slots=True)
class Match(FoundDocument):
    """A stored document that matches the query document.

    ``resemblance`` is 1 if the canonical texts are equal (``same_text``), else the estimate, with its
    ``standard_error``. ``group`` is the number of its group, None if it has none. ``seq_no`` and
    ``primary_term`` guard writes; None if the engine numbers no changes. ``hit`` is the document as the
    engine returned it. ``similarity``: the edit similarity of the texts, if these decided.
    """

    resemblance: float
    standard_error: float
    same_text: bool
    group: int | None
    seq_no: int | None
    primary_term: int | None
    hit: Mapping[str, Any]
    similarity: float | None = None

    @property
    def score(self) -> float:
        """The resemblance."""
        return self.resemblance

    def to_json(self) -> JSON:
        """Return the match as JSON, with ``_source`` if it was requested."""
        result = FoundDocument.to_json(self) | {
            "resemblance": round(self.resemblance, 4),
            "standard_error": round(self.standard_error, 4),
            "same_text": self.same_text,
        }
        if self.similarity is not None:
            result["similarity"] = round(self.similarity, 4)
        if self.group is not None:
            result["group"] = self.group
        if "_source" in self.hit:
            result["_source"] = self.hit["_source"]
        return result


class CandidateQueries(NamedTuple):
    """The queries that find all candidates.

    ``quick`` finds them in any order; usually they are few. ``ordered`` adds 1 to the score for each value in
    common, so the most similar come first. A frequent value adds as much as a rare one. With 10⁶ documents it
    takes twice as long.
    """

    quick: JSON
    ordered: JSON

    @classmethod
    def for_shared_values(
        cls, field: str, values: Sequence[str], least: int, filters: Sequence[Mapping[str, Any]]
    ) -> "CandidateQueries":
        """Return the queries for documents that have at least ``least`` of these values in a field."""
        ordered: JSON = {
            "should": [{"constant_score": {"filter": {"term": {field: value}}}} for value in values],
            "minimum_should_match": least,
        }
        if filters:
            ordered["filter"] = list(filters)
        quick = {"filter": [{"terms": {field: list(values)}}, *filters]}
        return cls({"bool": ordered if least > 1 else quick}, {"bool": ordered})


def candidate_queries(
    document: QueryDocument,
    scheme: Scheme,
    dedup: str,
    min_shared: int,
    *,
    seal: Seal | None = None,
    scopes: Sequence[Scope] = (),
    filters: Sequence[Mapping[str, Any]] = (),
) -> CandidateQueries | None:
    """Return the queries for the candidates of a document; None if it can have no copy.

    Equal texts have equal supershingles; those too short for a signature are found by their digest.

    Args:
        min_shared: supershingles that a candidate shares unless its text is equal; at least 1.
        filters: queries that a candidate must match, too.
    """
    words = list(dict.fromkeys(document.print.supershingles))
    field = f"{dedup}.supershingles" if words else f"{dedup}.digest"
    values = words or stored_digests(document.print, scheme, seal)
    if not values:
        return None
    narrowed = [*filters, *_same_values(document, scopes)]
    # A document with fewer keywords than must be shared has copies only if their text is equal.
    return CandidateQueries.for_shared_values(
        field, values, min(min_shared, len(words)) if words else 1, narrowed
    )


def stored_digests(made: Fingerprint, scheme: Scheme, seal: Seal | None) -> list[str]:
    """Return the digests that an equal text may have in the index.

    A stored digest includes the language, which documents may declare. The supershingles
    find texts with a signature in any language; for texts without one, all languages are searched.
    """
    if not made.digest:
        return []
    languages = [made.lang]
    if not made.signature:
        languages += [ref.code for ref in scheme.languages] + [UNDETERMINED]
    each = [made if code == made.lang else replace(made, lang=code) for code in dict.fromkeys(languages)]
    if (text := text_digest(made.digest)) != made.digest:
        # Documents that were signed before the index had facts.
        each += [replace(one, digest=text) for one in each]
    if seal is not None:
        each = [seal.sealed(one) for one in each]
    return [one.stored_digest for one in each]


def decisive_fields(dedup: str, scopes: Sequence[Scope]) -> list[str]:
    """Return the doc values to fetch of candidates: what decides on them, and the group number."""
    parts = [f"{dedup}.digest", f"{dedup}.signature", f"{dedup}.group", *(scope.field for scope in scopes)]
    return list(dict.fromkeys(parts))


def in_total_order(body: Mapping[str, Any], tie: str, after: Sequence[Any] | None) -> JSON:
    """Return the body in total order, beginning after a candidate's sort values."""
    ordered = {**body, "sort": [{"_score": "desc"}, {tie: "asc"}]}
    return ordered | ({} if after is None else {"search_after": list(after)})


def _same_values(document: QueryDocument, scopes: Sequence[Scope]) -> list[JSON]:
    """Return filters for the scopes, so that fewer candidates are read."""
    return [
        {"terms": {scope.field: list(values)}}
        for scope in scopes
        if scope.within is None and (values := document.values.get(scope.field))
    ]


#: The most candidates read at a time; with one more a window is as large as servers allow by default.
_MOST = 9_999
#: The most candidates read for a page.
_CAP = 1_000_000


def check_candidate_options(
    *, size: int, smallest: int, window: int, max_window: int, source: object, filters: object
) -> None:
    """Check the options by which candidates are read.

    Args:
        smallest: the least ``size`` of a page.

    Raises:
        ConfigError: a number is out of range, or a filter is not valid.
    """
    check_int("size", size, smallest, _MOST)
    check_int("window", window, 1, _MOST)
    check_int("max_window", max_window, 1, _CAP)
    read_source_filter(source)
    if not isinstance(filters, list | tuple) or not all(isinstance(one, Mapping) for one in filters):
        raise ConfigError(
            f'filters: expected a list of queries, such as ({{"term": {{"host": "a.org"}}}},), '
            f"got {quote(filters)}"
        )


@dataclass(frozen=True, slots=True)
class SimilarOptions:
    """The options of a search for copies.

    ``min_shared``, ``min_resemblance``, ``min_length_ratio``, ``scope``: as in ``FoldOptions``; None means
    that of the scheme. At least one supershingle must always be shared.
    ``verify``: what decides on candidates: ``keywords`` accepts all, ``signature`` compares signatures,
    ``text`` also the texts of uncertain pairs, if both are known. None chooses by the thresholds that are
    set, else by the scheme. ``min_similarity``: the edit similarity that texts must reach.
    ``filters``: queries that a copy must match, too.
    ``size``: copies on a page.
    ``window``: candidates read at a time, 1 to 9,999; ``max_window``: candidates read at most for a page.
    ``source``: the ``_source`` filter of copies in the engines' own forms; False fetches none.
    """

    min_shared: int | None = None
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    verify: Verify | None = None
    min_similarity: float | None = None
    scope: tuple[Scope, ...] = ()
    filters: tuple[Mapping[str, Any], ...] = ()
    size: int = 10
    window: int = 1000
    max_window: int = 10_000
    source: Any = False

    def __post_init__(self) -> None:
        check_candidate_options(
            size=self.size,
            smallest=0,
            window=self.window,
            max_window=self.max_window,
            source=self.source,
            filters=self.filters,
        )
        check_fraction("min_similarity", self.min_similarity)
        if self.verify is not None:
            check_choice("way to verify", self.verify, get_args(Verify))
        self.with_verification(Scheme())
        self.as_fold_options()

    def with_verification(self, scheme: Scheme) -> Scheme:
        """Return the scheme with the verification and the similarity of these options; see ``thresholds``.

        Raises:
            ConfigError: two thresholds are given, and ``verify`` does not say which decides.
        """
        verify = verified_by(scheme.decision, self.verify, self.min_resemblance, self.min_similarity)
        chosen = {} if self.min_similarity is None else {"min_similarity": self.min_similarity}
        return scheme.with_options(verify=verify, **chosen)

    def as_fold_options(self, verify: Verify = "signature") -> FoldOptions:
        """Return the equivalent options of a folded search.

        Args:
            verify: with ``keywords`` resemblance and lengths are ignored.
        """
        least = 0.0 if verify == "keywords" else None
        return FoldOptions(
            min_shared=self.min_shared if self.min_shared or verify != "keywords" else 1,
            min_resemblance=self.min_resemblance if least is None else least,
            min_length_ratio=self.min_length_ratio if least is None else least,
            scope=self.scope,
        )
