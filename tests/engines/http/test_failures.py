"""What refusals mean, in answers as servers and what stands before them give."""

import pytest

from shinglefold.engines.http.bulk import failure_of
from shinglefold.engines.http.errors import NotRefreshed, read_status, reason, refusal
from shinglefold.engines.http.responses import check_refreshed
from shinglefold.errors import (
    AuthenticationFailed,
    EngineError,
    EngineUnavailable,
    IndexMissing,
    IndexReadOnly,
    PermissionDenied,
    PitExpired,
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
FIELDS = {
    "error": {"type": "illegal_argument_exception", "reason": "Limit of total fields [5] has been exceeded"}
}
FLOOD = {"error": {"type": "cluster_block_exception", "reason": "blocked by: [.../12/disk flood-stage ...]"}}


def _block(what):
    return {"error": {"type": "cluster_block_exception", "reason": f"blocked by: [{what}];"}}


def _lost(kind, why):
    """Return what a server answers where a shard fails and the request wants all."""
    cause = {"type": kind, "reason": why}
    error = {"type": "search_phase_execution_exception", "reason": "Partial shards failure"}
    return {"error": {"root_cause": [cause], **error, "caused_by": cause}, "status": 500}


def _lost_while_collecting(kind):
    """Return what OpenSearch answers where no shard failed, but the node that collects what they found."""
    phase = {"type": "search_phase_execution_exception", "reason": "", "phase": "fetch", "failed_shards": []}
    cause = {"type": kind, "reason": "[node-1][127.0.0.1:60559] gone"}
    return {"error": {"root_cause": [], **phase, "grouped": True, "caused_by": cause}, "status": 500}


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (400, NESTED, UnsupportedQuery, "failed to create query: x, caused by: For input string"),
        (400, WINDOW, WindowTooLarge, "search_after"),
        (400, FIELDS, UnsupportedQuery, "index.mapping.total_fields.limit"),
        (403, FLOOD, IndexReadOnly, "Free disk space"),
        (
            500,
            _lost("node_not_connected_exception", "[node-0] Node not connected"),
            EngineUnavailable,
            "all nodes",
        ),
        (500, _lost("node_disconnected_exception", "[search[phase/fetch]]"), EngineUnavailable, "all nodes"),
        (500, _lost_while_collecting("node_not_connected_exception"), EngineUnavailable, "all nodes"),
        (404, _lost_while_collecting("index_not_found_exception"), IndexMissing, "Create it first"),
        (500, _lost_while_collecting("null_pointer_exception"), EngineError, "See the server's log"),
        (500, _lost("illegal_state_exception", "no node found for id: Gk"), PitExpired, "open another"),
        (500, _lost("null_pointer_exception", "oops"), EngineError, "See the server's log"),
        (
            503,
            _block("SERVICE_UNAVAILABLE/2/no cluster-manager"),
            EngineUnavailable,
            "more than half of the nodes",
        ),
        (503, _block("SERVICE_UNAVAILABLE/1/state not recovered"), EngineUnavailable, "Try again later"),
        (403, _block("FORBIDDEN/6/cluster read-only (api)"), IndexReadOnly, "cluster.blocks.read_only"),
        (403, _block("FORBIDDEN/8/index write (api)"), IndexReadOnly, "index.blocks.* of the index"),
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
        (301, "Moved Permanently", EngineError, "sends to another"),
        (400, ["odd"], UnsupportedQuery, "odd"),
    ],
)
def test_a_refusal_is_told_by_its_cause_with_a_remedy(status, body, error, said):
    told = refusal(status, body, "OpenSearch at http://localhost:9200")
    assert type(told) is error
    assert said in str(told)
    assert f"({status})" in str(told)
    assert str(told).startswith("OpenSearch at http://localhost:9200: ")
    assert ": ," not in str(told)


def test_a_long_answer_is_cut():
    assert len(reason("x" * 100_000)) < 600
    assert len(reason({"error": {"type": "t", "reason": "y" * 100_000}})) < 600


@pytest.mark.parametrize(
    ("what", "status"), [("SERVICE_UNAVAILABLE/2/no master", 503), ("FORBIDDEN/8/w", 403)]
)
def test_only_a_block_that_ends_by_itself_is_a_matter_of_time(what, status):
    """What the cluster refuses while nobody manages it is sent again; another block is for good."""
    assert failure_of({}, {"index": {"status": 503, **_block(what)}}).status == status


@pytest.mark.parametrize(
    ("kind", "status"),
    [("illegal_argument_exception", 400), ("node_disconnected_exception", 503), ("x", 503)],
)
def test_a_document_that_another_node_could_not_read_is_told_by_that_nodes_error(kind, status):
    cause = {"type": kind, "reason": "y"}
    wrapped = {"type": "remote_transport_exception", "reason": "[node-1]", "caused_by": cause}
    assert read_status({"error": {"root_cause": [], **wrapped}}) == status


_GONE = {"reason": {"type": "node_not_connected_exception", "reason": "[node-2] Node not connected"}}


@pytest.mark.parametrize(
    ("shards", "seconds", "told"),
    [
        ({"total": 6, "successful": 6, "failed": 0}, 0.1, ""),
        ({"total": 6, "successful": 3, "failed": 0}, 0.1, ""),
        ({"total": 6, "successful": 6, "failed": 0}, 90.0, ""),
        ({"total": 6, "successful": 4, "failed": 0}, 59.9, "2 of 6 copies of shards were not refreshed, so"),
        (
            {"total": 6, "successful": 5, "failed": 1, "failures": [_GONE]},
            0.1,
            r"refreshed \(node_not_connect",
        ),
        ({}, 0.1, ""),
    ],
    ids=["whole", "replicas nowhere", "slow", "no primary for a minute", "a replica failed", "no word of it"],
)
def test_a_refresh_is_held_against_what_copies_there_are(shards, seconds, told):
    if not told:
        return check_refreshed({"_shards": shards}, seconds, "OpenSearch at x")
    with pytest.raises(NotRefreshed, match=told):
        check_refreshed({"_shards": shards}, seconds, "OpenSearch at x")
    return None


def test_a_refresh_that_is_refused_for_a_copy_says_so():
    body = {"_shards": {"total": 6, "successful": 4, "failed": 1, "failures": [_GONE]}}
    assert type(refusal(500, body, "OpenSearch at x")) is NotRefreshed
