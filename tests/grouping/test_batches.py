"""How documents are cut into batches that one request can hold."""

from shinglefold.grouping.gate.base_gate import BATCH, batches


def _sizes(documents):
    return [len(batch) for batch in batches(documents)]


def test_no_id_comes_twice_in_a_batch_and_their_order_stays():
    given = [{"_id": id_} for id_ in ("a", "b", "a", "c")]
    assert [[one["_id"] for one in batch] for batch in batches(given)] == [["a", "b"], ["a", "c"]]
    assert _sizes([{"_id": f"{number}"} for number in range(2 * BATCH + 1)]) == [BATCH, BATCH, 1]


def test_large_documents_go_in_several_requests_and_one_that_is_too_large_alone():
    large = {"parts": [{"text": "z" * 1_500_000}]}
    assert _sizes([{"_id": f"{number}", **large} for number in range(5)]) == [2, 2, 1]
    assert _sizes([{"_id": "a"}, {"_id": "b", "body": "z" * 9_000_000}, {"_id": "c"}]) == [1, 1, 1]
