"""Decides which candidates match, for many documents and their candidates at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from shinglefold.contracts.engine import JSON
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.matcher import Mask, Matcher, UncertaintyBand, nonzero
from shinglefold.rerank.fold.text_verification import TextStage, TextVerdict
from shinglefold.rerank.hits import (
    FingerprintColumns,
    FingerprintCounts,
    FingerprintReader,
    Hit,
    PartialAnswer,
    identity,
    refuse_small_windows,
    stored_fingerprint,
)
from shinglefold.rerank.request.bodies import hits_query
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.similar.query_document import Match, QueryDocument
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate


class Nominee(NamedTuple):
    """A candidate that may match; ``doubtful``: its text decides; ``kept``: its signature matches."""

    match: Match
    doubtful: bool
    kept: bool


#: The number of documents decided at a time: each is compared with the candidates of all.
_ROWS = 64


class CandidateDecision:
    """Decides which candidates match, as a folded search with the same options would.

    One difference: a pair must share a supershingle (``min_shared``), or its text, to be compared at all. The
    stage decides by text the pairs that signatures leave uncertain.
    """

    def __init__(
        self,
        scheme: Scheme,
        options: FoldOptions,
        dedup: str,
        seal: Seal | None = None,
        stage: TextStage | None = None,
    ) -> None:
        self.stage = stage
        self._band = None if stage is None else UncertaintyBand.of(scheme, options)
        self._scheme = scheme
        self._scopes = options.scope
        self._dedup = dedup
        self._seal = seal
        matcher = Matcher.of(scheme, options)
        self.min_shared = max(1, matcher.min_shared)
        # The engine counted the shared supershingles.
        self._matcher = replace(matcher, min_shared=0)

    def nominate(
        self, documents: Sequence[QueryDocument], candidates: Sequence[Sequence[Hit]]
    ) -> tuple[list[list[Nominee]], FingerprintCounts]:
        """Return for each document the candidates that may match, the most similar first, and counts.

        Candidates of a document without a text are never doubtful.
        """
        found: list[list[Nominee]] = []
        reader = FingerprintReader(self._scheme, self._dedup, self._scopes, self._seal)
        for begin in range(0, len(documents), _ROWS):
            part = slice(begin, begin + _ROWS)
            found += self._nominees(reader, documents[part], candidates[part])
        return found, reader.counts

    def _nominees(
        self,
        reader: FingerprintReader,
        documents: Sequence[QueryDocument],
        candidates: Sequence[Sequence[Hit]],
    ) -> list[list[Nominee]]:
        hits = [hit for several in candidates for hit in several]
        found: list[list[Nominee]] = [[] for _ in documents]
        if not hits:
            return found
        theirs = reader.read(hits)
        # The reader counts hits, but query documents are not hits.
        seen = reader.counts
        reader.counts = FingerprintCounts()
        ours = reader.read([one.as_hit(self._dedup) for one in documents])
        reader.counts = seen
        near, doubt = self._compare(ours, theirs, list(map(len, candidates)))
        doubt &= np.array([bool(one.text) for one in documents])[:, None]
        rows, columns = nonzero(near | doubt)
        kept, doubtful = near[rows, columns].tolist(), doubt[rows, columns].tolist()
        ones, others = rows.tolist(), columns.tolist()
        alike = self._resemblances(ours, ones, theirs, others)
        pairs = zip(ones, others, alike, doubtful, kept, strict=True)
        for row, place, (resemblance, error, same), *decided in pairs:
            if documents[row].own != identity(hits[place]):
                match = self._match(hits[place], resemblance, error, same)
                found[row].append(Nominee(match, *decided))
        return [sorted(several, key=lambda one: one.match.place) for several in found]

    def _compare(
        self, ours: FingerprintColumns, theirs: FingerprintColumns, counts: Sequence[int]
    ) -> tuple[Mask, Mask]:
        """Return the pairs that match and the uncertain ones, of documents with their own candidates only."""
        rows = np.arange(len(ours))
        own: Mask = rows[:, None] == np.repeat(rows, counts)
        one, other = self._matcher.prepare(ours), self._matcher.prepare(theirs)

        def decide(matcher: Matcher) -> Mask:
            return matcher.decide_sparse(own.copy(), one, rows, other, 0) & own

        near = decide(self._matcher)
        if self._band is None:
            return near, np.zeros_like(near)
        possible, sure = (decide(replace(matcher, min_shared=0)) for matcher in self._band)
        return near, possible & ~sure

    def _resemblances(
        self, ours: FingerprintColumns, ones: Sequence[int], theirs: FingerprintColumns, others: Sequence[int]
    ) -> list[tuple[float, float, bool]]:
        """Return for each pair resemblance, standard error, and whether the texts are equal."""
        sketch = self._scheme.sketch
        agreeing = agreement_rows(
            ours.signatures[ones], theirs.signatures[others], sketch.bits, sketch.values
        )
        same = ours.digests[ones] == theirs.digests[others]
        same &= ours.digests[ones] >= 0
        estimates, errors = estimate(agreeing, sketch.values, sketch.bits)
        columns = np.where(same, 1.0, estimates), np.where(same, 0.0, errors), same
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _match(self, hit: Hit, resemblance: float, error: float, same: bool) -> Match:
        groups = (hit.get("fields") or {}).get(f"{self._dedup}.group") or (None,)
        return Match(
            *identity(hit),
            resemblance=resemblance,
            standard_error=error,
            same_text=same,
            group=groups[0],
            seq_no=hit.get("_seq_no"),
            primary_term=hit.get("_primary_term"),
            hit=hit,
        )


#: The number of documents whose texts are read at a time.
_AT_ONCE = 100


def decide_by_texts(
    documents: Sequence[QueryDocument], nominees: Sequence[Sequence[Nominee]], source: "TextSource"
) -> Steps[list[list[Match]]]:
    """Return the copies of each document; texts decide uncertain candidates if both texts are known.

    Candidates whose fingerprint was made of another text than the one fetched are left out.

    Cost: one request for each hundred uncertain candidates whose text was not returned with them.
    """
    stage = source.stage
    doubtful = [(row, one.match) for row, several in enumerate(nominees) for one in several if one.doubtful]
    if stage is None or not doubtful or not stage.ready():
        return [[one.match for one in several if one.kept] for several in nominees]
    texts = yield from _texts([match.hit for _, match in doubtful], stage, source)
    verdicts = _text_verdicts(documents, doubtful, texts, stage)
    return [
        [
            match
            for one in several
            if one.match.identity not in source.stale
            and (match := _apply_verdict(one, verdicts.get((row, one.match.identity)))) is not None
        ]
        for row, several in enumerate(nominees)
    ]


@dataclass(slots=True)
class TextSource:
    """Fetches the texts of candidates.

    Args:
        stage: None fetches no texts.
        index: None if the body names a point in time, in ``extra``.
        dedup: the field of fingerprints.

    Attributes:
        stale: the identities of hits whose fingerprint was made of another text.
    """

    stage: TextStage | None
    index: str | None
    shards: int
    partial: PartialAnswer
    dedup: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    stale: set[tuple[Any, Any, Any]] = field(default_factory=set)

    def read(self, hits: Sequence[Hit], fields: Sequence[str]) -> Steps[list[JSON]]:
        """Fetch hits by id, with the given fields of their sources."""
        found: list[JSON] = []
        for begin in range(0, len(hits), _AT_ONCE):
            part = hits[begin : begin + _AT_ONCE]
            body = {"query": hits_query(part, self.shards), "size": len(part), "track_total_hits": False}
            answer = yield Call("search", (self.index, {**body, **self.extra, "_source": list(fields)}))
            refuse_small_windows(answer)
            self.partial.note(answer)
            found += answer["hits"]["hits"]
        return found

    def compare(self, fetched: Mapping[Any, Hit], hits: Mapping[Any, Hit]) -> None:
        """Compare the texts of fetched hits with the fingerprints that were read before, by identity."""
        assert self.stage is not None
        digests = {name: stored_fingerprint(hits[name], self.dedup).get("digest") for name in fetched}
        self.stale |= self.stage.stale(
            {
                name: (hit.get("_source") or {}, str(one[0]))
                for name, hit in fetched.items()
                if (one := digests[name])
            }
        )


def _texts(hits: Iterable[Hit], stage: TextStage, source: TextSource) -> Steps[dict[Any, str]]:
    """Return the texts of hits by (index, id, routing); empty if a hit has none."""
    each = {identity(hit): hit for hit in hits}
    texts = {name: stage.text_of(hit) for name, hit in each.items()}
    lacking = [each[name] for name, text in texts.items() if not text]
    fetched = {identity(hit): hit for hit in (yield from source.read(lacking, stage.sources))}
    texts |= {name: stage.text_of(hit) for name, hit in fetched.items()}
    source.compare({name: hit for name, hit in fetched.items() if name in each}, each)
    return texts


def _text_verdicts(
    documents: Sequence[QueryDocument],
    doubtful: Sequence[tuple[int, Match]],
    texts: Mapping[Any, str],
    stage: TextStage,
) -> dict[tuple[int, Any], TextVerdict]:
    """Return the text verdicts by document and identity of the candidate."""
    # Query documents get negative positions, which no stored document has.
    stored = {name: at for at, name in enumerate(dict.fromkeys(match.identity for _, match in doubtful))}
    known = {at: texts.get(name, "") for name, at in stored.items()}
    known |= {row - len(documents): documents[row].text for row, _ in doubtful}
    pairs = {(row - len(documents), stored[match.identity]): (row, match) for row, match in doubtful}
    as_bags = stage.as_bags(pairs, (match.resemblance for _, match in pairs.values()))
    verdicts = stage.decide_texts(sorted(pairs), known, as_bags)
    return {(row, match.identity): verdicts[pair] for pair, (row, match) in pairs.items() if pair in verdicts}


def _apply_verdict(one: Nominee, verdict: TextVerdict | None) -> Match | None:
    if not one.doubtful or verdict is None:
        return one.match if one.kept else None
    return replace(one.match, similarity=verdict.similarity) if verdict.alike else None
