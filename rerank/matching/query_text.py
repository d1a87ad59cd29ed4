"""A text whose passages are searched for, the options of that search, and a document that it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, quote
from shinglefold.passages.shingle_positions import WIDTH, Elements, elements_of
from shinglefold.passages.winnowing import keywords, winnowed
from shinglefold.rerank.explanation.stored_passages import StoredText, stored_text
from shinglefold.rerank.similar.candidate_queries import CandidateQueries
from shinglefold.rerank.similar.options import check_candidate_options
from shinglefold.rerank.similar.query_document import FoundDocument

#: Elements of a text in a query at most: servers take 1,024 clauses.
_ASKED = 1_000
#: A query has all elements of a text with no more than these; they find shorter passages than a sample.
_FEW = 250


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """The options of a search for passages.

    ``min_share``: of the words of the text that a document must have, five in a row, above 0 to 1.
    ``filters``: queries that a document must match, too.
    ``size``: documents on a page. ``window``: candidates whose texts are read at a time; within it the best
    come first. ``max_window``: candidates read at most for a page.
    ``source``: the ``_source`` filter of documents in the engines' own forms; False returns none.
    """

    min_share: float = 0.05
    filters: tuple[Mapping[str, Any], ...] = ()
    size: int = 10
    window: int = 100
    max_window: int = 1_000
    source: Any = False

    def __post_init__(self) -> None:
        share = self.min_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ConfigError(f"min_share: expected a share above 0 and up to 1, got {quote(share)}")
        check_candidate_options(
            size=self.size,
            smallest=1,
            window=self.window,
            max_window=self.max_window,
            source=self.source,
            filters=self.filters,
        )


@dataclass(frozen=True, slots=True)
class QueryText:
    """A text to find passages of: its elements, and the keywords by which documents are nominated.

    ``sampled``: how many of its elements a document with the whole text would share.
    """

    text: StoredText
    elements: Elements
    keywords: tuple[str, ...]
    sampled: int

    @classmethod
    def of(cls, text: str, canonicalizer: Canonicalizer, language: str | None = None) -> "QueryText":
        """Return a text with the keywords of its query; a long text is sampled."""
        own = stored_text({"text": text}, ["text"], lambda part: canonicalizer.placed(part, language))
        elements = elements_of(own.tokens("a"), WIDTH)
        sample = winnowed(elements.hashes)
        if len(sample) > _ASKED:
            sample = sample[np.linspace(0, len(sample) - 1, _ASKED).astype(np.int64)]
        asked = elements.hashes if len(elements) <= _FEW else sample
        return cls(own, elements, tuple(keywords(asked)), len(sample))

    def queries(self, field: str, options: MatchOptions) -> CandidateQueries | None:
        """Return the queries for documents that may have passages; None where none can.

        A shared element covers five words, and an edit destroys the elements around it. So half of the
        expected number of shared elements is required.

        Args:
            field: of the stored elements.
        """
        if not self.keywords:
            return None
        least = max(1, int(self.sampled * options.min_share / WIDTH / 2))
        return CandidateQueries.sharing(field, self.keywords, least, options.filters)


@dataclass(frozen=True, slots=True)
class TextMatch(FoundDocument):
    """A document that has passages of a text.

    ``share``: of the text's words that stand five in a row in the document, too; ``of_document``: of the
    document's in the text. ``passages``: in the order of the text, each with ``equal_tokens`` and, under
    ``text`` and ``document``, ``field``, ``start`` and ``end`` in characters, ``text`` and ``differing``.
    """

    share: float
    of_document: float
    passages: tuple[JSON, ...]
    source: Mapping[str, Any] | None = None

    @property
    def score(self) -> float:
        """The share."""
        return self.share

    def to_json(self) -> JSON:
        """Return the match as JSON, with ``_source`` where it was asked for."""
        told = FoundDocument.to_json(self) | {
            "share": round(self.share, 4),
            "of_document": round(self.of_document, 4),
        }
        if self.source is not None:
            told["_source"] = self.source
        return told | {"passages": list(self.passages)}
