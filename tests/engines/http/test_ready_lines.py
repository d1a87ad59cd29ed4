"""Documents that are JSON already go out as they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.engines.http.bulk import bulk_bodies, bulk_results, can_be_joined, with_text_sources


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
    assert can_be_joined(actions)
    made = list(bulk_bodies(actions, most))
    lines = [line for body in made for line in body.split(b"\n")[:-1]]
    assert [json.loads(line) for line in lines[::2]] == [
        {v: {"_index": i, "_id": id_}} for v, i, id_, _ in given
    ]
    assert lines[1::2] == sources
    for body in made:
        assert body.endswith(b"\n")
        assert len(body) <= most or body.count(b"\n") == 2


@pytest.mark.parametrize(
    "other",
    [
        action(source={"n": 1}),
        action(source='{"n":1}'),
        action(id_=7),
        {"_op_type": "delete", "_index": "x", "_id": "1"},
        action() | {"_op_type": "update"},
    ],
)
def test_what_says_more_is_left_to_the_client(other):
    assert can_be_joined([action()])
    assert not can_be_joined([action(), other])
    first, second = with_text_sources([action(source=b'{"n":1}'), other])
    assert first == action(source='{"n":1}')
    assert second.keys() == other.keys()
    assert not isinstance(second.get("_source"), bytes)


def test_what_a_server_says_of_each_is_told_with_whether_it_was_done():
    items = [{"index": {"status": 201}}, {"create": {"status": 409, "error": {}}}, {"index": {}}]
    assert list(bulk_results({"items": items})) == [(True, items[0]), (False, items[1]), (False, items[2])]
