"""Our plugin beside the security plugin: its pages show each user what plain searches show, and no more."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from support.maintenance import FIELDS
from support.plugin_trials import comparable

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.errors import EngineError, PermissionDenied
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch

_HOSTS = ("a.org", "b.org", "c.org")
_ALLOWED = "secret-allowed"
#: What a role sees of the indices.
SIGHTS: dict[str, Mapping[str, Any]] = {
    "everything": {},
    "some documents": {"dls": '{"term": {"open": true}}'},
    "documents of a list": {
        "dls": json.dumps({"terms": {"id": {"index": _ALLOWED, "id": "1", "path": "ids"}}})
    },
    "no text": {"fls": ["~body"]},
    "no fingerprints": {"fls": ["~_dedup", "~_dedup.*"]},
    "no signatures": {"fls": ["~_dedup.signature"]},
    "no digests": {"fls": ["~_dedup.digest"]},
    "no preferred field": {"fls": ["~host"]},
    "two fields": {"fls": ["title", "id"]},
    "masked signatures": {"masked_fields": ["_dedup.signature"]},
    "masked digests": {"masked_fields": ["_dedup.digest"]},
    "a masked preferred field": {"masked_fields": ["host"]},
    "some of all": {"dls": '{"term": {"open": true}}', "fls": ["~body"], "masked_fields": ["host"]},
}
_SHOWN: JSON = {"size": 1000, "fields": ["*"], "docvalue_fields": ["host", "_dedup.digest"]}
_ALL: JSON = {"query": {"match_all": {}}, "size": 50, "sort": [{"id": "asc"}]}
#: Masked binary values can't be read at all: the engine fails with them, folded or not.
UNFOLDED = ("masked signatures",)
#: Without digests no hit is a near-duplicate; signatures alone are not read.
ALONE = ("no fingerprints", "no digests", "two fields", "masked digests")
BODIES: dict[str, JSON] = {
    "all": {**_ALL, "ext": {"dedup": {}}},
    "a page that a window does not fill": {
        **_ALL,
        "from": 4,
        "size": 7,
        "ext": {"dedup": {"window": 10, "members": 2}},
    },
    "preferred": {**_ALL, "ext": {"dedup": {"representative": ["prefer:host=c.org,b.org", "newest:date"]}}},
    "of one host": {**_ALL, "ext": {"dedup": {"scope": "host"}}},
    "with keywords": {**_ALL, "ext": {"dedup": {"min_shared": 1}}},
    "by score": {"query": {"match": {"title": "Страница"}}, "size": 9, "ext": {"dedup": {}}},
    "with everything": {
        **_ALL,
        "query": {"match": {"title": {"query": "Страница", "_name": "asked"}}},
        "fields": ["*"],
        "docvalue_fields": ["host", "_dedup.digest"],
        "highlight": {"fields": {"title": {}}},
        "aggs": {"hosts": {"terms": {"field": "host"}}},
        "ext": {"dedup": {}},
    },
}


SHARDS = (1, 3)
_FIELDS = {"host": {"type": "keyword"}, "date": {"type": "date"}, "open": {"type": "boolean"}}


def index_of(shards: int) -> str:
    return f"public-folded-{shards}"


@pytest.fixture
def admin(engine_of, users, site, scheme) -> Engine:
    """The administrator's engine, with the same documents in an index of one shard and in one of three."""
    admin: Engine = engine_of(users["chief"])
    if not admin.index_exists(index_of(SHARDS[-1])):
        stored = admin.search("public-pages", {"size": 1000, "sort": ["id"]})["hits"]["hits"]
        documents = [
            {
                **{name: hit["_source"][name] for name in ("title", "body", "lang", "id", "open")},
                "host": _HOSTS[number % 3],
                "date": f"2026-01-{1 + number % 28:02}T00:00:00Z",
            }
            for number, hit in enumerate(stored)
        ]
        listed = {"ids": [one["id"] for one in documents if not one["open"]]}
        admin.create_index(_ALLOWED, {}, {"number_of_replicas": 0})
        admin.bulk([{"_index": _ALLOWED, "_id": "1", "_source": listed}])
        admin.refresh(_ALLOWED)
        pipeline = Pipeline.from_json(default_definition(), scheme)
        properties = {**FIELDS, "id": {"type": "keyword"}, **_FIELDS}
        for shards in SHARDS:
            settings = {"number_of_shards": shards, "number_of_replicas": 0}
            made = {"properties": properties, "settings": settings, "workers": 1}
            index_documents(admin, index_of(shards), documents, pipeline, **made)
    return admin


