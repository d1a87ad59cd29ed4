"""A process of :mod:`bench.versions_embedded`, run by the Python of either checkout, with what both have."""

import json
import resource
import sys
import time
from tempfile import TemporaryDirectory

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, index_documents, read

#: Words of the corpora, so that a part of their documents is found.
_SEARCHES = ("таблица", "печать документа", "формула массива", "вставить рисунок", "макрос", "файл", "вікно")


def main() -> None:
    """Index a file and print what that took, and how many documents searches find."""
    source, workers = sys.argv[1:]
    pipeline = Pipeline.from_json(default_definition())
    with TemporaryDirectory() as folder, EmbeddedEngine(folder, pipeline.tools.canonicalizer) as engine:
        before, start = _processor(), time.perf_counter()
        summary = index_documents(engine, "pages", read(source), pipeline, workers=int(workers))
        clock, processor = time.perf_counter() - start, _processor() - before
        assert summary.indexed == summary.read, summary
        found = [_found(engine, words) for words in _SEARCHES]
    sys.stdout.write(json.dumps({"clock": clock, "processor": processor, "found": found}))


def _processor() -> float:
    """Return the seconds of processor time of this process and of those that it has ended."""
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in taken)


def _found(engine: EmbeddedEngine, words: str) -> int:
    body = {"query": {"match": {"body": words}}, "size": 0, "track_total_hits": True}
    answer = engine.search("pages", body)
    return int(answer["hits"]["total"]["value"])


if __name__ == "__main__":
    main()
