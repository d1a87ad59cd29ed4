"""The look-up: for each of many fingerprints the stored documents that match it, with one request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts import JSON, Parameters
from shinglefold.errors import EngineError
from shinglefold.rerank.partial import missing
from shinglefold.rerank.similar.asked import Asked, Match
from shinglefold.rerank.similar.looking import Looking
from shinglefold.rerank.steps import Call, Steps
from shinglefold.shards import refuse_small_windows


@dataclass(frozen=True, slots=True)
class Found:
    """What a look-up found for one document.

    ``matches``: the most alike first. ``candidates``: how many documents were looked at. ``complete``:
    whether there are no more of them; where not, those that share most supershingles were. ``lacks``: what
    the answer says it lacks (failed shards, a time that ran out); {} where it is whole.
    """

    matches: tuple[Match, ...] = ()
    candidates: int = 0
    complete: bool = True
    lacks: JSON = field(default_factory=dict)


def look_up(asked: Sequence[Asked], by: Looking, parameters: Parameters | None = None) -> Steps[list[Found]]:
    """Find the stored copies of documents, all with one ``_msearch``.

    Raises:
        EngineError: what one of the searches raised.

    Cost: the engine reads the postings of some 20 keywords a document and two doc values a candidate;
    deciding takes about 30 µs a document.
    """
    queries = [(place, query) for place, one in enumerate(asked) if (query := by.query(one)) is not None]
    answers = yield from _answers(by.index, [by.body(query) for _, query in queries], parameters)
    hits: list[list[JSON]] = [[] for _ in asked]
    lacks: list[JSON] = [{} for _ in asked]
    for (place, _), answer in zip(queries, answers, strict=True):
        refuse_small_windows(answer)
        hits[place], lacks[place] = answer["hits"]["hits"], missing(answer)
    matches, _ = by.decision.of_candidates(asked, hits)
    return [
        Found(tuple(found), len(read), len(read) < by.options.window, lack)
        for found, read, lack in zip(matches, hits, lacks, strict=True)
    ]


def _answers(index: str, bodies: Sequence[JSON], parameters: Parameters | None) -> Steps[list[Any]]:
    more = () if parameters is None else (parameters,)
    if len(bodies) == 1:
        return [(yield Call("search", (index, bodies[0], *more)))]
    if not bodies:
        return []
    found = yield Call("msearch", ([(index, body, *more) for body in bodies],))
    for answer in found:
        if isinstance(answer, EngineError):
            raise answer
    return found  # type: ignore[no-any-return]
