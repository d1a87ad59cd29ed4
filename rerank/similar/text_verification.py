"""Text verification of uncertain candidates: fetches their texts by id and compares them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.contracts.shard_failures import refuse_small_windows
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.text_verification import TextStage, TextVerdict
from shinglefold.rerank.hits import Hit, identity
from shinglefold.rerank.request.bodies import hits_query
from shinglefold.rerank.similar.decision import Nominee
from shinglefold.rerank.similar.query_document import Match, QueryDocument
from shinglefold.rerank.window.window import PartialAnswer

#: Documents whose texts are read at a time.
_AT_ONCE = 100


def decide_by_texts(
    asked: Sequence[QueryDocument], nominees: Sequence[Sequence[Nominee]], source: "TextSource"
) -> Steps[list[list[Match]]]:
    """Return the copies of each document; the texts decide uncertain candidates where both are known.

    Cost: one request for each hundred uncertain candidates whose text no answer has.
    """
    stage = source.stage
    doubtful = [(row, one.match) for row, several in enumerate(nominees) for one in several if one.doubtful]
    if stage is None or not doubtful or not stage.ready():
        return [[one.match for one in several if one.kept] for several in nominees]
    texts = yield from _texts([match.hit for _, match in doubtful], stage, source)
    said = _text_verdicts(asked, doubtful, texts, stage)
    return [
        [
            match
            for one in several
            if (match := _apply_verdict(one, said.get((row, one.match.identity)))) is not None
        ]
        for row, several in enumerate(nominees)
    ]


class TextSource:
    """Fetches the texts of candidates.

    Args:
        stage: None reads no texts.
        index: None where the body names a point in time.
        shards: the number of shards searched for candidates.
        beside: further parts of the request body.
    """

    def __init__(
        self,
        stage: TextStage | None,
        index: str | None,
        shards: int,
        partial: PartialAnswer,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        self.stage, self.partial = stage, partial
        self._index, self._shards, self._beside = index, shards, beside or {}

    def read(self, hits: Sequence[Hit], fields: Sequence[str]) -> Steps[list[JSON]]:
        """Return hits by id with some fields of their sources."""
        found: list[JSON] = []
        for begin in range(0, len(hits), _AT_ONCE):
            part = hits[begin : begin + _AT_ONCE]
            body = {"query": hits_query(part, self._shards), "size": len(part), "track_total_hits": False}
            answer = yield Call("search", (self._index, {**body, **self._beside, "_source": list(fields)}))
            refuse_small_windows(answer)
            self.partial.note(answer)
            found += answer["hits"]["hits"]
        return found


def _texts(hits: Iterable[Hit], stage: TextStage, source: TextSource) -> Steps[dict[Any, str]]:
    """Return the texts of hits by identity; empty where a hit has none."""
    each = {identity(hit): hit for hit in hits}
    texts = {name: stage.text_of(hit) for name, hit in each.items()}
    lacking = [each[name] for name, text in texts.items() if not text]
    for hit in (yield from source.read(lacking, stage.fields)):
        texts[identity(hit)] = stage.text_of(hit)
    return texts


def _text_verdicts(
    asked: Sequence[QueryDocument],
    doubtful: Sequence[tuple[int, Match]],
    texts: Mapping[Any, str],
    stage: TextStage,
) -> dict[tuple[int, Any], TextVerdict]:
    """Return the text verdicts by document and identity of the candidate."""
    # Query documents get negative places.
    stored = {name: at for at, name in enumerate(dict.fromkeys(match.identity for _, match in doubtful))}
    known = {at: texts.get(name, "") for name, at in stored.items()}
    known |= {row - len(asked): asked[row].text for row, _ in doubtful}
    pairs = {(row - len(asked), stored[match.identity]): (row, match.identity) for row, match in doubtful}
    return {pairs[pair]: said for pair, said in stage.decide_texts(sorted(pairs), known).items()}


def _apply_verdict(one: Nominee, said: TextVerdict | None) -> Match | None:
    if not one.doubtful or said is None:
        return one.match if one.kept else None
    return replace(one.match, similarity=said.similarity) if said.alike else None
