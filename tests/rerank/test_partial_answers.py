"""Answers that lack shards: what they lack, and which of them are refused."""

import pytest

from shinglefold.errors import EngineUnavailable, PitExpired, UnsupportedQuery, WindowTooLarge
from shinglefold.rerank.hits import check_complete, lost_shards, refuse_small_windows


def _failed(kind: str, reason: str, **cause: object) -> dict:
    failure = {"index": "pages", "reason": {"type": kind, "reason": reason, **cause}}
    return {"_shards": {"total": 3, "successful": 2, "failed": 1, "failures": [failure]}}


_WINDOW = "Result window is too large, from + size must be less than or equal to: [100]"


@pytest.mark.parametrize(
    ("shards", "lost"),
    [
        ({"total": 3, "successful": 3, "failed": 0}, 0),
        ({"total": 3, "successful": 1, "failed": 0}, 2),
        ({"total": 3, "successful": 1, "failed": 1}, 2),
        ({"total": 3, "successful": 3, "failed": 1}, 1),
        ({"failed": 2}, 2),
        ({}, 0),
        (None, 0),
    ],
)
def test_a_shard_that_no_node_has_is_lost_like_one_that_failed(shards, lost):
    assert lost_shards({"_shards": shards}) == lost


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (_failed("search_context_missing_exception", "No search context"), PitExpired, "lost the point"),
        (_failed("illegal_state_exception", "no node found for id [x]"), PitExpired, "lost the point"),
        (_failed("illegal_argument_exception", "no such sort"), UnsupportedQuery, "no such sort"),
        (_failed("illegal_argument_exception", _WINDOW), WindowTooLarge, "'pages' allows fewer"),
        (_failed("circuit_breaking_exception", "full"), EngineUnavailable, "not all shards answered: full"),
        (_failed("node_closed", "long " * 500), EngineUnavailable, "long"),
        ({"_shards": {"total": 2, "successful": 1, "failed": 0}}, EngineUnavailable, "not all shards"),
        ({"timed_out": True, "_shards": {"total": 1, "successful": 1}}, EngineUnavailable, "timed out"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused_with_what_went_wrong(answer, error, said):
    with pytest.raises(error, match=said) as told:
        check_complete(answer)
    assert type(told.value) is error
    assert len(str(told.value)) < 400


def test_a_whole_answer_comes_back_as_it_is():
    answer = {"timed_out": False, "_shards": {"total": 2, "successful": 2, "failed": 0}, "hits": {}}
    assert check_complete(answer) is answer


def test_a_small_window_is_found_in_what_an_error_was_caused_by():
    inner = {"type": "illegal_argument_exception", "reason": _WINDOW}
    with pytest.raises(WindowTooLarge):
        refuse_small_windows(_failed("query_phase_execution_exception", "failed", caused_by=inner))
    refuse_small_windows(_failed("query_phase_execution_exception", "failed", caused_by={"reason": "x"}))
