"""The stage on a real server, beside the server's own means: indexing, disk, pages of results, pairs folded.

``SHINGLEFOLD_TEST_URL`` names the server; let its JVM compile fully, as servers do:
``SHINGLEFOLD_TEST_JVM="-Xms1g -Xmx1g" make engine-up`` (without it the server is quick to start instead).
Where others use the machine too, only figures of one run compare.
"""

import gc
import json
import os
import random
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bench import corpora
from bench.quality.corpus import LEAST
from bench.server_callers import callers
from bench.server_indices import MINIMA, PLAIN, RAW, Site
from bench.server_pages import latency
from bench.table import URL, Row
from shinglefold.engines import open_engine

_Pairs = set[tuple[str, str]]
#: Documents whose copies are looked for by ``min_hash``: a query of so many terms is not for each of them.
_SAMPLE = 400
_LEAST = 0.62
_MOST = 200


def folds(site: Site) -> list[Row]:
    """Return the share of pairs ≥ .80 each way folds; the other shares are in the notes."""
    labelled = _labelled(site.corpus)
    sample = set(random.Random(84).sample(sorted(labelled), _SAMPLE))
    own = _by_min_hash(site, sample)
    told = f"pairs of {_SAMPLE} documents drawn; {MINIMA} minima, at least {_LEAST:.0%} of them equal"
    return [
        _row(
            "exact digest",
            site,
            _by_digest(site),
            labelled,
            "what collapse on the digest folds; no two pages here are exact copies",
        ),
        _row("shinglefold", site, site.pairs, labelled, "default scheme"),
        _row("engine's min_hash, sample", site, own, sample, told),
        _row("shinglefold, sample", site, site.pairs, sample, "the same sample"),
    ]


def _row(name: str, site: Site, folded: _Pairs, of: set[str], note: str) -> Row:
    labelled = _labelled(site.corpus)

    def counted(pair: tuple[str, str]) -> bool:
        return pair[0] in labelled and pair[1] in labelled and (pair[0] in of or pair[1] in of)

    truth = {pair: similarity for pair, similarity in corpora.labels(site.corpus).items() if counted(pair)}
    same = {pair for pair, similarity in truth.items() if similarity >= 0.95}
    alike = {pair for pair, similarity in truth.items() if similarity >= 0.8}
    ours = {pair for pair in folded if counted(pair)}
    wrong = sum(truth.get(pair, 0.0) < 0.7 for pair in ours) / max(1, len(ours))
    told = f"{len(same & ours) / len(same):.3f} of pairs ≥ .95; {wrong:.2%} of {len(ours):,} folded below .70"
    return Row(f"{name} folds of pairs ≥ .80", len(alike & ours) / len(alike), "share", f"{told}; {note}")


def _by_digest(site: Site) -> _Pairs:
    groups: dict[str, list[str]] = defaultdict(list)
    for outcome in site.pipeline.run(site.stripped):
        assert outcome.document is not None
        if not (digest := outcome.document["_dedup"]["digest"]).endswith("."):
            groups[digest].append(outcome.document["_id"])
    return {
        (min(pair), max(pair)) for members in groups.values() for pair in combinations(sorted(members), 2)
    }


def _by_min_hash(site: Site, sample: set[str]) -> _Pairs:
    """Ask the engine, for each text of a sample, for those that share enough minima with it."""
    texts = {
        page["id"]: f"{page['title']}\n{text}"
        for page, text in zip(corpora.pages(site.corpus), corpora.texts(site.corpus), strict=True)
    }
    minima = {"type": "text", "analyzer": "minima", "index_options": "docs", "norms": False}
    site.create(RAW, {"minima": minima})
    result = site.engine.bulk(
        {"_index": RAW, "_id": name, "_source": {"minima": text}} for name, text in texts.items()
    )
    assert result.indexed == len(texts)
    site.engine.refresh(RAW)
    found: _Pairs = set()
    for name in sorted(sample):
        alike = {
            "fields": ["minima"],
            "like": [{"_index": RAW, "_id": name}],
            "include": True,
            "min_term_freq": 1,
            "min_doc_freq": 1,
            "max_query_terms": MINIMA,
            "minimum_should_match": f"{_LEAST:.0%}",
        }
        body = {"query": {"more_like_this": alike}, "size": _MOST, "_source": False}
        hits = site.engine.search(RAW, body)["hits"]["hits"]
        assert name in {hit["_id"] for hit in hits}
        found |= {(min(name, hit["_id"]), max(name, hit["_id"])) for hit in hits if hit["_id"] != name}
    return found


def _labelled(corpus: str) -> set[str]:
    """Return the pages the labels speak of."""
    pages = zip(corpora.pages(corpus), corpora.texts(corpus), strict=True)
    return {page["id"] for page, text in pages if len(corpora.WORD.findall(text)) >= LEAST}


_ROUNDS = 3
_ROUNDS_NOTE = f"best of {_ROUNDS} rounds after one to warm up; client, workers and server share two cores"
_OVERLAPPING = "texts, plain bulk, two requests at a time"
#: What no client can be faster than: the fingerprints were there before.
_SIGNED = "texts with fingerprints of before, plain bulk, two requests at a time"
_STAGED, _COMPILED = "texts, with the stage", "texts, with the stage, compiled code loaded"
_ONE_PROCESS = "texts, with the stage, compiled code loaded, no workers"
#: Seconds after which a node looks again at how much processor time it has taken; before, it repeats itself.
_STALE = 1.1


