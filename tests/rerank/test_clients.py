"""Code written for a native collapse reads a folded answer: clients of both products, and one in JavaScript.

A small server folds searches and answers without our key, as a proxy would.
"""

import json
from collections.abc import Iterator
from http.server import HTTPServer
from pathlib import Path

import pytest
from support.hits import SCHEME, leader_groups
from support.programs import run_node
from support.serving import Quiet, serving

from shinglefold.rerank import FoldedSearch

JS = Path(__file__).parent / "js"


class Folding(Quiet):
    """Answers a search with a folded page; anything else with who it is."""

    search: FoldedSearch

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.search.search(self.path.split("/")[1], body)
        del answer["dedup"]
        self._send(answer)

    def do_GET(self):
        self._send(
            {"version": {"number": "9.2.4", "build_flavor": "default"}, "tagline": "You Know, for Search"}
        )

    def _send(self, answer):
        text = json.dumps(answer).encode()
        self.send_response(200)
        asked = self.headers.get("Accept") or ""
        self.send_header("Content-Type", asked if "vnd.elasticsearch" in asked else "application/json")
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture(scope="module")
def url(library) -> Iterator[str]:
    handler = type("Handler", (Folding,), {"search": FoldedSearch(library.engine, SCHEME)})
    with serving(HTTPServer(("127.0.0.1", 0), handler)) as url:
        yield url


@pytest.fixture
def body(library):
    ours = {"members": 100, "explain": True}
    return library.body(2, size=7, _source=["title"], ext={"dedup": ours}, track_total_hits=True)


@pytest.fixture
def expected(library):
    return [[f"2-{rank}" for rank in group] for group in leader_groups(library.lists[2])[:7]]


def test_the_clients_of_opensearch_read_it(url, body, expected):
    from opensearchpy import OpenSearch, Search
    from opensearchpy.helpers.response import Response

    with OpenSearch(url) as client:
        raw = client.search(index="pages", body=body)
        assert _read(raw) == expected
        _attributes(Response(Search(), raw), expected)
        # Their own query builder sends the request and wraps the answer by itself.
        built = Search(using=client, index="pages").update_from_dict(body)
        _attributes(built.execute(), expected)


def test_the_clients_of_elasticsearch_read_it(url, body, expected):
    from elastic_transport import ObjectApiResponse
    from elasticsearch import Elasticsearch
    from elasticsearch.dsl import Search
    from elasticsearch.dsl.response import Response

    with Elasticsearch(url) as client:
        answer = client.perform_request(
            "POST",
            "/pages/_search",
            body=body,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        assert isinstance(answer, ObjectApiResponse)
        assert _read(answer.body) == expected
        _attributes(Response(Search(), answer.body), expected)
        typed = client.search(index="pages", size=7, query=body["query"], sort=body["sort"])
        assert isinstance(typed, ObjectApiResponse)
        assert [hit["_id"] for hit in typed["hits"]["hits"]] == [group[0] for group in expected]


def _read(answer):
    """The ids of each group, the hit shown first, as one reads them out of a collapsed answer."""
    groups = []
    for hit in answer["hits"]["hits"]:
        inner = hit["inner_hits"]["duplicates"]["hits"]
        assert inner["total"] == {"value": len(inner["hits"]), "relation": "eq"}
        assert inner["hits"][0]["_source"] == hit["_source"]
        groups.append([member["_id"] for member in inner["hits"]])
    return groups


def _attributes(response, expected):
    """The same through the attributes of a response class."""
    assert response.success()
    assert response.hits.total.value == 60
    assert [hit.meta.id for hit in response] == [group[0] for group in expected]
    for hit, group in zip(response, expected, strict=True):
        inner = hit.meta.inner_hits.duplicates
        assert inner.hits.total.value == len(group)
        assert [member.meta.id for member in inner] == group
        assert inner[0].title == hit.title


def test_a_javascript_client_reads_it(url, library, body, expected):
    told = json.loads(run_node(JS, "read_collapse.js", url, "pages", json.dumps(body)))
    assert [hit["id"] for hit in told["read"]] == [group[0] for group in expected]
    assert [[member[1] for member in hit["members"]] for hit in told["read"]] == expected
    assert [hit["group"] for hit in told["read"]] == [len(group) for group in expected]
    assert all(hit["members"][0][2] == hit["title"] for hit in told["read"])
    assert told["total"] == {"value": 60, "relation": "eq"}
    plain = library.engine.search("pages", library.body(2))
    assert told["keys"] == sorted(plain)
