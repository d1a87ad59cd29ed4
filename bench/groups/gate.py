"""Decisions of a gate beside so many stored documents: one at a time from 8 callers, and in batches.

What arrives are texts of 300 words. Each fifth is an edit of one of 2,000 that are stored, with 5, 15 or 25 %
of the words replaced: the first are copies by their signatures, the second by their texts, the third neither.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from time import perf_counter
from typing import Any

from bench.corpora import Vocabulary
from bench.groups.stored import count, engines, fill, merged
from bench.server_indices import actions
from bench.table import Row, percentiles
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest import Pipeline
from shinglefold.testing.edits import edited

#: Words of a text; the share of them that is replaced in edits, which leaves .95, .85 and .75.
WORDS, SHARES = 300, (0.05, 0.15, 0.25)
_VOCABULARY = 20_000
#: One in so many texts is an edit.
EDITS = 5


def pipeline() -> Pipeline:
    """Return what makes the fingerprints of these texts."""
    return Pipeline.from_json({"processors": [{"supershingle": {"fields": ["body"]}}]})


def texts(number: int, seed: int = 1) -> list[str]:
    """Return so many texts that have nothing in common but frequent words."""
    vocabulary = Vocabulary.of(_VOCABULARY)
    known = [word.decode() for word in vocabulary.words]
    drawn = vocabulary.drawn(number * WORDS, seed).tolist()
    bounds = pairwise(range(0, len(drawn) + 1, WORDS))
    return [" ".join([known[place] for place in drawn[begin:end]]) for begin, end in bounds]


def arriving(number: int, stored: Sequence[str], seed: int) -> list[str]:
    """Return texts of which each fifth is an edit of one that is stored, by one share after the other."""
    fresh = texts(number, seed)
    for place in range(EDITS - 1, number, EDITS):
        turn = place // EDITS
        original = stored[(seed * 7919 + turn) % len(stored)]
        share = SHARES[turn % len(SHARES)]
        fresh[place] = edited(original, "words replaced", share, "en", seed=seed + turn).text
    return fresh


def documents(name: str, bodies: Sequence[str], made_by: Pipeline) -> list[dict[str, Any]]:
    """Return texts as documents with their fingerprints."""
    given = [{"_id": f"{name}-{at}", "body": body} for at, body in enumerate(bodies)]
    made = made_by.run_block(given)
    return [{**outcome.document, "_id": one["_id"]} for one, outcome in zip(given, made, strict=True)]


INDEX = "bench-gate"
_CALLERS, _EACH, _BATCH, _BATCHES = 8, 150, 300, 16
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
    for index in (INDEX, intents_name(INDEX)):
        if engine.index_exists(index):
            engine.delete_index(index)
    made_by = pipeline()
    fill(engine, INDEX, stored, made_by)
    note = f"beside {stored:,} documents; {name}"
    known = texts(_KNOWN)
    result = engine.bulk(actions(INDEX, documents("known", known, made_by)))
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
    for row in percentiles("a decision", times, (50, 99), who):
        yield replace(row, name=row.name + more)


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
