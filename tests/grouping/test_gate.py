"""The documents that a gate accepts, by each policy."""

import asyncio
import multiprocessing
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, EngineError, Refused, SchemeMismatch
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate import gate as gate_module
from shinglefold.grouping.gate import group_commit
from shinglefold.grouping.gate.gate import BATCH, batches
from shinglefold.ingest import Pipeline
from shinglefold.ingest.index_mapping import ensure_index
from shinglefold.model.scheme import PRESETS
from shinglefold.model.stored_fingerprint import stored_parts


def _gate(engine, pipeline, *options, **more):
    return Gate(engine, "texts", Policy(*options, **more), pipeline=pipeline)


def _ids(engine):
    engine.refresh("texts")
    return sorted(hit["_id"] for hit in engine.search("texts", {"size": 100})["hits"]["hits"])


def test_a_copy_is_refused_with_the_name_of_what_it_resembles(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        assert gate.add({"id": "first", "body": text("a")}).status == "accepted"
        with pytest.raises(Refused, match="resembles 'first' of 'texts'") as caught:
            gate.add({"id": "second", "body": text("a", 2)})
        assert caught.value.like == "first"
        assert 0.8 < caught.value.likeness < 1
    assert _ids(engine) == ["first"]


def test_the_common_passages_are_returned_on_request(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        (passage,) = gate.passages({"body": "before " + text("a")}, "first")
    assert passage["equal_tokens"] == 120
    assert passage["shown"]["text"] == text("a")


def test_the_first_of_copies_in_a_batch_is_accepted(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        told = gate.add_all([{"id": f"{n}", "body": text("a", n)} for n in range(4)])
    assert [verdict.status for verdict in told] == ["accepted", "refused", "refused", "refused"]
    assert {verdict.like.id for verdict in told[1:]} == {"0"}


def test_a_document_that_is_deleted_frees_its_place_at_once(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        engine.bulk([{"_op_type": "delete", "_index": "texts", "_id": "first"}])
        assert gate.add({"id": "second", "body": text("a")}).status == "accepted"


def test_a_document_may_be_changed_and_frees_the_place_of_its_old_text(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        assert gate.add({"id": "first", "body": text("a", 1)}).status == "accepted"
        assert gate.add({"id": "first", "body": text("b")}).status == "accepted"
        assert gate.add({"id": "second", "body": text("a")}).status == "accepted"
        with pytest.raises(Refused):
            gate.add({"id": "second", "body": text("b")})
    # What is refused changes nothing.
    assert engine.get("texts", "second")["_source"]["body"] == text("a")


def test_tagged_copies_have_one_number_and_strangers_others(engine, pipeline, text):
    with _gate(engine, pipeline, "tag") as gate:
        kinds = ["a", "b", "a", "c", "b", "a"]
        told = gate.add_all([{"id": f"{n}", "body": text(kind, n)} for n, kind in enumerate(kinds)])
    groups = {kind: {v.group for v, k in zip(told, kinds, strict=True) if k == kind} for kind in "abc"}
    assert all(len(numbers) == 1 for numbers in groups.values())
    assert len(set.union(*groups.values())) == 3
    assert [verdict.leads for verdict in told] == [True, True, False, True, False, False]


def test_the_group_of_a_deleted_leader_gets_another_leader(engine, pipeline, text):
    with _gate(engine, pipeline, "tag") as gate:
        first, second = gate.add_all([{"id": f"{n}", "body": text("a", n)} for n in range(2)])
        engine.bulk([{"_op_type": "delete", "_index": "texts", "_id": first.id}])
        third = gate.add({"id": "third", "body": text("a", 2)})
    assert third.group == second.group
    assert not third.leads
    assert engine.get("texts", second.id)["_source"]["_dedup"]["leader"] is True


def test_a_leader_with_another_text_that_resembles_its_group_joins_it_behind_another_leader(
    engine, pipeline, text
):
    with _gate(engine, pipeline, "tag") as gate:
        first, _ = gate.add_all([{"id": id_, "body": text("a", n)} for n, id_ in enumerate(["one", "two"])])
        gate.refresh()
        again = gate.add({"id": "one", "body": text("a", 2)})
    assert (again.group, again.leads) == (first.group, False)
    assert engine.get("texts", "two")["_source"]["_dedup"]["leader"] is True


def _as_list(parts):
    return {"_dedup": [parts]}


def _with_dots(parts):
    return {f"_dedup.{name}": value for name, value in parts.items()}


@pytest.mark.parametrize("form", [_as_list, _with_dots])
@pytest.mark.parametrize("notes", [{}, {"group": 7, "leader": False}], ids=["ungrouped", "left"])
def test_a_new_leader_keeps_its_fingerprint_in_any_form(engine, pipeline, text, form, notes):
    (made,) = pipeline.run_block([{"_id": "old", "body": text("a")}])
    parts = made.document["_dedup"]
    source = {"body": text("a"), "host": "a.org", **form(parts | notes)}
    assert not engine.bulk([{"_index": "texts", "_id": "old", "_source": source}]).failures
    with _gate(engine, pipeline, "tag") as gate:
        first = gate.add({"id": "first", "body": text("a", 1)})
        second = gate.add({"id": "second", "body": text("a", 2)})
    assert (first.group, first.leads, second.leads) == (second.group, False, False)
    kept = engine.get("texts", "old")["_source"]
    assert stored_parts(kept, "_dedup") == {**parts, "group": first.group, "leader": True}
    assert {name: kept.get(name) for name in ("body", "host")} == {"body": text("a"), "host": "a.org"}
    if notes:
        assert first.group == 7


@pytest.mark.parametrize("form", [_as_list, _with_dots])
def test_a_fingerprint_that_is_admitted_in_another_form_is_stored_in_the_usual_one(
    engine, pipeline, text, form
):
    (made,) = pipeline.run_block([{"_id": "a", "body": text("a")}])
    parts = made.document["_dedup"]
    with _gate(engine, pipeline, "tag") as gate:
        (told,) = gate.admit([{"_id": "a", "body": text("a"), **form(parts)}])
    stored = engine.get("texts", "a")["_source"]
    assert stored == {"body": text("a"), "_dedup": {**parts, "group": told.group, "leader": True}}


def test_a_capped_group_has_at_most_its_limit(engine, pipeline, text):
    with _gate(engine, pipeline, "cap", 2) as gate:
        told = gate.add_all([{"id": f"{n}", "body": text("a", n)} for n in range(4)])
        assert [verdict.status for verdict in told] == ["accepted"] * 2 + ["refused"] * 2
        assert "has 2 documents already" in told[-1].reason
        engine.bulk([{"_op_type": "delete", "_index": "texts", "_id": "1"}])
        assert gate.add({"id": "4", "body": text("a", 4)}).status == "accepted"


def test_documents_of_different_scope_do_not_match(engine, pipeline, text):
    with _gate(engine, pipeline, scope=("host",)) as gate:
        assert gate.add({"id": "a", "host": "a.org", "body": text("a")}).status == "accepted"
        assert gate.add({"id": "b", "host": "b.org", "body": text("a")}).status == "accepted"
        with pytest.raises(Refused, match="'a'"):
            gate.add({"id": "c", "host": "a.org", "body": text("a")})


def test_texts_outside_the_length_limits_are_refused(engine, pipeline, text):
    with _gate(engine, pipeline, min_characters=500, max_characters=900) as gate:
        with pytest.raises(Refused, match="at least 500"):
            gate.add({"id": "short", "body": text("a", words=30)})
        with pytest.raises(Refused, match="at most 900"):
            gate.add({"id": "long", "body": text("a", words=300)})
        assert gate.add({"id": "right", "body": text("a")}).status == "accepted"


def test_a_text_that_holds_another_matches_by_containment(engine, pipeline, text):
    whole = text("a", words=160)
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "whole", "body": whole})
    half = {"id": "half", "body": " ".join(whole.split()[:90])}
    with _gate(engine, pipeline, measure="containment", min_resemblance=0.9) as gate, pytest.raises(Refused):
        gate.add(half)
    with _gate(engine, pipeline, min_resemblance=0.9) as gate:
        assert gate.add(half).status == "accepted"


def test_an_interrupt_during_gathering_leaves_other_callers_served(engine, pipeline, text, monkeypatch):
    monkeypatch.setattr(group_commit, "_GATHER", 5.0)
    gate = _gate(engine, pipeline)
    # As two callers were there a moment ago, a second one is waited for.
    gate._group_commit._expected = 2

    def interrupt():
        while not gate._group_commit._waiting:
            time.sleep(0.001)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        gate.add({"id": "a", "body": text("a")})
    gate._group_commit._expected = 0
    verdicts = []
    other = threading.Thread(target=lambda: verdicts.append(gate.add({"id": "b", "body": text("b")})))
    other.daemon = True
    other.start()
    other.join(60)
    assert [verdict.status for verdict in verdicts] == ["accepted"]
    gate.close()


def _interrupted(call, lines):
    """Call a function and interrupt it at the first line not in ``lines``; return whether there was one."""

    def interrupt(frame, event, _):
        at = frame.f_code.co_filename, frame.f_lineno
        if at[0] not in (gate_module.__file__, group_commit.__file__):
            return None
        if event == "line" and at not in lines:
            lines.add(at)
            raise KeyboardInterrupt
        return interrupt

    sys.settrace(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


# An interrupt before a coroutine is handed over leaves it unused.
@pytest.mark.long(every=2)
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize(("method", "most"), [("add", 8), ("refresh", 6)])
def test_an_interrupt_at_any_line_leaves_other_callers_served(engine, pipeline, text, method, most):
    gate, told, lines, whole = _gate(engine, pipeline), {}, set(), 0

    def add(id_):
        told[id_] = gate.add({"id": id_, "body": text(id_)}).status

    def begun(id_):
        thread = threading.Thread(target=add, args=(id_,), daemon=True)
        thread.start()
        return thread

    def call():
        return gate.refresh() if method == "refresh" else gate.add({"id": "own", "body": text("own")})

    while whole < 8:
        number = len(told)
        other = begun(f"other-{number}")
        whole = 0 if _interrupted(call, lines) else whole + 1
        for thread in (other, begun(f"next-{number}")):
            thread.join(60)
            assert not thread.is_alive(), sorted(lines)
    assert len(lines) >= most
    assert set(told.values()) == {"accepted"}
    gate.close()
    assert all(engine.get("texts", id_) for id_ in told)


def test_a_fork_of_the_process_has_no_gate_and_closes_none(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        receiving, sending = multiprocessing.Pipe(duplex=False)

        def use():
            try:
                gate.add({"id": "second", "body": text("b")})
            except EngineError as error:
                sending.send(str(error))
            gate.close()

        child = multiprocessing.get_context("fork").Process(target=use)
        child.start()
        assert "don't survive fork()" in receiving.recv()
        child.join(60)
        assert child.exitcode == 0
        assert gate.add({"id": "second", "body": text("b")}).status == "accepted"


def test_threads_that_share_a_gate_accept_one_of_each_class(engine, pipeline, text):
    told = []
    with _gate(engine, pipeline) as gate:

        def add(number):
            told.append(gate.add_all([{"id": f"{number}-{kind}", "body": text(kind)} for kind in "ab"]))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(4)))
    assert len(told) == 4
    assert sum(verdict.status == "accepted" for verdicts in told for verdict in verdicts) == 2


def test_an_index_without_groups_can_refuse_but_not_tag(engine, pipeline, text):
    ensure_index(engine, "plain", pipeline.recipe())
    with Gate(engine, "plain", pipeline=pipeline) as gate:
        assert gate.add({"id": "a", "body": text("a")}).group is None
    with pytest.raises(ConfigError, match="setup plain --groups"):
        Gate(engine, "plain", Policy("tag"), pipeline=pipeline)
    # A document with the text that it had stays, although a copy was stored without a gate.
    copy = {
        "_op_type": "index",
        "_index": "plain",
        "_id": "b",
        "_source": engine.get("plain", "a")["_source"],
    }
    assert not engine.bulk([copy]).failures
    with Gate(engine, "plain", pipeline=pipeline) as gate:
        assert gate.add({"id": "a", "body": text("a")}).replaced


def test_a_leader_that_is_added_again_with_the_same_text_goes_on_leading(engine, pipeline, text):
    with _gate(engine, pipeline, "cap", 2) as gate:
        first = gate.add({"id": "first", "body": text("a")})
        again = gate.add({"id": "first", "body": text("a"), "host": "a.org"})
        assert (again.group, again.leads) == (first.group, True)
        assert gate.add({"id": "second", "body": text("a", 1)}).group == first.group
        with pytest.raises(Refused):
            gate.add({"id": "third", "body": text("a", 2)})


def test_a_closed_gate_raises_an_error(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
    with pytest.raises(EngineError, match="closed: open another"):
        gate.add({"id": "second", "body": text("b")})
    assert _ids(engine) == ["first"]


def test_a_gate_that_is_being_closed_takes_no_more_documents(engine, pipeline, text):
    gate = _gate(engine, pipeline)
    commit = gate._group_commit
    (made,) = pipeline.run_block([{"_id": "late", "body": text("a")}])

    async def race():
        # On a server, close waits for requests meanwhile.
        async with commit._turn:
            closing = asyncio.create_task(commit.close())
            await asyncio.sleep(0)
            adding = asyncio.create_task(commit.admit([{**made.document, "_id": "late"}]))
            await asyncio.sleep(0)
        return await asyncio.gather(closing, adding, return_exceptions=True)

    closed, added = gate._thread.run(race)
    assert closed is None
    assert "closed: open another" in str(added)
    gate.close()
    assert _ids(engine) == []


def test_an_idle_gate_on_an_embedded_index_releases_its_lease(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        gate.add({"id": "first", "body": text("a")})
        time.sleep(0.5)
        with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as other:
            with _gate(other, pipeline) as beside, pytest.raises(Refused, match="resembles 'first'"):
                beside.add({"id": "second", "body": text("a", 1)})
            # While a gate of another process waits for it, it is given back from batch to batch.
            for number in range(3):
                gate.add({"id": f"{number}", "body": text(number)})
                with _gate(other, pipeline) as beside:
                    beside.add({"id": f"other-{number}", "body": text(10 + number)})
    assert len(_ids(engine)) == 7


def test_fingerprints_of_another_scheme_are_refused(engine, pipeline, text):
    scheme = replace(PRESETS["once"], languages=pipeline.scheme.languages)
    other = Pipeline.from_json(pipeline.definition, scheme)
    with pytest.raises(SchemeMismatch, match="leave the pipeline out"):
        Gate(engine, "texts", pipeline=other)
    (made,) = other.run_block([{"_id": "a", "body": text("a")}])
    with Gate(engine, "texts", pipeline=pipeline) as gate:
        (told,) = gate.admit([{**made.document, "_id": "a"}])
    assert told.status == "failed"
    assert f"the index was made with {pipeline.scheme.id}" in told.reason


def _sizes(documents):
    return [len(batch) for batch in batches(documents)]


def test_batches_keep_the_order_and_have_no_id_twice():
    given = [{"_id": id_} for id_ in ("a", "b", "a", "c")]
    assert [[one["_id"] for one in batch] for batch in batches(given)] == [["a", "b"], ["a", "c"]]
    assert _sizes([{"_id": f"{number}"} for number in range(2 * BATCH + 1)]) == [BATCH, BATCH, 1]


def test_large_documents_are_split_over_several_requests():
    large = {"parts": [{"text": "z" * 1_500_000}]}
    assert _sizes([{"_id": f"{number}", **large} for number in range(5)]) == [2, 2, 1]
    assert _sizes([{"_id": "a"}, {"_id": "b", "body": "z" * 9_000_000}, {"_id": "c"}]) == [1, 1, 1]
