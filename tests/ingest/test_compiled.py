"""When a fingerprinter turns to compiled code: when it pays, and where there is any."""

import json
import sys

import numpy as np
import pytest

from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter, Pipeline, index_documents, read
from shinglefold.ingest import fingerprinter as fingerprint
from shinglefold.ingest.fingerprinter import sketch_json
from shinglefold.model.scheme import SketchOptions
from shinglefold.registry import make_scheme
from shinglefold.sketch import Sketcher

TEXTS = [article["body"] for article in articles()]


def test_it_turns_to_it_in_the_middle_of_a_run_and_nobody_notices(monkeypatch):
    pytest.importorskip("numba")
    plain = Fingerprinter(make_scheme())
    expected = plain.fingerprint(TEXTS * 2)
    assert not plain.canonicalizer.is_compiled
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", sum(map(len, TEXTS)))
    quick = Fingerprinter(make_scheme())
    quick.written(TEXTS[:3])
    assert quick.fingerprint(TEXTS) + quick.fingerprint(TEXTS) == expected
    assert quick.canonicalizer.is_compiled
    assert list(quick.written(TEXTS).bytes_of()) == list(plain.written(TEXTS).bytes_of())


class TellsWhetherCompiled:
    type = "tells"

    def __init__(self, options, tools):
        self.tools = tools

    def apply(self, documents):
        return [{**document, "compiled": self.tools.fingerprinter.is_compiled} for document in documents]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("given", ["file", "list", "unknown"])
@pytest.mark.parametrize(("times", "compiled"), [(0.5, True), (3, False)])
def test_a_source_that_is_large_enough_has_it_before_the_first_document_is_worked_on(
    engine, tmp_path, monkeypatch, given, workers, times, compiled
):
    pytest.importorskip("numba")
    # A file is read some 64 KiB ahead.
    many = TEXTS * 4
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", round(times * sum(map(len, many))))
    # Blocks of a few, of which the first tells how large the source is.
    monkeypatch.setattr("shinglefold.ingest.writing.indexer.RAW_BUDGET", sum(map(len, many)) // 10)
    steps = [{"tells": {}}, {"supershingle": {"field": "body"}}]
    pipeline = Pipeline.from_json({"processors": steps}, processors={"tells": TellsWhetherCompiled})
    documents = [{"id": str(n), "body": text} for n, text in enumerate(many)]
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(f"{json.dumps(one)}\n" for one in documents))
    records = {"file": read(source), "list": documents, "unknown": iter(documents)}[given]
    assert index_documents(engine, "texts", records, pipeline, workers=workers).indexed == len(many)
    hits = engine.search("texts", {"size": 5_000})["hits"]["hits"]
    told = [hit["_source"]["compiled"] for hit in sorted(hits, key=lambda hit: int(hit["_id"]))]
    if given == "unknown":
        # Found out on the way, or never.
        assert not told[0]
    else:
        assert told == [compiled] * len(many)


def test_without_numba_numpy_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(fingerprint, "_WORTH_COMPILING", 100)
    made = Fingerprinter(make_scheme())
    assert not made.compile()
    assert made.fingerprint(TEXTS[:5]) == Fingerprinter(make_scheme()).fingerprint(TEXTS[:5])
    assert not made.canonicalizer.is_compiled


def test_nothing_is_imported_or_compiled_for_a_few_texts():
    import subprocess

    code = (
        "import sys; from shinglefold.ingest import Fingerprinter; "
        "from shinglefold.registry import make_scheme; "
        "Fingerprinter(make_scheme()).fingerprint(['a few words']); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "options",
    [
        SketchOptions(),
        SketchOptions(values=168, bits=4, counted=False, both_ends=False),
        SketchOptions(values=84, bits=8, groups=6, group_size=14, both_ends=False),
        SketchOptions(values=70, bits=1, groups=66, group_size=1, both_ends=False),
        SketchOptions(values=30, bits=16, groups=3, group_size=5),
        SketchOptions(values=5, bits=32, groups=1, group_size=5, both_ends=False),
    ],
)
def test_keywords_and_signatures_are_written_as_numpy_writes_them(options):
    pytest.importorskip("numba")
    from shinglefold.ingest.fingerprint_json import compiled_sketch_json

    chance = np.random.default_rng(1)
    lengths = chance.integers(0, 60, 90)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sketcher = Sketcher(options)
    made = sketcher.sketch(chance.integers(0, 2**64, offsets[-1], dtype=np.uint64), offsets)
    assert 0 < np.count_nonzero(made.valid) < 90
    assert list(compiled_sketch_json(sketcher, made)) == list(sketch_json(sketcher, made))
    assert list(compiled_sketch_json(sketcher, sketcher.sketch(np.zeros(0, np.uint64), offsets[:1]))) == []
