"""What a search for copies goes by."""

from dataclasses import dataclass

from shinglefold.contracts import JSON, Capabilities
from shinglefold.rerank.similar.asked import Asked
from shinglefold.rerank.similar.bodies import Queries, candidates_queries, window
from shinglefold.rerank.similar.decision import Decision
from shinglefold.rerank.similar.indices import Known
from shinglefold.rerank.similar.options import SimilarOptions
from shinglefold.scheme import Verify
from shinglefold.seal import Seal


@dataclass(frozen=True, slots=True)
class Looking:
    """The index, what is known of it, what was asked for, and what the engine can do."""

    index: str
    known: Known
    options: SimilarOptions
    decision: Decision
    can: Capabilities
    seal: Seal | None
    verify: Verify = "signature"

    def queries(self, asked: Asked) -> Queries | None:
        """Return the queries for the candidates of a document, None where it can have none."""
        return candidates_queries(
            asked,
            self.known.scheme,
            self.known.field,
            self.decision.min_shared,
            seal=self.seal,
            scopes=self.options.scope,
            filters=self.options.filters,
        )

    def body(self, query: JSON) -> JSON:
        """Return the body that reads a window of candidates."""
        options = self.options
        return window(query, self.known.field, options.window, options.scope, numbers=self.can.seq_no)
