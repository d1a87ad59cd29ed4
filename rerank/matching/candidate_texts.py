"""How candidates are compared with a text: which passages their stored texts share with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.model.recipe import PASSAGES
from shinglefold.passages.alignment import passages_between
from shinglefold.passages.coverage import covered
from shinglefold.passages.shingle_positions import WIDTH, Elements, elements_of
from shinglefold.rerank.explanation.stored_pair import declared_language
from shinglefold.rerank.explanation.stored_passages import StoredText, passage_json, stored_text
from shinglefold.rerank.index_knowledge import IndexRecipe
from shinglefold.rerank.matching.query_text import MatchOptions, QueryText, TextMatch
from shinglefold.rerank.request.arguments import read_source_filter
from shinglefold.rerank.similar.candidates import CandidateSearch


@dataclass(frozen=True, slots=True)
class PassageQuery:
    """How documents with passages of a text are found: how candidates are read, and what decides.

    ``fields``: the fields that the elements of each index are of, by index name.
    """

    candidates: CandidateSearch
    known: IndexRecipe
    fields: Mapping[str, tuple[str, ...]]
    options: MatchOptions
    canonicalizer: Canonicalizer

    @property
    def elements(self) -> str:
        """The field of the stored elements."""
        return f"{self.known.field}.{PASSAGES}"

    def matching(self, asked: QueryText, hits: Iterable[Mapping[str, Any]]) -> tuple[list[TextMatch], int]:
        """Return the candidates with enough of a text, best first, and how many are unreadable."""
        found, unreadable = [], 0
        for hit in hits:
            stored = self._stored_text(hit)
            theirs = elements_of(stored.tokens("b"), WIDTH)
            share = _share(asked.elements, theirs)
            if not share:
                unreadable += 1
            elif share >= self.options.min_share:
                found.append(self._match(asked, hit, stored, theirs, share))
        return sorted(found, key=lambda match: match.place), unreadable

    def _stored_text(self, hit: Mapping[str, Any]) -> StoredText:
        language = declared_language(self.known.scheme, hit)
        source = hit.get("_source") or {}
        # The mappings of an index in another cluster are unknown.
        fields = self.fields.get(hit["_index"]) or self.known.fields
        return stored_text(source, fields, lambda text: self.canonicalizer.placed(text, language))

    def _match(
        self, asked: QueryText, hit: Mapping[str, Any], stored: StoredText, theirs: Elements, share: float
    ) -> TextMatch:
        whole = theirs.tokens / max(1, theirs.tokens - stored.borders)
        return TextMatch(
            hit["_index"],
            hit["_id"],
            hit.get("_routing"),
            share,
            _share(theirs, asked.elements) * whole,
            tuple(
                passage_json(passage, text=asked.text, document=stored)
                for passage in passages_between(asked.elements, theirs).passages
            ),
            None
            if self.options.source is False
            else read_source_filter(self.options.source).apply(hit["_source"]),
        )


def _share(of: Elements, other: Elements) -> float:
    return covered(np.flatnonzero(np.isin(of.hashes, other.hashes)), of)
