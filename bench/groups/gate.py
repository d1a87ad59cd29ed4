"""Decisions of a gate beside so many stored documents: one at a time from 8 callers, and in batches."""

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from bench.groups.places import engines
from bench.groups.stored import SCHEME, count, fill, prints
from bench.table import Row
from shinglefold.contracts import Engine
from shinglefold.groups import Gate, Policy
from shinglefold.groups.gate.intents import intents_name
from shinglefold.ingest import Pipeline
from shinglefold.model import Fingerprint

INDEX, CLAIMS = "bench-gate", "bench-claims"
_CALLERS, _EACH, _BATCH, _BATCHES, _CLAIMED = 8, 60, 300, 6, 100


def measure() -> list[Row]:
    """Return decisions a second and their times, after asserting how many are let in."""
    with engines() as places:
        return [row for name, engine in places for row in measured(name, engine, count())]


def measured(name: str, engine: Engine, stored: int) -> Iterator[Row]:
    """Yield the figures beside so many stored documents, on one engine."""
    for index in (INDEX, intents_name(INDEX), CLAIMS):
        if engine.index_exists(index):
            engine.delete_index(index)
    fill(engine, INDEX, stored)
    note = f"beside {stored:,} documents; {name}"
    fresh = [made for _, made in prints(_CALLERS * _EACH + _BATCH * _BATCHES, seed=7)]
    with Gate(engine, INDEX, Policy("refuse"), pipeline=_pipeline()) as gate:
        gate.admit(_documents("warm", [made for _, made in prints(40, seed=11)]))
        yield from _singles(gate, fresh[: _CALLERS * _EACH], note)
        yield from _batches(gate, fresh[_CALLERS * _EACH :], note)
    if engine.can.seq_no:
        yield _claims(engine, note)


def _pipeline() -> Pipeline:
    return Pipeline.from_json({"processors": [{"supershingle": {"fields": ["body"]}}]})


def _documents(name: str, made: Sequence[Fingerprint]) -> list[dict[str, Any]]:
    return [{"_id": f"{name}-{at}", "title": "heron", "dedup": one.to_field()} for at, one in enumerate(made)]


def _singles(gate: Gate, made: Sequence[Fingerprint], note: str) -> Iterator[Row]:
    documents = _documents("one", made)
    times: list[float] = []

    def call(number: int) -> None:
        for document in documents[number::_CALLERS]:
            begin = perf_counter()
            gate.admit([document])
            times.append(perf_counter() - begin)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(_CALLERS)]
    start = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = perf_counter() - start
    assert len(times) == len(documents)
    who = f"{_CALLERS} callers of one gate, one document each; {note}"
    yield Row("decisions one at a time", len(times) / seconds, "documents/s", who)
    for share in (50, 99):
        yield Row(f"a decision, p{share}", float(np.percentile(times, share)) * 1e3, "ms", who)


def _batches(gate: Gate, made: Sequence[Fingerprint], note: str) -> Iterator[Row]:
    documents = _documents("many", made)
    accepted = 0
    start = perf_counter()
    for begin in range(0, len(documents), _BATCH):
        told = gate.admit(documents[begin : begin + _BATCH])
        accepted += sum(verdict.status == "accepted" for verdict in told)
    seconds = perf_counter() - start
    assert 0.7 * len(documents) < accepted < 0.95 * len(documents)
    yield Row("decisions in batches", len(documents) / seconds, "documents/s", f"{_BATCH} a batch; {note}")


def _claims(engine: Engine, note: str) -> Row:
    """Measure the alternative: a document created for each supershingle, and the text itself; no look-up."""
    engine.create_index(CLAIMS, {"dynamic": False}, {})
    texts = list(islice((made for _, made in prints(_CLAIMED, seed=13)), _CLAIMED))
    start = perf_counter()
    for at, made in enumerate(texts):
        claims = [
            {"_op_type": "create", "_index": CLAIMS, "_id": word, "_source": {"of": at}}
            for word in made.supershingles
        ]
        document = {"_index": INDEX, "_id": f"claim-{at}", "_source": {"dedup": made.to_field()}}
        engine.bulk([*claims, document])
    seconds = perf_counter() - start
    return Row(
        "claims instead, writes only",
        len(texts) / seconds,
        "documents/s",
        f"{SCHEME.sketch.groups} created a text, one text at a time; {note}",
    )
