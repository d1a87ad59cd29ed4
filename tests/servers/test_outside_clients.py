"""The clients of other languages, through a gateway to a server: the examples print a folded page."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.programs import run_here, run_java, run_node

import shinglefold

CLIENTS = Path(__file__).resolve().parents[2] / "examples" / "clients"
_MAPPINGS = {"properties": {"title": {"type": "text"}, "body": {"type": "text"}}}
Run = Callable[[Mapping[str, str]], str]
#: The clients of each product, and what runs the example of each.
EXAMPLES: Mapping[str, tuple[str, Run]] = {
    "opensearch-js": ("opensearch", lambda env: run_node(CLIENTS, "opensearch.js", env=env)),
    "opensearch-java": ("opensearch", lambda env: run_java(CLIENTS, "FoldedSearch.java", env)),
    "opensearch-py": ("opensearch", lambda env: run_here([sys.executable, "opensearch_py.py"], CLIENTS, env)),
    "@elastic/elasticsearch": ("elasticsearch", lambda env: run_node(CLIENTS, "elasticsearch.js", env=env)),
    "elasticsearch-py": (
        "elasticsearch",
        lambda env: run_here([sys.executable, "elasticsearch_py.py"], CLIENTS, env),
    ),
    "curl": ("", lambda env: run_here(["sh", "curl.sh"], CLIENTS, env)),
}
#: Clients for one generation of servers.
_NEWEST = ("@elastic/elasticsearch",)
FOLDED = [
    "The old bridge over the Kamenka closes for repairs (+1)",
    "A new bridge for cyclists (+0)",
    "folded: 1",
]


@pytest.mark.newest
@pytest.mark.parametrize("client", EXAMPLES)
def test_an_example_prints_a_folded_page(client, server, engine, gateway, new_index):
    product, run = EXAMPLES[client]
    if product not in ("", engine.info()["distribution"]):
        pytest.skip(f"{client} is a client of {product}")
    index = new_index(_MAPPINGS)
    shinglefold.setup(server.url, index, text=["title", "body"], languages=["en"])
    printed = run({"GATEWAY_URL": gateway.url, "INDEX": index, "PATH": os.environ["PATH"]}).splitlines()
    if client == "curl":
        named = [line.strip().rstrip(",").partition(":") for line in printed[2:]]
        # The copy that is folded is printed, too: it is among the members.
        assert [value.strip(' "') for _, _, value in named][-2:] == ["A new bridge for cyclists", "1"], (
            printed
        )
    else:
        assert printed == FOLDED
    # By any client, the documents are signed.
    assert all("signature" in hit["_source"]["_dedup"] for hit in engine.search(index, {})["hits"]["hits"])
