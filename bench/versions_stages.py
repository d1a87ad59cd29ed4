"""A process of :mod:`bench.versions_writing`, run by the Python of either checkout, with what both have."""

import json
import pickle
import sys
from collections.abc import Callable
from itertools import islice
from tempfile import TemporaryDirectory
from time import thread_time
from typing import TypeVar

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, read
from shinglefold.ingest.batching import RAW_BUDGET, blocks
from shinglefold.ingest.writing import indexer as indexing
from shinglefold.ingest.writing import worker_pool as workers
from shinglefold.ingest.writing.batch import make_batch
from shinglefold.ingest.writing.target_index import TargetIndex

T = TypeVar("T")
_INDEX, _PROTOCOL = "pages", pickle.HIGHEST_PROTOCOL


class _Stages(dict[str, float]):
    """Seconds of this thread on the processor by stage, in order."""

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        start = thread_time()
        made = work()
        self[stage] = thread_time() - start
        return made


def main() -> None:
    """Index the first documents of a file, and print the microseconds of each stage a document."""
    source, most = sys.argv[1], int(sys.argv[2])
    pipeline, stages = Pipeline.from_json(default_definition()), _Stages()
    weight, work = indexing._weight, workers._work  # noqa: SLF001 - a process of workers has no other door
    with TemporaryDirectory() as folder, EmbeddedEngine(folder, pipeline.tools.canonicalizer) as engine:
        to = TargetIndex(engine, _INDEX, pipeline.recipe(None), None, None)
        to.check()
        to.create()
        ready = to.document_preparer()
        made = stages.timed("read", lambda: list(blocks(islice(read(source), most), weight, RAW_BUDGET)))
        asked = stages.timed(
            "to workers", lambda: [pickle.dumps([one.document for one in block], _PROTOCOL) for block in made]
        )
        answers = [
            pickle.dumps(work(pipeline, engine.can.takes_json, ready, pickle.loads(one)), _PROTOCOL)
            for one in asked
        ]
        batches = stages.timed(
            "from workers",
            lambda: [
                make_batch(_INDEX, block, pickle.loads(answer), to.verb)
                for block, answer in zip(made, answers, strict=True)
            ],
        )
        sent = stages.timed("engine", lambda: [engine.bulk(batch.actions) for batch in batches])
        assert not any(one.failures for one in sent)
        engine.refresh(_INDEX)
        found = engine.search(_INDEX, {"size": 0, "track_total_hits": True})["hits"]["total"]["value"]
    count = sum(map(len, made))
    assert found == count, f"{found} of {count} documents are found"
    sys.stdout.write(json.dumps({stage: seconds / count * 1e6 for stage, seconds in stages.items()}))


if __name__ == "__main__":
    main()
