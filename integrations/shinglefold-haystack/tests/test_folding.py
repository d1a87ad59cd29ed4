"""Distinct documents out of Haystack's retrievers: top_k of them, in order, and none lost."""

import asyncio
import json
import random
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haystack import Document, Pipeline, component
from haystack.components.retrievers import FilterRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.core.component.types import _empty
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.rankers.shinglefold import ShinglefoldRanker
from haystack_integrations.components.retrievers.shinglefold import ShinglefoldRetriever

from shinglefold.errors import ConfigError

QUERY = "annual leave"


def text_of(topic: int, copy: int) -> str:
    """Return a text of its own for each topic; its copies differ in words of the query at the end."""
    rng = random.Random(topic)
    words = [rng.choice("bcdfgklmnprst") + rng.choice("aeiou") + rng.choice("dklmnrt") for _ in range(60)]
    return " ".join([*words, *["annual"] * (1 + (topic + copy) % 3)])


def vector_of(*parts: Any) -> list[float]:
    rng = random.Random(str(parts))
    return [rng.gauss(0, 1) for _ in range(16)]


def filled(topics: int, copies: int) -> InMemoryDocumentStore:
    """Return a store in which each topic has so many near-copies."""
    store = InMemoryDocumentStore()
    store.write_documents(
        [
            Document(
                id=f"{topic}-{copy}",
                content=text_of(topic, copy),
                meta={"topic": topic, "url": f"https://{copy}.example/{topic}", "day": date(2026, 1, 2)},
                embedding=vector_of(topic, copy),
            )
            for topic in range(topics)
            for copy in range(copies)
        ]
    )
    return store


RETRIEVERS: dict[str, Any] = {
    "BM25": (InMemoryBM25Retriever, {"query": QUERY}),
    "embeddings": (InMemoryEmbeddingRetriever, {"query_embedding": vector_of(QUERY)}),
}


def run(runs: Any, way: str, **inputs: Any) -> Any:
    return runs.run(**inputs) if way == "run" else asyncio.run(runs.run_async(**inputs))


@pytest.mark.parametrize("way", ["run", "run_async"])
@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize(("k", "copies"), [(1, 3), (4, 1), (4, 9), (6, 30), (50, 5)])
def test_k_distinct_documents_come_in_order_and_none_is_lost(name, way, k, copies):
    store = filled(6, copies)
    made, inputs = RETRIEVERS[name]
    ranking = made(store, top_k=1_000).run(**inputs)["documents"]
    topics = list(dict.fromkeys(document.meta["topic"] for document in ranking))
    first = [next(one for one in ranking if one.meta["topic"] == topic) for topic in topics]

    found = run(ShinglefoldRetriever(made(store), top_k=k), way, **inputs)["documents"]

    assert [(one.id, one.score) for one in found] == [(one.id, one.score) for one in first[:k]]
    scores = {one.id: one.score for one in ranking}
    for document, best in zip(found, first, strict=False):
        sources = json.loads(json.dumps(document.meta.pop("sources")))
        assert document.meta == best.meta
        for source in sources:
            assert source["score"] == scores[source["id"]]
            assert source["meta"] == {
                "topic": best.meta["topic"],
                "url": "https://{1}.example/{0}".format(*source["id"].split("-")),
                "day": "2026-01-02",
            }
            assert 0.8 < source["resemblance"] <= 1
        ids = {best.id, *(source["id"] for source in sources)}
        assert len(ids) == 1 + len(sources)
        if k > len(topics):
            assert len(ids) == copies
    assert all("sources" not in one.meta for one in store.filter_documents())


@pytest.mark.parametrize("way", ["run", "run_async"])
@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_pipeline_runs_it_and_comes_back_from_its_yaml(name, way):
    made, inputs = RETRIEVERS[name]
    pipeline = Pipeline()
    retriever = ShinglefoldRetriever(made(filled(5, 4)), 3, {"contained": 0.9}, "folded")
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("ranker", ShinglefoldRanker(2, {"languages": ["en"]}))
    pipeline.connect("retriever.documents", "ranker.documents")
    again = Pipeline.loads(pipeline.dumps())
    assert again.to_dict() == pipeline.to_dict()
    # The documents of a store in memory are no part of its description.
    again.get_component("retriever").retriever = retriever.retriever
    found = run(again, way, data={"retriever": inputs})["ranker"]["documents"]
    assert len({document.meta["topic"] for document in found}) == 2
    assert all({"folded", "sources"} <= document.meta.keys() for document in found)


def test_it_takes_the_inputs_of_its_retriever():
    wrapped = InMemoryBM25Retriever(filled(1, 1))
    theirs, ours = (one.__haystack_input__._sockets_dict for one in (wrapped, ShinglefoldRetriever(wrapped)))
    assert ours.keys() == theirs.keys()
    assert ours["query"].default_value is _empty
    assert ours["filters"] == theirs["filters"]


