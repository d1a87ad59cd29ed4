"""Write to and search a store of a framework, and print the texts found, for `test_framework_stores.py`."""

import json
import sys
from typing import Any

#: Three groups, of three copies, two, and one.
TEXTS = [
    "The old bridge over the Kamenka is closed for repairs until the end of October, the town council said.",
    "The old bridge over the Kamenka is closed for repairs until the end of November, the town council said.",
    "The old bridge over the Kamenka is closed for repairs until the end of October, the town hall said.",
    "A new bridge for cyclists and walkers will join both banks of the river near the mill next summer.",
    "A new bridge for cyclists and walkers will join both banks of the river near the mill this summer.",
    "Divers found a bridge of Roman times below the water of the lake, with its oak piles well preserved.",
]
QUESTION = "bridge"
#: More than there are groups, as a page of a program that does not know of folding.
MANY = 50


def haystack(product: str, url: str, index: str) -> list[str]:
    """Through a gateway, as Haystack's stores take an address; but see Elasticsearch."""
    from haystack import Document

    from shinglefold import fold

    store: Any
    retriever: Any
    if product == "elasticsearch":
        from elasticsearch import Elasticsearch
        from haystack_integrations.components.retrievers.elasticsearch import ElasticsearchBM25Retriever
        from haystack_integrations.document_stores.elasticsearch import ElasticsearchDocumentStore

        store = ElasticsearchDocumentStore(hosts=url, index=index)
        # It makes a client by itself after ``GET /``, which the server of these tests does not have.
        store._client = fold(Elasticsearch(url))
        retriever = ElasticsearchBM25Retriever(document_store=store, top_k=MANY)
    else:
        from haystack_integrations.components.retrievers.opensearch import OpenSearchBM25Retriever
        from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore

        store = OpenSearchDocumentStore(hosts=url, index=index)
        retriever = OpenSearchBM25Retriever(document_store=store, top_k=MANY)
    store.write_documents([Document(id=str(place), content=text) for place, text in enumerate(TEXTS)])
    return [one.content for one in retriever.run(query=QUESTION)["documents"]]


def langchain(product: str, url: str, index: str) -> list[str]:
    """By a folded client, as LangChain's stores take a client."""
    from shinglefold import fold

    store: Any
    if product == "elasticsearch":
        from elasticsearch import Elasticsearch
        from langchain_elasticsearch import BM25Strategy, ElasticsearchStore

        client = fold(Elasticsearch(url))
        store = ElasticsearchStore(client=client, index_name=index, strategy=BM25Strategy())
    else:
        raise SystemExit("LangChain's store of OpenSearch searches by vectors, which needs its k-NN plugin")
    store.add_texts(TEXTS, ids=[str(place) for place in range(len(TEXTS))])
    return [one.page_content for one in store.similarity_search(QUESTION, k=MANY)]


if __name__ == "__main__":
    framework, *given = sys.argv[1:]
    print(json.dumps({"haystack": haystack, "langchain": langchain}[framework](*given)))
