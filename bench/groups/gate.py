"""Decisions of a gate beside so many stored documents: one at a time from 8 callers, and in batches.

What arrives are texts of 300 words. Each fifth is an edit of one of 2,000 that are stored, with 5, 15 or 25 %
of the words replaced: the first are copies by their signatures, the second by their texts, the third neither.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from time import perf_counter

import numpy as np

from bench.groups.edited import arriving, documents, pipeline, texts
from bench.groups.places import engines, merged
from bench.groups.stored import SCHEME, count, fill, prints
from bench.table import Row
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.intent_index import intents_name

INDEX, CLAIMS = "bench-gate", "bench-claims"
_CALLERS, _EACH, _BATCH, _BATCHES, _CLAIMED = 8, 150, 300, 16, 100
#: Documents that each gate decides on before any counts: a server that was just started compiles itself,
#: which takes a third of its time in the first 2,000 decisions.
_WARM = 2400
#: Stored texts of which some that arrive are edits.
_KNOWN = 2000


def measure() -> list[Row]:
    """Return decisions a second and their times, after asserting how many are let in."""
    with engines() as places:
        return [row for name, engine in places for row in measured(name, engine, count())]


def measured(name: str, engine: Engine, stored: int) -> Iterator[Row]:
    """Yield the figures beside so many stored documents, on one engine."""
    for index in (INDEX, intents_name(INDEX), CLAIMS):
        if engine.index_exists(index):
            engine.delete_index(index)
    made_by = pipeline()
    fill(engine, INDEX, stored, made_by.scheme)
    note = f"beside {stored:,} documents; {name}"
    known = texts(_KNOWN)
    result = engine.bulk(_stored(documents("known", known, made_by)))
    assert not result.failures
    engine.refresh(INDEX)
    merged()
    one_by_one = _CALLERS * _EACH
    fresh = documents("new", arriving(2 * one_by_one + _BATCH * _BATCHES, known, seed=7), made_by)
    with ExitStack() as opened:
        gates = [
            opened.enter_context(Gate(engine, INDEX, Policy("refuse"), pipeline=made_by))
            for _ in range(2 if engine.can.seq_no else 1)
        ]
        for at, gate in enumerate(gates):
            list(
                _singles([gate], documents(f"warm{at}", arriving(_WARM, known, seed=11 + at), made_by), note)
            )
        yield from _singles(gates[:1], fresh[:one_by_one], note)
        if len(gates) > 1:
            yield from _singles(gates, fresh[one_by_one : 2 * one_by_one], note)
        yield from _batches(gates[0], fresh[2 * one_by_one :], note)
    if engine.can.seq_no:
        yield _claims(engine, note)


def _stored(made: Sequence[JSON]) -> Iterator[JSON]:
    for one in made:
        yield {"_index": INDEX, "_id": one["_id"], "_source": {k: v for k, v in one.items() if k != "_id"}}


def _singles(gates: Sequence[Gate], given: Sequence[JSON], note: str) -> Iterator[Row]:
    times: list[float] = []

    def call(number: int) -> None:
        gate = gates[number % len(gates)]
        for document in given[number::_CALLERS]:
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
    assert len(times) == len(given)
    of, more = ("one gate", "") if len(gates) == 1 else (f"{len(gates)} gates", f", {len(gates)} gates")
    who = f"{_CALLERS} callers of {of}, one document each; {note}"
    yield Row(f"decisions one at a time{more}", len(times) / seconds, "documents/s", who)
    for share in (50, 99):
        yield Row(f"a decision, p{share}{more}", float(np.percentile(times, share)) * 1e3, "ms", who)


def _batches(gate: Gate, given: Sequence[JSON], note: str) -> Iterator[Row]:
    accepted = 0
    start = perf_counter()
    for begin in range(0, len(given), _BATCH):
        told = gate.admit(given[begin : begin + _BATCH])
        accepted += sum(verdict.status == "accepted" for verdict in told)
    seconds = perf_counter() - start
    # All that is new, and of the edits the third in which a quarter of the words is another.
    assert 0.82 * len(given) < accepted < 0.91 * len(given)
    yield Row("decisions in batches", len(given) / seconds, "documents/s", f"{_BATCH} a batch; {note}")


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
