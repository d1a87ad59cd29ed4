"""Requests that write, and lines made ready before."""

import itertools
import json
from dataclasses import replace

import pytest
from elasticsearch.helpers import expand_action as expand_elasticsearch
from hypothesis import given
from hypothesis import strategies as st
from opensearchpy.helpers import expand_action

from shinglefold.contracts.engine import BulkResult
from shinglefold.documents import with_id
from shinglefold.engines.http.bulk import (
    CHUNK,
    Bulk,
    Malformed,
    bulk_bodies,
    bulk_results,
    can_be_joined,
    chunks,
)
from shinglefold.errors import EngineUnavailable, PermissionDenied
from shinglefold.runtime.backoff import Backoff


@given(st.lists(st.sampled_from([None, *map(str, range(40))]), max_size=1500))
def test_chunks_keep_the_order_and_hold_no_document_twice(ids):
    actions = [{"_index": "x", "_id": id_, "n": n} for n, id_ in enumerate(ids)]
    made = list(chunks(actions))
    assert list(itertools.chain(*made)) == actions
    for chunk in made:
        known = [action["_id"] for action in chunk if action["_id"] is not None]
        assert 0 < len(chunk) <= CHUNK
        assert len(set(known)) == len(known)


def test_a_document_without_an_id_gets_one_but_what_has_or_needs_one_is_left():
    one, two = with_id({"_index": "x"}), with_id({"_index": "x", "_id": None, "_op_type": "create"})
    assert one["_id"] != two["_id"]
    assert with_id({"_id": 0})["_id"] == 0
    assert "_id" not in with_id({"_op_type": "delete"})


def test_waits_are_doubled_and_spread_by_chance():
    whole = [0.5, 1, 2, 4, 8, 10, 10, 10]
    even = Backoff(8, first=0.5, most=10)
    assert [even.delay(retry) for retry in range(8)] == whole
    for _ in range(20):
        spread = replace(even, jitter=0.5)
        delays = [spread.delay(retry) for retry in range(8)]
        assert all(most / 2 <= delay <= most for delay, most in zip(delays, whole, strict=True))


class Scripted:
    """A helper that settles actions by their ``status``: a number, or a list of those of each attempt."""

    def __init__(self):
        self.sent = []
        self.error = None

    def __call__(self, actions):
        self.sent.append([action["_id"] for action in actions])
        if self.error:
            raise self.error
        if len(actions) > 1 and any(action["status"] == [0] for action in actions):
            raise Malformed(400, "something in it is wrong")
        for action in actions:
            if action["status"] == [0]:
                raise Malformed(400, "this is wrong")
            status = action["status"].pop(0)
            yield status < 300, {"index": {"status": status, "error": {"type": "t", "reason": "r"}}}


def run(helper, script, exists=lambda index: True):
    actions = [{"_index": "x", "_id": n, "status": list(status)} for n, status in enumerate(script)]
    waits = []
    backoff = Backoff(3, wait=lambda seconds, _: not waits.append(seconds))
    result: BulkResult = Bulk(helper, backoff, exists).run(actions)
    return result, len(waits)


def test_busy_items_alone_are_sent_again_until_they_are_done_or_given_up():
    helper = Scripted()
    result, waits = run(helper, [[200], [429, 200], [503, 429, 503, 200], [429] * 9, [400]])
    assert helper.sent == [[0, 1, 2, 3, 4], [1, 2, 3], [2, 3], [2, 3]]
    assert (result.indexed, waits) == (3, 3)
    assert [(failure.action["_id"], failure.status) for failure in result.failures] == [(4, 400), (3, 429)]


@pytest.mark.parametrize(("id_", "indexed"), [(None, 1), (7, 0)])
def test_an_id_that_was_made_here_is_taken_only_by_the_document_itself(id_, indexed):
    helper = Scripted()
    action = {"_op_type": "create", "_index": "x", "_id": id_, "status": [503, 409]}
    result = Bulk(helper, Backoff(3, wait=lambda *_: True), lambda _: True).run([action])
    assert (result.indexed, [one.status for one in result.failures]) == (indexed, [409] * (1 - indexed))
    assert helper.sent[0] == helper.sent[1]