@pytest.mark.parametrize("way", ["run", "run_async"])
def test_a_list_is_folded_twice_and_keeps_its_sources(way):
    documents = InMemoryBM25Retriever(filled(4, 3), top_k=12).run(QUERY)["documents"]
    once = run(ShinglefoldRanker(), way, documents=documents)["documents"]
    assert len(once) == 4
    assert run(ShinglefoldRanker(), way, documents=once)["documents"] == once
    assert run(ShinglefoldRanker(2), way, documents=documents)["documents"] == once[:2]
    assert run(ShinglefoldRanker(2), way, documents=documents, top_k=3)["documents"] == once[:3]
    other = run(ShinglefoldRanker(sources_key="folded"), way, documents=once)["documents"]
    assert all(document.meta["folded"] == [] for document in other)


@component
class Normalized:
    """A retriever whose scores depend on how many documents are requested, and that counts its calls."""

    def __init__(self, store: InMemoryDocumentStore) -> None:
        """Wrap a store."""
        self.retriever, self.calls = InMemoryEmbeddingRetriever(store), []

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], top_k: int = 3) -> dict[str, list[Document]]:
        """Return documents with scores of 0 to 1."""
        found = self.retriever.run(query_embedding, top_k=top_k)["documents"]
        low, high = found[-1].score, found[0].score
        return {"documents": [replace(one, score=(one.score - low) / (high - low)) for one in found]}

    def warm_up(self) -> None:
        self.calls.append("warm_up")

    def close(self) -> None:
        self.calls.append("close")


class Asynchronous(Normalized):
    async def warm_up_async(self) -> None:
        self.calls.append("warm_up_async")

    async def close_async(self) -> None:
        self.calls.append("close_async")


def test_a_document_with_another_score_is_the_same_document():
    retriever = ShinglefoldRetriever(Normalized(filled(3, 9)), top_k=4)
    found = retriever.run(query_embedding=vector_of(QUERY))["documents"]
    assert len(found) == 3
    assert all(
        len({one.id, *(source["id"] for source in one.meta["sources"])}) == 1 + len(one.meta["sources"])
        for one in found
    )


@pytest.mark.parametrize(
    ("made", "called"),
    [
        (Normalized, ["warm_up", "close", "warm_up", "close"]),
        (Asynchronous, ["warm_up", "close", "warm_up_async", "close_async"]),
        (InMemoryBM25Retriever, []),
    ],
)
def test_the_retriever_is_warmed_up_and_closed_with_it(made, called):
    wrapped = made(filled(1, 1))
    retriever = ShinglefoldRetriever(wrapped)
    retriever.warm_up()
    retriever.close()

    async def again() -> None:
        await retriever.warm_up_async()
        await retriever.close_async()

    asyncio.run(again())
    assert getattr(wrapped, "calls", []) == called


def test_sources_are_plain_json_whatever_meta_holds():
    meta = {"nan": float("nan"), "float": np.float32(0.5), "array": np.arange(2), "bytes": b"x"}
    documents = [
        Document(content=text_of(0, int(copy)), meta=meta, score=np.float32(0.5), id=str(copy))
        for copy in range(2)
    ]
    (document,) = ShinglefoldRanker().run(documents)["documents"]
    (source,) = document.meta["sources"]
    json.dumps(source, allow_nan=False)
    assert source["score"] == 0.5
    assert source["meta"] == {"nan": "NaN", "float": 0.5, "array": [0, 1], "bytes": "b'x'"}
    assert document.score is documents[0].score
    assert all(document.meta[name] is value for name, value in meta.items())


def test_documents_without_text_are_all_kept():
    documents = [Document(blob=ByteStream(bytes([number]))) for number in range(3)]
    assert len(ShinglefoldRanker().run(documents)["documents"]) == 3


def test_the_example_of_the_readme_shows_two_texts_of_three(capsys):
    page = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(example, {})
    one, other = sorted(capsys.readouterr().out.splitlines(), key=lambda line: " 31 " in line)
    assert re.search(r"\['https://[ab]\.example'\]$", one)
    assert other.endswith(" 31 days, which may be split by agreement. []")


@component
class Blocking:
    """A retriever without `run_async`."""

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int = 3) -> dict[str, list[Document]]:
        """Return nothing."""
        return {"documents": []}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: ShinglefoldRetriever(FilterRetriever(filled(1, 1))),
            "takes no top_k.*Ranker",
        ),
        (lambda: run(ShinglefoldRetriever(Blocking()), "run_async", query=""), "no run_async.*Ranker"),
        (lambda: ShinglefoldRetriever(Blocking(), top_k=0), "k"),
        (lambda: ShinglefoldRetriever(Blocking(), fold_options={"contained": 2}), "contained"),
        (lambda: ShinglefoldRetriever(Blocking(), top_k=None), "k"),
        (lambda: ShinglefoldRetriever(filled(1, 1)), "InMemoryDocumentStore is no component"),
        (lambda: ShinglefoldRetriever(Blocking()).run("leave"), "positional"),
        (lambda: ShinglefoldRanker(0), "k"),
        *(
            (
                lambda value=value: ShinglefoldRanker().run([Document(content="x", meta={"sources": value})]),
                'another "sources".*sources_key="folded"',
            )
            for value in (["a.pdf"], "a.pdf", None, 5, {})
        ),
    ],
)
def test_what_cannot_be_done_is_told(make, told):
    with pytest.raises((ValueError, TypeError, ConfigError), match=told):
        make()
