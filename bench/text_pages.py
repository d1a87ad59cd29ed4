"""What the text stage costs a folded page of a server, in turn with the page that signatures decide.

``SHINGLEFOLD_TEST_URL`` names the server, as for ``servers``. Told of the clock and of the client's
processor: both count, as the stage reads and compares on the client. Once with texts read lately still known,
once with every text read anew, and once with pages all seen before, as on a site whose visitors ask the same.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import numpy as np

from bench import corpora
from bench.quality.corpus import POSITIVE
from bench.quality.corpus import corpus as labelled_corpus
from bench.search import title_searches
from bench.server_indices import STAGED, Site
from bench.storage import URL
from bench.table import Row
from shinglefold.contracts.engine import JSON
from shinglefold.engines import open_engine
from shinglefold.rerank import FoldedSearch, FoldOptions

CORPUS = "libreoffice-ru"
_WARM = 60
_BASE, _WARMED, _COLD, _AGAIN = "by signature", "by text", "by text, read anew", "by text, seen before"
#: A way to get a page, and what it took: seconds of the clock and of the client's processor.
_Taken = Mapping[str, list[tuple[float, float]]]


def measure() -> list[Row]:
    """Return the figures; nothing where the corpus is not here, or no server is named."""
    if not os.environ.get(URL) or not corpora.available(CORPUS):
        return []
    with closing(open_engine(os.environ[URL])) as engine:
        site = Site(engine, CORPUS)
        try:
            site.stage(site.stripped)
            return list(_rows(site))
        finally:
            site.delete()


def _rows(site: Site) -> Iterator[Row]:
    ways, bodies = _ways(site), title_searches(CORPUS)
    for body in bodies[:_WARM]:
        for search in ways.values():
            search(body)
    for body in bodies:
        ways[_AGAIN](body)
    gc.collect()
    gc.freeze()
    taken, answers = _timed(ways, bodies)
    info = site.engine.info()
    server = f"{info['distribution']} {info['version']}"
    note = f"{len(bodies)} searches by title, pages of 10 with 5 members, {server}"
    medians = {}
    for name, seconds in taken.items():
        clock, cpu = np.median(np.array(seconds), axis=0) * 1e3
        medians[name] = clock, cpu
        yield Row(f"{CORPUS}: folded page {name}, p50", float(clock), "ms", note)
        yield Row(f"{CORPUS}: folded page {name}, client's processor, p50", float(cpu), "ms", note)
    for name in (_WARMED, _COLD, _AGAIN):
        for which, what in enumerate(("p50", "client's processor, p50")):
            ratio = medians[name][which] / medians[_BASE][which]
            yield Row(
                f"{CORPUS}: {name} ÷ {_BASE}, {what}", float(ratio), "times", "asked for the default: 1.1"
            )
        pairs = zip(taken[name], taken[_BASE], strict=True)
        more = float(np.median([one[0] - other[0] for one, other in pairs])) * 1e3
        yield Row(f"{CORPUS}: {name} − {_BASE}, median of differences", more, "ms", "of one search each")
    for name in (_BASE, _WARMED):
        yield Row(f"{CORPUS}: near-copies left on pages {name}", _left(answers[name]), "of hits shown", note)


class _Search(FoldedSearch):
    """A search that can forget what it read."""

    def forget_texts(self) -> None:
        if self._stages is not None:
            self._stages.forget()


def _ways(site: Site) -> dict[str, Callable[[JSON], JSON]]:
    scheme = site.pipeline.scheme
    plain, warm, cold, again = (_Search(site.engine, scheme) for _ in range(4))
    by_text = FoldOptions(verify="text")

    def anew(body: JSON) -> JSON:
        cold.forget_texts()
        return cold.search(STAGED, body, by_text)

    return {
        _BASE: lambda body: plain.search(STAGED, body, FoldOptions(verify="signature")),
        _WARMED: lambda body: warm.search(STAGED, body, by_text),
        _COLD: anew,
        _AGAIN: lambda body: again.search(STAGED, body, by_text),
    }


def _timed(
    ways: Mapping[str, Callable[[JSON], JSON]], bodies: list[JSON]
) -> tuple[_Taken, dict[str, list[JSON]]]:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    answers: dict[str, list[JSON]] = {name: [] for name in ways}
    for turn, body in enumerate(bodies):
        # Nobody is always the one that finds the server's caches cold.
        names = list(ways)[turn % len(ways) :] + list(ways)[: turn % len(ways)]
        for name in names:
            clock, cpu = time.perf_counter(), time.process_time()
            answers[name].append(ways[name](body))
            taken[name].append((time.perf_counter() - clock, time.process_time() - cpu))
    assert all(_ids(one) == _ids(other) for one, other in zip(answers[_WARMED], answers[_COLD], strict=True))
    return taken, answers


def _ids(answer: JSON) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def _left(answers: list[JSON]) -> float:
    """Return what share of the hits shown is a near-copy of one before it, by the labels."""
    whole = labelled_corpus(CORPUS)
    place = {id_: at for at, id_ in enumerate(whole.ids)}
    shown = twice = 0
    for answer in answers:
        found = [place[id_] for id_ in _ids(answer) if id_ in place]
        shown += len(found)
        twice += sum(
            any(whole.truth.get((min(one, other), max(one, other)), 0.0) >= POSITIVE for other in found[:at])
            for at, one in enumerate(found)
        )
    return twice / max(1, shown)
