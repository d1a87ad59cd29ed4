"""A server whose disk is full blocks writing by itself; that is told, and over when there is room."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.servers.admin import ask
from support.servers.server import Server

from shinglefold.errors import IndexReadOnly

pytestmark = pytest.mark.newest

_DISK = "cluster.routing.allocation.disk"
_PATIENCE = 90


def _setting(url: str, **settings: Any) -> None:
    ask(url, "PUT", "/_cluster/settings", {"transient": settings})


def _unblock(server: Server) -> None:
    """Take the block on new indices back, which OpenSearch sets for good, until none is set any more."""
    end = time.monotonic() + _PATIENCE
    free = 0
    while free < 3:
        assert time.monotonic() < end, "new indices are still blocked"
        clear = {"cluster.blocks.create_index": None}
        ask(server.url, "PUT", "/_cluster/settings", {"transient": clear, "persistent": clear})
        # A check of the disk that was under way may set it once more.
        time.sleep(0.5)
        told = ask(server.url, "GET", "/_cluster/settings?flat_settings=true")
        free = 0 if "cluster.blocks.create_index" in {**told["transient"], **told["persistent"]} else free + 1


@pytest.fixture
def full_disk(server) -> Iterator[None]:
    """Make the server believe its disk is full: it wants more room left than any disk has."""
    if server.kind is None:
        pytest.skip("only done to servers that the tests started themselves")
    marks = [f"{_DISK}.watermark.{name}" for name in ("low", "high", "flood_stage")]
    _setting(server.url, **dict.fromkeys(marks, "900pb"), **{f"{_DISK}.threshold_enabled": True})
    yield
    _setting(server.url, **dict.fromkeys([*marks, f"{_DISK}.threshold_enabled"]))
    if server.kind.product == "opensearch":
        _unblock(server)


def _until(end: float, work: Callable[[], object]) -> None:
    while time.monotonic() < end:
        work()
        time.sleep(0.5)


def _refused(engine, index):
    return engine.bulk([{"_index": index, "_id": "1", "_source": {"n": 1}}]).failures


def test_a_full_disk_is_told_and_documents_come_back(engine, server, new_index, full_disk):
    index = new_index({}, {"number_of_replicas": 0})
    end = time.monotonic() + _PATIENCE
    while not (failures := _refused(engine, index)):
        assert time.monotonic() < end, "the server did not block the index"
        time.sleep(0.5)
    assert [failure.status for failure in failures] == [403]
    assert "flood-stage watermark" in failures[0].reason
    assert "Free disk space" in failures[0].reason
    # Blocked for writing, it is still read.
    assert (engine.get(index, "1") or {})["_source"] == {"n": 1}
    if server.kind.product == "opensearch":
        # It takes no new indices either, a moment later; Elasticsearch does.
        with pytest.raises(IndexReadOnly, match="disk space"):
            _until(end, new_index)
    _setting(server.url, **{f"{_DISK}.threshold_enabled": False})
    ask(server.url, "PUT", f"/{index}/_settings", {"index.blocks.read_only_allow_delete": None})
    assert not _refused(engine, index)