@pytest.fixture
def seeing(secured, engine_of, users) -> Callable[..., Engine]:
    """Return the engine of a user who sees a part of the public indices, and may do nothing else."""

    def make(sight: Mapping[str, Any], *on_cluster: str) -> Engine:
        allowed = {
            "index_patterns": ["public-*"],
            "allowed_actions": ["read"],
            **sight,
        }
        role = {"cluster_permissions": list(on_cluster), "index_permissions": [allowed]}
        # A document that hits are filtered by must be readable itself.
        role["index_permissions"].append({"index_patterns": [_ALLOWED], "allowed_actions": ["read"]})
        secured.ask("PUT", "/_plugins/_security/api/roles/owns_public", role)
        made: Engine = engine_of(users["owner"])
        return made

    return make


def shown(answer: JSON) -> Iterator[JSON]:
    """Yield the hits and the members of a page."""
    for hit in answer["hits"]["hits"]:
        yield hit
        yield from hit["inner_hits"]["duplicates"]["hits"]["hits"]


@pytest.mark.parametrize("sight", SIGHTS)
def test_pages_are_those_of_folded_search_and_show_what_plain_searches_show(admin, seeing, scheme, sight):
    user = seeing(SIGHTS[sight])
    folded = FoldedSearch(user, scheme)
    for shards in SHARDS:
        plain = {hit["_id"]: hit for hit in user.search(index_of(shards), _SHOWN)["hits"]["hits"]}
        assert len(plain) == (30 if "dls" in SIGHTS[sight] else 60)
        for name, body in BODIES.items():
            page = user.search(index_of(shards), body)
            assert page["dedup"]["mode"] == ("unfolded" if sight in UNFOLDED else "server"), name
            assert comparable(page) == comparable(folded.search(index_of(shards), body)), name
            hits = list(shown(page))
            assert hits
            for hit in hits:
                own = plain[hit["_id"]]
                assert hit.get("_source") == own.get("_source")
                assert hit.get("fields", {}).items() <= own["fields"].items()
        told = user.search(index_of(shards), BODIES["all"])["dedup"]
        assert bool(told["folded"]) == (sight not in (*ALONE, *UNFOLDED))


@pytest.mark.parametrize("sight", ["everything", "some of all"])
def test_a_named_pipeline_needs_no_right(secured, admin, seeing, sight):
    user = seeing(SIGHTS[sight])
    pipeline = {"request_processors": [{"dedup": {}}], "response_processors": [{"dedup": {}}]}
    secured.ask("PUT", "/_search/pipeline/folds", pipeline)
    factories = "cluster.search.enabled_system_generated_factories"
    body = BODIES["all"]
    plain = {name: value for name, value in body.items() if name != "ext"}
    pages = {index_of(shards): comparable(user.search(index_of(shards), body)) for shards in SHARDS}
    try:
        secured.ask("PUT", "/_cluster/settings", {"persistent": {factories: []}})
        for index, expected in pages.items():
            for one in (plain, body):
                assert comparable(user.search(index, {**one, "search_pipeline": "folds"})) == expected
            with pytest.raises(EngineError, match="no processor folds this search"):
                user.search(index, body)
    finally:
        secured.ask("PUT", "/_cluster/settings", {"persistent": {factories: None}})
        secured.ask("DELETE", "/_search/pipeline/folds")


def test_an_index_that_a_user_may_not_read_stands_in_no_answer(admin, seeing):
    user = seeing(SIGHTS["everything"])
    for index in ("secret-pages", f"{index_of(1)},secret-pages"):
        with pytest.raises(PermissionDenied):
            user.search(index, BODIES["all"])
