"""What refusals mean, in answers as servers and what stands before them give."""

import pytest

from shinglefold.engines.http.failures import reason, refusal
from shinglefold.errors import (
    AuthenticationFailed,
    EngineError,
    EngineUnavailable,
    IndexReadOnly,
    PermissionDenied,
    UnsupportedQuery,
    WindowTooLarge,
)

NESTED = {
    "error": {
        "root_cause": [{"type": "query_shard_exception", "reason": "failed to create query: x"}],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
        "caused_by": {"type": "number_format_exception", "reason": 'For input string: "x"'},
    },
    "status": 400,
}
WINDOW = {
    "error": {"type": "illegal_argument_exception", "reason": "Result window is too large, from + size"}
}
FLOOD = {"error": {"type": "cluster_block_exception", "reason": "blocked by: [.../12/disk flood-stage ...]"}}


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (400, NESTED, UnsupportedQuery, "failed to create query: x, caused by: For input string"),
        (400, WINDOW, WindowTooLarge, "search_after"),
        (403, FLOOD, IndexReadOnly, "Free disk space"),
        (401, "Unauthorized", AuthenticationFailed, "Unauthorized"),
        (401, "", AuthenticationFailed, "without a word"),
        (403, {"Message": "User: anonymous is not authorized"}, PermissionDenied, "anonymous"),
        (403, {"message": "Forbidden"}, PermissionDenied, "Forbidden"),
        (405, {"error": "Incorrect HTTP method", "status": 405}, UnsupportedQuery, "Incorrect HTTP method"),
        (413, "<html>too large</html>", EngineError, "max_content_length"),
        (
            429,
            {"error": {"type": "circuit_breaking_exception", "reason": "too much"}},
            EngineUnavailable,
            "later",
        ),
        (500, {"error": {"root_cause": [], "type": "x", "reason": "y"}}, EngineError, "x: y"),
        (502, "Bad Gateway", EngineUnavailable, "Try again later"),
        (418, None, EngineError, "See the server's log"),
        (400, ["odd"], UnsupportedQuery, "odd"),
    ],
)
def test_a_refusal_is_told_by_its_cause_with_a_remedy(status, body, error, said):
    told = refusal(status, body, "OpenSearch at http://localhost:9200")
    assert type(told) is error
    assert said in str(told)
    assert f"({status})" in str(told)
    assert str(told).startswith("OpenSearch at http://localhost:9200: ")


def test_a_long_answer_is_cut():
    assert len(reason("x" * 100_000)) < 600
    assert len(reason({"error": {"type": "t", "reason": "y" * 100_000}})) < 600