@given(st.sets(st.integers(0, 39), max_size=6))
def test_whatever_is_malformed_is_found_and_all_else_is_done(wrong):
    result, _ = run(Scripted(), [[0] if n in wrong else [200] for n in range(40)])
    assert result.indexed == 40 - len(wrong)
    assert sorted(failure.action["_id"] for failure in result.failures) == sorted(wrong)
    assert {failure.status for failure in result.failures} <= {400}


@pytest.mark.parametrize(("error", "attempts"), [(EngineUnavailable("gone"), 4), (PermissionDenied("no"), 1)])
def test_a_server_that_takes_nothing_is_told_by_an_error(error, attempts):
    helper = Scripted()
    helper.error = error
    with pytest.raises(type(error)):
        run(helper, [[200]])
    assert len(helper.sent) == attempts


def test_nothing_is_sent_for_an_index_that_is_not_there():
    helper = Scripted()
    result, _ = run(helper, [[200], [200]], exists=lambda index: False)
    assert helper.sent == []
    assert [failure.status for failure in result.failures] == [404, 404]


def action(id_="1", source=b"{}", **more):
    return {"_op_type": "index", "_index": "x", "_id": id_, "_source": source, **more}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["index", "create"]), st.sampled_from(["x", "ї-1"]), st.text(), st.binary()
        ),
        max_size=30,
    ),
    st.integers(1, 400),
)
def test_bodies_hold_every_action_and_document_in_order_and_no_more_than_they_may(given, most):
    sources = [json.dumps({"text": source.hex()}).encode() for *_, source in given]
    rows = zip(given, sources, strict=True)
    actions = [{"_op_type": v, "_index": i, "_id": id_, "_source": s} for (v, i, id_, _), s in rows]
    assert all(map(can_be_joined, actions))
    made = list(bulk_bodies(actions, most, expand_action, json.dumps))
    lines = [line for body, _ in made for line in body.split(b"\n")[:-1]]
    assert [json.loads(line) for line in lines[::2]] == [
        {v: {"_index": i, "_id": id_}} for v, i, id_, _ in given
    ]
    assert lines[1::2] == sources
    for body, count in made:
        assert body.endswith(b"\n")
        assert body.count(b"\n") == 2 * count
        assert len(body) <= most or count == 1


@pytest.mark.parametrize(
    ("other", "lines"),
    [
        (action(source={"n": 1}), [{"index": {"_index": "x", "_id": "1"}}, {"n": 1}]),
        (action(source='{"n":1}'), [{"index": {"_index": "x", "_id": "1"}}, {"n": 1}]),
        (action(id_=7), [{"index": {"_index": "x", "_id": 7}}, {}]),
        ({"_op_type": "delete", "_index": "x", "_id": "1"}, [{"delete": {"_index": "x", "_id": "1"}}]),
        (
            {"_op_type": "update", "_index": "x", "_id": "1", "doc": {"n": 1}},
            [{"update": {"_index": "x", "_id": "1"}}, {"doc": {"n": 1}}],
        ),
        (
            action(if_seq_no=1, if_primary_term=2),
            [{"index": {"_index": "x", "_id": "1", "if_seq_no": 1, "if_primary_term": 2}}, {}],
        ),
    ],
)
@pytest.mark.parametrize("expand", [expand_action, expand_elasticsearch])
def test_what_says_more_is_expanded_as_the_client_does(expand, other, lines):
    assert not can_be_joined(other)
    ((body, count),) = bulk_bodies([action(), other, action()], 1000, expand, json.dumps)
    assert count == 3
    usual = [{"index": {"_index": "x", "_id": "1"}}, {}]
    assert [json.loads(line) for line in body.splitlines()] == [*usual, *lines, *usual]


def test_what_a_server_says_of_each_is_told_with_whether_it_was_done():
    items = [{"index": {"status": 201}}, {"create": {"status": 409, "error": {}}}, {"index": {}}]
    assert bulk_results(3, {"items": items}) == [(True, items[0]), (False, items[1]), (False, items[2])]
