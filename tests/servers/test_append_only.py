"""Data streams and closed indices: documents go in, or what keeps them out is said once."""

import json
import uuid
from contextlib import suppress
from urllib.error import HTTPError

import pytest
from support.gate.crashes import make_pipeline
from support.gate.indices import gated_index
from support.maintenance import mapped, pages
from support.topologies import laid_out

import shinglefold
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError
from shinglefold.grouping import Gate
from shinglefold.ingest import index_documents
from shinglefold.ingest.writing.target_index import rebuild

pytestmark = pytest.mark.newest


def _stamped(documents):
    return [{"@timestamp": "2026-01-01T00:00:00Z", **one} for one in documents]


def test_a_data_stream_takes_new_documents_and_keeps_those_it_has(engine, server, scheme, pipeline, tmp_path):
    with laid_out("data_stream", engine, server, [], mapped(scheme)) as place:
        given = _stamped(pages(30))
        letters = tmp_path / "failed.jsonl"
        summary = index_documents(engine, place.target, given[:20], pipeline, workers=1)
        assert (summary.indexed, summary.failed, summary.stopped) == (20, 0, "")
        again = index_documents(engine, place.target, given, pipeline, workers=1, dead_letters=letters)
        assert (again.indexed, again.failed) == (10, 20)
        assert all("409" in reason and "already exists" in reason for reason in again.reasons)
        hits = engine.search(place.target, {"size": 100, "query": {"exists": {"field": "_dedup.digest"}}})
        assert sorted(hit["_id"] for hit in hits["hits"]["hits"]) == sorted(one["id"] for one in given)


@pytest.fixture
def stream(server):
    """A data stream of one document, made by its template alone: not every server has requests for it."""
    name = f"shinglefold-stream-{uuid.uuid4().hex[:8]}"
    body = {"index_patterns": [name], "data_stream": {}, "priority": 800}
    document = {"@timestamp": "2026-01-01T00:00:00Z", "body": "one"}
    try:
        server.ask("PUT", f"/_index_template/{name}", body)
        server.ask("PUT", f"/{name}/_create/one?refresh=true", document)
    except HTTPError as error:
        pytest.skip(f"this server has no data streams ({error.code})")
    yield name
    # One without requests for data streams keeps it.
    for path in (f"/_data_stream/{name}", f"/_index_template/{name}"):
        with suppress(HTTPError):
            server.ask("DELETE", path)


def test_what_is_behind_a_data_stream_is_told(engine, stream):
    for asked in (stream, f"{stream}*"):
        (info,) = engine.indices(asked)
        assert info.name.startswith(f".ds-{stream}")
        assert (info.documents, info.aliases) == (1, ())


def test_the_request_in_the_message_lets_a_data_stream_be_set_up(server, stream):
    try:
        server.ask("GET", "/_data_stream")
    except HTTPError as error:
        pytest.skip(f"this server has no requests for data streams ({error.code})")
    with pytest.raises(ConfigError, match="lacks the fields") as refused:
        shinglefold.setup(server.url, stream, text=["body"])
    path, body = str(refused.value).split("PUT ")[1].split(" ", 1)
    try:
        server.ask("PUT", path, json.loads(body))
        shinglefold.setup(server.url, stream, text=["body"])
        with shinglefold.open(server.url, stream) as site:
            assert site.backfill().counts.updated == 1
            assert site.index([{"@timestamp": "2026-01-02", "id": "two", "body": "two words"}]).indexed == 1
            server.ask("POST", f"/{stream}/_rollover")
            assert site.index([{"@timestamp": "2026-01-03", "id": "three", "body": "a b c"}]).indexed == 1
            assert site.doctor().findings == {"sound": 3}
            with pytest.raises(ConfigError, match="is a data stream"):
                site.add({"@timestamp": "2026-01-04", "id": "four", "body": "d e f"})
    finally:
        server.ask("DELETE", f"/_data_stream/{stream}")
        server.ask("DELETE", f"/_index_template/{stream}")
        server.ask("DELETE", "/_component_template/shinglefold-_dedup")


def test_a_data_stream_is_not_built_anew_in_vain(engine, stream):
    with pytest.raises(ConfigError, match="is a data stream"):
        rebuild(engine, stream, lambda name: pytest.fail(f"{name} was built"))


@pytest.fixture
def closed(engine, server):
    pipeline = make_pipeline()
    with gated_index(engine, pipeline) as name:
        server.ask("POST", f"/{name}/_close")
        yield name, pipeline
        server.ask("POST", f"/{name}/_open")


def test_a_closed_index_ends_a_run_at_once_with_its_remedy(server, closed):
    index, pipeline = closed
    read = []
    documents = ({"id": f"{at}", "body": f"{at} some words of a text"} for at in range(100_000))
    with open_engine(server.url) as engine:
        given = (read.append(1) or one for one in documents)
        summary = index_documents(engine, index, given, pipeline, workers=1)
        assert f"{index!r} takes no documents" in summary.stopped
        assert "Open the index" in summary.stopped
        assert summary.read == summary.failed < 50_000
        with (
            pytest.raises(EngineError, match="Open the index"),
            Gate(engine, index, pipeline=pipeline) as gate,
        ):
            gate.add({"id": "a", "body": "some words of a text"})