class Taken(NamedTuple):
    """What a run took for a document: by the clock, and of processors by the client and by the server."""

    clock: float
    client: float
    server: float


def throughput(site: Site) -> list[Row]:
    """Return documents a second with the stage and without, round by round; markup and texts apart."""
    ways = _ways(site)
    assert site.stripped
    assert site.signed
    # The corpora in memory are not the stage's: they need not be looked through for garbage.
    gc.collect()
    gc.freeze()
    # The first round warms the server and the lexicon.
    rounds = [{name: _taken(work, len(site.raw)) for name, work in ways.items()} for _ in range(_ROUNDS + 1)]
    taken = {name: [one[name] for one in rounds[1:]] for name in ways}
    return [*_rates(taken), *_shares(taken), *_costs(taken)]


def _ways(site: Site) -> dict[str, Callable[[], None]]:
    ways: dict[str, Callable[[], None]] = {
        "pages, plain bulk": lambda: site.bulk(RAW, site.raw),
        "pages, with the stage": lambda: site.stage(site.raw, site.of_pages),
        "texts, plain bulk": lambda: site.bulk(PLAIN, site.stripped),
        _OVERLAPPING: lambda: site.bulk_overlapping(PLAIN, site.stripped),
        _SIGNED: lambda: site.bulk_overlapping(RAW, site.signed, site.with_fingerprints),
        _STAGED: lambda: site.stage(site.stripped),
    }
    if (compiled := site.compiled) is not None:
        ways[_COMPILED] = lambda: site.stage(site.stripped, compiled)
        ways[_ONE_PROCESS] = lambda: site.stage(site.stripped, compiled, workers=1)
    return ways


def _taken(work: Callable[[], None], documents: int) -> Taken:
    server, before, start = _server_seconds(), os.times(), time.perf_counter()
    work()
    clock = time.perf_counter() - start
    after = os.times()
    # The first four are of processors: its own, and those of the workers that have ended.
    client = sum(after[:4]) - sum(before[:4])
    return Taken(*(seconds / documents for seconds in (clock, client, _server_seconds() - server)))


def _server_seconds() -> float:
    """Return the processor time of all nodes so far."""
    time.sleep(_STALE)
    with urllib.request.urlopen(f"{os.environ[URL]}/_nodes/stats/process", timeout=60) as answer:
        nodes = json.load(answer)["nodes"].values()
    return sum(node["process"]["cpu"]["total_in_millis"] for node in nodes) / 1e3


def _rates(taken: Mapping[str, list[Taken]]) -> Iterator[Row]:
    for name, rounds in taken.items():
        yield Row(name, 1 / min(one.clock for one in rounds), "documents / s", _ROUNDS_NOTE)


def _shares(taken: Mapping[str, list[Taken]]) -> Iterator[Row]:
    for kind, what in (("pages", "markup out and fingerprint"), ("texts", "fingerprint alone")):
        yield _ratio(taken, f"{kind}, with the stage", f"{kind}, plain bulk", f"{what}; target: at least .8")
    for name in (_SIGNED, _STAGED, _COMPILED, _ONE_PROCESS):
        if name in taken:
            yield _ratio(taken, name, _OVERLAPPING, "target of the stage: at least .85")


def _ratio(taken: Mapping[str, list[Taken]], one: str, other: str, note: str) -> Row:
    rounds = [theirs.clock / ours.clock for ours, theirs in zip(taken[one], taken[other], strict=True)]
    told = ", ".join(f"{share:.2f}" for share in rounds)
    best = min(each.clock for each in taken[other]) / min(each.clock for each in taken[one])
    name = f"{one} ÷ {other.removeprefix('texts, ').removeprefix('pages, ')}"
    return Row(name, float(np.median(rounds)), "share", f"{note}; rounds {told}; best ÷ best {best:.2f}")


def _costs(taken: Mapping[str, list[Taken]]) -> Iterator[Row]:
    for name, rounds in taken.items():
        for side in ("client", "server"):
            least = min(getattr(one, side) for one in rounds) * 1e6
            yield Row(f"{name}, CPU of the {side}", least, "µs / document", "least of the rounds")


CORPORA = ("libreoffice-ru", "libreoffice-zh-cn")


def measure() -> list[Row]:
    """Return the figures for each corpus; nothing where there is none, or no server is named."""
    if not os.environ.get(URL):
        return []
    return [row for corpus in filter(corpora.available, CORPORA) for row in _measured(corpus)]


def _measured(corpus: str) -> Iterator[Row]:
    with closing(open_engine(os.environ[URL])) as engine:
        info = engine.info()
        site = Site(engine, corpus)
        try:
            rows = [*throughput(site), *site.growth(), *latency(site), *callers(site), *folds(site)]
        finally:
            site.delete()
    server = f"{info['distribution']} {info['version']}"
    for row in rows:
        yield replace(row, name=f"{corpus}: {row.name}", note=f"{row.note}; {server}" if row.note else server)
