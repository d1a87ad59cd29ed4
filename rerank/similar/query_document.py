"""A document whose copies are searched for, and one that was found."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import InputError
from shinglefold.model.values import Fingerprint
from shinglefold.rerank.hits import Hit, field_values, identity, stored_fingerprint
from shinglefold.rerank.request.fold_options import Scope


@dataclass(frozen=True, slots=True)
class QueryDocument:
    """A document to find the copies of.

    Args:
        print: its fingerprint, with supershingles, signature and digest.
        values: a list for each field that a scope names.
        own: index, id and routing where it is a stored document, which is not its own copy.
        text: its text where that is known, to decide uncertain pairs.
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
        """Return the document as JSON: its address here, and what was found of it in subclasses."""
        address: JSON = {"_index": self.index, "_id": self.id}
        return address if self.routing is None else {**address, "_routing": self.routing}


@dataclass(frozen=True, slots=True)
class Match(FoundDocument):
    """A stored document that matches the query document.

    ``resemblance`` is 1 where the canonical texts are equal (``same_text``), else the estimate, with its
    ``standard_error``. ``group`` is the number of its group, None where it has none. ``seq_no`` and
    ``primary_term`` guard writes; None where the engine numbers no changes. ``hit`` is the document as the
    engine returned it. ``similarity``: the edit similarity of the texts, where these decided.
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

    def with_hit(self, hit: Hit) -> "Match":
        """Return the match with its document as another search returned it."""
        return replace(self, hit=hit)

    def to_json(self) -> JSON:
        """Return the match as JSON, with ``_source`` where it was asked for."""
        told = FoundDocument.to_json(self) | {
            "resemblance": round(self.resemblance, 4),
            "standard_error": round(self.standard_error, 4),
            "same_text": self.same_text,
        }
        if self.similarity is not None:
            told["similarity"] = round(self.similarity, 4)
        if self.group is not None:
            told["group"] = self.group
        if "_source" in self.hit:
            told["_source"] = self.hit["_source"]
        return told
