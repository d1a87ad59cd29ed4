"""The index that the gate is measured on is one that its gate opens."""

from contextlib import closing

from bench.groups.gate import INDEX, documents, pipeline, texts
from bench.groups.stored import fill, words
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping import Gate, Policy


def test_the_gate_of_the_bench_decides_beside_stored_documents(tmp_path):
    made_by = pipeline()
    with closing(EmbeddedEngine(tmp_path, words)) as engine:
        fill(engine, INDEX, 20, made_by)
        with Gate(engine, INDEX, Policy("refuse"), pipeline=made_by) as gate:
            (verdict,) = gate.admit(documents("new", texts(1), made_by))
    assert verdict.status == "accepted"
