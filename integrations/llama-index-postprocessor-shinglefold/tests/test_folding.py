"""Distinct nodes out of LlamaIndex's retrievers: as many as are wanted, in order, and none lost."""

import asyncio
import json
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document, QueryBundle, SummaryIndex, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever, VectorIndexRetriever
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, TextNode
from llama_index.postprocessor.shinglefold import ShinglefoldPostprocessor, ShinglefoldRetriever
from llama_index.retrievers.bm25 import BM25Retriever

from shinglefold.errors import ConfigError

QUERY = "annual leave"


def text_of(topic: int, copy: int) -> str:
    """Return a text of its own for each topic; its copies differ in a word at the end."""
    rng = random.Random(topic)
    words = [rng.choice("bcdfgklmnprst") + rng.choice("aeiou") + rng.choice("dklmnrt") for _ in range(60)]
    return " ".join([*words, "indeed"] if copy else words)


class SeededEmbedding(BaseEmbedding):
    """Random vectors, the same for the same text: rankings without a model."""

    def _vector(self, text: str) -> list[float]:
        rng = random.Random(text)
        return [rng.gauss(0, 1) for _ in range(16)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)


def filled(topics: int, copies: int) -> VectorStoreIndex:
    """Return an index in which each topic has so many near-copies."""
    documents = [
        Document(
            id_=f"{topic}-{copy}",
            text=text_of(topic, copy),
            metadata={"topic": topic, "url": f"https://{copy}.example/{topic}", "day": date(2026, 1, 2)},
            excluded_llm_metadata_keys=["url"],
        )
        for topic in range(topics)
        for copy in range(copies)
    ]
    return VectorStoreIndex.from_documents(documents, embed_model=SeededEmbedding())


def fused(index: VectorStoreIndex) -> QueryFusionRetriever:
    retrievers = [index.as_retriever(similarity_top_k=1_000)]
    return QueryFusionRetriever(retrievers, llm=MockLLM(), num_queries=1, use_async=False)


RETRIEVERS = {"index": lambda index: index.as_retriever(), "fusion": fused}


@pytest.mark.parametrize("way", ["retrieve", "aretrieve"])
@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize(("k", "copies"), [(1, 3), (4, 1), (4, 9), (6, 30), (50, 5)])
def test_k_distinct_nodes_come_in_order_and_none_is_lost(name, way, k, copies):
    index = filled(6, copies)
    ranking = index.as_retriever(similarity_top_k=1_000).retrieve(QUERY)
    topics = list(dict.fromkeys(node.metadata["topic"] for node in ranking))
    first = [next(one for one in ranking if one.metadata["topic"] == topic) for topic in topics]
    wrapped = RETRIEVERS[name](index)
    before = dict(vars(wrapped))

    retriever = ShinglefoldRetriever(wrapped, similarity_top_k=k)
    found = retriever.retrieve(QUERY) if way == "retrieve" else asyncio.run(retriever.aretrieve(QUERY))

    assert [(node.node_id, node.score) for node in found] == [(one.node_id, one.score) for one in first[:k]]
    for node, best in zip(found, first, strict=False):
        assert node.get_content(MetadataMode.ALL).count("resemblance") == len(node.metadata["sources"])
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.get_content(mode) == best.get_content(mode)
        sources = json.loads(json.dumps(node.metadata.pop("sources")))
        assert node.metadata == best.metadata
        scores = {one.node_id: one.score for one in ranking}
        for source in sources:
            assert source["score"] == scores[source["id"]]
            assert source["metadata"]["topic"] == best.metadata["topic"]
            assert source["metadata"]["url"] == "https://{1}.example/{0}".format(
                *source["document"].split("-")
            )
            assert 0.8 < source["resemblance"] <= 1
        urls = {best.metadata["url"], *(one["metadata"]["url"] for one in sources)}
        assert len(urls) == 1 + len(sources)
        if k > len(topics):
            assert len(urls) == copies
    assert vars(wrapped) == before
    assert "sources" not in index.as_retriever().retrieve(QUERY)[0].metadata


@pytest.mark.parametrize("way", ["postprocess_nodes", "apostprocess_nodes"])
def test_a_list_is_folded_twice_and_keeps_its_sources(way):
    nodes = filled(4, 3).as_retriever(similarity_top_k=12).retrieve(QUERY)

    def processed(given: list[NodeWithScore], **options: Any) -> list[NodeWithScore]:
        found = getattr(ShinglefoldPostprocessor(**options), way)(given, QueryBundle(QUERY))
        return asyncio.run(found) if way.startswith("a") else found

    once = processed(nodes)
    assert len(once) == 4
    assert processed(once) == once
    assert processed(nodes, top_n=2) == once[:2]
    assert processed(once[::-1], sources_key="folded")[0].metadata["folded"] == []


