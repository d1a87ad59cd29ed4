"""The options of a search for copies: thresholds, scopes, filters and page size."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from shinglefold.errors import ConfigError, quote
from shinglefold.model.scheme import Decision, Facts, Scheme, Verify, verified_by
from shinglefold.options.validation import check_choice, check_fraction, check_int
from shinglefold.rerank.request.arguments import read_source_filter
from shinglefold.rerank.request.fold_options import FoldOptions, Scope

#: Candidates that may be read at a time: one more must still be below what servers allow unless told.
_MOST = 9_999
#: Candidates read for a page at most: more take another page.
_CAP = 1_000_000


def check_candidate_options(
    *, size: int, smallest: int, window: int, max_window: int, source: object, filters: object
) -> None:
    """Check how candidates are to be read.

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

    ``min_shared``, ``min_resemblance``, ``min_length_ratio``, ``across_languages``, ``scope``: what decides,
    as in ``FoldOptions``; None takes the scheme's. At least one supershingle must be shared in any case.
    ``verify``: what decides on candidates: ``keywords``, that they are; ``signature``; or ``text``: of pairs
    that signatures leave in doubt the texts, where both are at hand. ``min_similarity``: the edit similarity
    that these must reach. None takes what a threshold given is of, else the scheme's. ``facts``: ``numbers``
    leaves out copies whose words with digits differ.
    ``filters``: queries that a copy must match, too.
    ``size``: copies on a page.
    ``window``: candidates read at a time, 1 to 9,999; ``max_window``: candidates read at most for a page.
    ``source``: the ``_source`` filter of copies in the engines' own forms; False fetches none.
    """

    min_shared: int | None = None
    min_resemblance: float | None = None
    min_length_ratio: float | None = None
    across_languages: bool = False
    verify: Verify | None = None
    min_similarity: float | None = None
    facts: Facts = "any"
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
        check_choice("facts", self.facts, get_args(Facts))
        self.judged(Scheme())
        self.folding()

    def decided_by(self, scheme: Decision) -> Verify:
        """Return what decides candidates under the decision of a scheme.

        Raises:
            ConfigError: two thresholds are given, and ``verify`` does not say which decides.
        """
        return verified_by(scheme, self.verify, self.min_resemblance, self.min_similarity)

    def judged(self, scheme: Scheme) -> Scheme:
        """Return the scheme with the verification and the similarity of these options."""
        chosen: dict[str, Any] = {"verify": self.decided_by(scheme.decision)}
        if self.facts != "any":
            chosen["facts"] = self.facts
        if self.min_similarity is not None:
            chosen["min_similarity"] = self.min_similarity
        return replace(scheme, decision=replace(scheme.decision, **chosen))

    def folding(self, verify: Verify = "signature") -> FoldOptions:
        """Return the equivalent options of a folded search.

        Args:
            verify: with ``keywords`` estimates and lengths are ignored.
        """
        least = 0.0 if verify == "keywords" else None
        return FoldOptions(
            min_shared=self.min_shared if self.min_shared or verify != "keywords" else 1,
            min_resemblance=self.min_resemblance if least is None else least,
            min_length_ratio=self.min_length_ratio if least is None else least,
            across_languages=self.across_languages,
            scope=self.scope,
        )
