"""The example site indexed into a real server and searched folded: the same groups as in process."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.hits import groups
from support.servers.admin import left_open, open_contexts

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_async_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, IndexMissing, UnsupportedQuery
from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.model.scheme import Scheme
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions

INDEX = "shinglefold-test-site"
PROPERTIES = {
    "title": {"type": "text"},
    "body": {"type": "text"},
    "lang": {"type": "keyword"},
    "url": {"type": "keyword"},
    "date": {"type": "date"},
}
#: The same on every engine, whatever its analysis and its scores.
ORDER = [{"date": "desc"}, {"url": "asc"}]
COUNT = sum(1 for _ in articles())


@dataclass(frozen=True)
class Site:
    engine: Engine
    summary: Summary
    folded: FoldedSearch


def index_site(engine, scheme, settings):
    pipeline = Pipeline.from_json(default_definition(), scheme)
    return index_documents(
        engine, INDEX, articles(), pipeline, properties=PROPERTIES, settings=settings, workers=1
    )


@pytest.fixture(scope="session")
def site(engine, scheme) -> Iterator[Site]:
    if engine.index_exists(INDEX):
        engine.delete_index(INDEX)
    summary = index_site(engine, scheme, {"number_of_shards": 3, "number_of_replicas": 0})
    # OpenSearch 2 has no tiebreaker of its own; the url of a page is one.
    yield Site(engine, summary, FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker() or "url"))
    engine.delete_index(INDEX)


@pytest.fixture(scope="session")
def in_process(tmp_path_factory, scheme, canonicalizer) -> Iterator[Site]:
    with EmbeddedEngine(tmp_path_factory.mktemp("site"), canonicalizer) as engine:
        yield Site(engine, index_site(engine, scheme, {}), FoldedSearch(engine, scheme))


def whole(search: FoldedSearch, **body: Any) -> list[list[str]]:
    body = {"size": COUNT, "sort": ORDER, "_source": False, **body}
    return groups(search.search(INDEX, body, FoldOptions(members=100)))


def test_every_article_is_indexed_with_its_fingerprint(site, in_process, scheme):
    assert (site.summary.read, site.summary.indexed, site.summary.failed) == (COUNT, COUNT, 0)
    assert Scheme.from_json(site.engine.mappings(INDEX)["_meta"]["shinglefold"]) == scheme
    for page in articles():
        stored = site.engine.get(INDEX, page["id"])
        assert stored == in_process.engine.get(INDEX, page["id"])
        assert stored["_source"]["_dedup"]["scheme"] == scheme.id


def test_the_groups_are_those_of_the_embedded_engine(site, in_process):
    found = whole(site.folded)
    assert found == whole(in_process.folded)
    assert sorted(id_ for group in found for id_ in group) == sorted(page["id"] for page in articles())
    assert len(found) < COUNT


def test_without_a_tiebreaker_longer_windows_are_read_instead(site, scheme):
    search = FoldedSearch(site.engine, scheme, tiebreaker=None)
    body = {"size": 30, "sort": ORDER, "_source": False}
    answer = search.search(INDEX, body, FoldOptions(window=10))
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == [group[0] for group in whole(site.folded)[:30]]


def test_a_long_page_by_places_that_move_is_read_under_a_point_in_time(site, server, monkeypatch):
    before, asked = open_contexts(server.url), []
    search = site.engine.search

    def noted(index, body, parameters=None):
        asked.append("pit" in body)
        return search(index, body, parameters)

    monkeypatch.setattr(site.engine, "search", noted)
    body = {"size": 30, "sort": "_doc", "_source": False}
    answer = site.folded.search(INDEX, body, FoldOptions(window=10))
    assert len({hit["_id"] for hit in answer["hits"]["hits"]}) == 30
    # The first window may have been the last, and is read without one.
    assert asked[2:]
    assert all(asked[2:-1])
    assert left_open(server.url, before) <= 0
    with pytest.raises(ConfigError, match="_seq_no"):
        site.folded.search(INDEX, body, FoldOptions(cursor=True))


def test_what_is_no_hit_is_left_as_the_server_said_it(site):
    body = {
        "query": {"match": {"body": "water"}},
        "aggs": {"languages": {"terms": {"field": "lang"}}},
        "highlight": {"fields": {"body": {"number_of_fragments": 1}}},
        "size": 5,
    }
    plain, folded = site.engine.search(INDEX, body), site.folded.search(INDEX, body)
    assert folded["aggregations"] == plain["aggregations"]
    assert folded["hits"]["total"] == plain["hits"]["total"]
    first = folded["hits"]["hits"][0]
    assert {**first, "inner_hits": None} == {**plain["hits"]["hits"][0], "inner_hits": None}
    assert "<em>" in first["highlight"]["body"][0]


def test_an_engine_says_rightly_whether_it_has_a_tiebreaker(site):
    pit = site.engine.open_pit(INDEX)
    try:
        site.engine.search(None, {"pit": {"id": pit}, "sort": ["_shard_doc"]})
        has_one = True
    except UnsupportedQuery:
        has_one = False
    site.engine.close_pit(pit)
    assert (site.engine.tiebreaker() == "_shard_doc") == has_one


@pytest.mark.parametrize("window", [200, 10])
def test_asynchronously_the_same_is_found(site, server, scheme, window):
    async def search() -> Any:
        async with open_async_engine(server.url) as engine:
            folded = AsyncFoldedSearch(engine, scheme, tiebreaker=site.engine.tiebreaker() or "url")
            return await folded.search(INDEX, body, FoldOptions(window=window))

    body = {"size": 40, "sort": ORDER}
    answer, expected = asyncio.run(search()), site.folded.search(INDEX, body, FoldOptions(window=window))
    for one in (answer, expected):
        one.pop("took")
    assert answer == expected


def test_several_searches_at_once_are_folded_as_each_alone(site, server, scheme):
    bodies = [{"query": {"match": {"body": word}}, "size": 5} for word in ("water", "вода", "水", "and")]
    bodies.append({"size": 30, "sort": ORDER, "ext": {"dedup": {"window": 10}}})
    searches = [(INDEX, body) for body in bodies]

    async def search() -> Any:
        async with open_async_engine(server.url) as engine:
            folded = AsyncFoldedSearch(engine, scheme, tiebreaker=site.engine.tiebreaker() or "url")
            return await folded.msearch([*searches, ("shinglefold-absent", {})])

    *answers, absent = site.folded.msearch([*searches, ("shinglefold-absent", {})])
    *awaited, absent_too = asyncio.run(search())
    assert isinstance(absent, IndexMissing)
    assert isinstance(absent_too, IndexMissing)
    for body, answer, other in zip(bodies, answers, awaited, strict=True):
        expected = site.folded.search(INDEX, body)
        assert answer["hits"] == other["hits"] == expected["hits"]
        assert answer["dedup"] == other["dedup"] == expected["dedup"]


def test_a_cluster_without_the_plugin_does_not_fold_by_itself(site):
    body = {"query": {"match_all": {}}, "size": 3, "sort": ORDER, "_source": False}
    said = "has no plugin" if site.engine.can.search_pipelines else "no search pipelines"
    with pytest.raises(ConfigError, match=said):
        site.folded.search(INDEX, body, FoldOptions(mode="server"))
    for _ in range(2):
        told = site.folded.search(INDEX, body, FoldOptions(mode="auto"))["dedup"]
        assert told["mode"] == "window"
        assert "no group numbers" in told["mode_reason"]