class Normalized(VectorIndexRetriever):
    """A retriever whose scores depend on how many nodes are requested."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = super()._retrieve(query_bundle)
        low, high = found[-1].get_score(), found[0].get_score()
        return [NodeWithScore(node=one.node, score=(one.get_score() - low) / (high - low)) for one in found]


def test_a_node_with_another_score_is_the_same_node():
    found = ShinglefoldRetriever(Normalized(filled(3, 9)), similarity_top_k=4).retrieve(QUERY)
    assert len(found) == 3
    assert all(
        len({node.node_id, *(one["id"] for one in node.metadata["sources"])})
        == 1 + len(node.metadata["sources"])
        for node in found
    )


@pytest.mark.parametrize("k", [1, 3, 50])
def test_a_retriever_that_fails_beyond_its_corpus_is_asked_for_no_more(k):
    nodes = list(filled(3, 2).docstore.docs.values())
    wrapped = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=2)
    assert len(ShinglefoldRetriever(wrapped, similarity_top_k=k).retrieve(text_of(0, 0))) == min(k, 3)
    assert wrapped.similarity_top_k == 2


def test_sources_are_plain_json_whatever_metadata_holds():
    metadata = {"nan": float("nan"), "float": np.float32(0.5), "bytes": b"x"}
    nodes = [TextNode(text=text_of(0, copy), metadata=metadata) for copy in range(2)]
    (node,) = ShinglefoldPostprocessor().postprocess_nodes(
        [NodeWithScore(node=node, score=np.float32(0.5)) for node in nodes]
    )
    (source,) = node.metadata["sources"]
    json.dumps(source, allow_nan=False)
    assert source["score"] == 0.5
    assert source["metadata"] == {"nan": "NaN", "float": 0.5, "bytes": "b'x'"}
    assert all(node.metadata[name] is value for name, value in metadata.items())


def test_it_stands_in_a_query_engine_and_is_stored_as_json():
    folding = ShinglefoldPostprocessor.from_json(ShinglefoldPostprocessor(top_n=3).to_json())
    engine = filled(5, 4).as_query_engine(
        llm=MockLLM(),
        similarity_top_k=20,
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=-1.0), folding],
    )
    assert len({node.metadata["topic"] for node in engine.query(QUERY).source_nodes}) == 3


def test_nodes_without_text_are_all_kept():
    nodes = [NodeWithScore(node=ImageNode(image_url=f"https://a/{number}.png")) for number in range(3)]
    assert len(ShinglefoldPostprocessor().postprocess_nodes(nodes)) == 3


def test_the_example_of_the_readme_shows_two_texts_of_three(capsys):
    page = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(example, {})
    one, other = sorted(capsys.readouterr().out.splitlines(), key=lambda line: " 31 " in line)
    assert re.search(r"\['https://[ab]\.example'\]$", one)
    assert other.endswith(" 31 days, which may be split by agreement. []")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: ShinglefoldRetriever(SummaryIndex([]).as_retriever()),
            "SummaryIndexRetriever has no similarity_top_k.*ShinglefoldPostprocessor",
        ),
        (lambda: ShinglefoldRetriever(filled(1, 1).as_retriever(), similarity_top_k=0), "k"),
        (
            lambda: ShinglefoldRetriever(filled(1, 1).as_retriever(), fold_options={"contained": 2}),
            "contained",
        ),
        (lambda: ShinglefoldRetriever(filled(1, 1)), "VectorStoreIndex is no retriever.*as_retriever"),
        (lambda: ShinglefoldRetriever(filled(1, 1).as_retriever(), None), "k"),
        (lambda: ShinglefoldPostprocessor(top_n=0), "greater than 0"),
        (lambda: ShinglefoldPostprocessor(k=3), "k\n.*not permitted"),
        (lambda: ShinglefoldPostprocessor(fold_options={"contained": 2}), "contained"),
        *(
            (
                lambda value=value: ShinglefoldPostprocessor().postprocess_nodes(
                    [NodeWithScore(node=TextNode(text="x", metadata={"sources": value}))]
                ),
                'another "sources".*sources_key="folded"',
            )
            for value in (["a.pdf"], "a.pdf", None, 5, {})
        ),
    ],
)
def test_what_cannot_be_done_is_told(make, told):
    with pytest.raises((ValueError, TypeError, ConfigError), match=told):
        make()
