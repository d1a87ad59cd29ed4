"""A process of :mod:`bench.versions`, run by the Python of either checkout, with what both of them have."""

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse

_SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0}
_ALONE, _MEMBERS = FoldOptions(members=0, window=200), FoldOptions(members=5, window=200)
_WAYS, _FOLD = {"folded page": _ALONE, "folded page with members": _MEMBERS}, "fold 200 hits"
_FIELDS = ["_dedup.digest", "_dedup.signature"]


def main() -> None:
    """Answer each line of the standard input with one line."""
    url, index = sys.argv[1:]
    engine = open_engine(url)
    pipeline = Pipeline.from_json(default_definition())
    folded = FoldedSearch(engine, pipeline.scheme)
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any] = {}
        if "index" in message:
            _fill(engine, index, message["index"], pipeline)
        elif "delete" in message:
            engine.delete_index(index)
        else:
            answer = _searched(engine, folded, pipeline, index, message["search"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _fill(engine: Engine, index: str, pages: Sequence[dict[str, Any]], pipeline: Pipeline) -> None:
    if engine.index_exists(index):
        engine.delete_index(index)
    summary = index_documents(engine, index, pages, pipeline, settings=_SETTINGS)
    assert summary.indexed == len(pages)
    # What was read for the index is not looked through for garbage while searches are timed.
    gc.collect()
    gc.freeze()


def _searched(
    engine: Engine, folded: FoldedSearch, pipeline: Pipeline, index: str, bodies: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    answer: dict[str, Any] = {name: [] for name in ("shown", *_WAYS, _FOLD)}
    for body in bodies:
        shown: list[str] = []
        for name, options in _WAYS.items():
            page, taken = _timed(lambda options=options, body=body: folded.search(index, body, options))
            answer[name].append(taken)
            shown = [hit["_id"] for hit in page["hits"]["hits"]]
        answer["shown"].append(shown)
        window = engine.search(index, {**body, "size": 200, "_source": False, "docvalue_fields": _FIELDS})
        hits = window["hits"]["hits"]
        _, taken = _timed(lambda hits=hits: collapse(hits, pipeline.scheme, _ALONE))
        answer[_FOLD].append(taken)
    return answer


def _timed(work: Callable[[], Any]) -> tuple[Any, list[float]]:
    """Return the answer, and the milliseconds it took: as the clock goes, and of this process."""
    start, busy = time.perf_counter(), time.process_time()
    answer = work()
    return answer, [(time.perf_counter() - start) * 1e3, (time.process_time() - busy) * 1e3]


if __name__ == "__main__":
    main()
