"""Distinct documents out of LangChain's retrievers and stores: k of them, in order, and none lost."""

import asyncio
import json
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_shinglefold import ShinglefoldCompressor, ShinglefoldRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

QUERY = "annual leave"


def text_of(topic: int, copy: int) -> str:
    """Return a text of its own for each topic; its copies differ in a word at the end."""
    rng = random.Random(topic)
    words = [rng.choice("bcdfgklmnprst") + rng.choice("aeiou") + rng.choice("dklmnrt") for _ in range(60)]
    return " ".join([*words, "indeed"] if copy else words)


def filled(topics: int, copies: int) -> InMemoryVectorStore:
    """Return a store in which each topic has so many near-copies; its ranking is random, but fixed."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents(
        [
            Document(
                id=f"{topic}-{copy}",
                page_content=text_of(topic, copy),
                metadata={
                    "topic": topic,
                    "url": f"https://{copy}.example/{topic}",
                    "day": date(2026, 1, 2),
                },
            )
            for topic in range(topics)
            for copy in range(copies)
        ]
    )
    return store


class _Ranked(BaseRetriever):
    """A retriever of another's make: the first documents of a store's ranking."""

    store: InMemoryVectorStore

    def _ranking(self, count: int) -> list[Document]:
        return self.store.similarity_search(QUERY, k=count)


class ByField(_Ranked):
    top_k: int = 3

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._ranking(self.top_k)


class ByArgument(_Ranked):
    def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int = 3) -> list[Document]:
        return self._ranking(k)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, k: int = 3) -> list[Document]:
        return self._ranking(k)


class WithoutIds(ByArgument):
    def _ranking(self, count: int) -> list[Document]:
        return [one.model_copy(update={"id": None}) for one in super()._ranking(count)]


class Fixed(_Ranked):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._ranking(100)


RETRIEVERS = {
    "store": lambda store: {"retriever": store},
    "store's retriever": lambda store: {"retriever": store.as_retriever(search_kwargs={"k": 2})},
    "field": lambda store: {"retriever": ByField(store=store), "k_name": "top_k"},
    "argument": lambda store: {"retriever": ByArgument(store=store)},
    "without ids": lambda store: {"retriever": WithoutIds(store=store)},
}


def retrieved(retriever: BaseRetriever, way: str, **arguments: Any) -> list[Document]:
    if way == "invoke":
        return retriever.invoke(QUERY, **arguments)
    return asyncio.run(retriever.ainvoke(QUERY, **arguments))


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("name", RETRIEVERS)
@pytest.mark.parametrize(("k", "copies"), [(1, 3), (4, 1), (4, 9), (6, 30), (50, 5)])
def test_k_distinct_documents_come_in_order_and_none_is_lost(name, way, k, copies):
    store = filled(6, copies)
    ranking = store.similarity_search(QUERY, k=1_000)
    topics = list(dict.fromkeys(document.metadata["topic"] for document in ranking))
    first = [next(one for one in ranking if one.metadata["topic"] == topic) for topic in topics]

    found = retrieved(ShinglefoldRetriever(**RETRIEVERS[name](store), k=k), way)

    assert [document.page_content for document in found] == [document.page_content for document in first[:k]]
    for document, best in zip(found, first, strict=False):
        sources = json.loads(json.dumps(document.metadata.pop("sources")))
        assert document.metadata == best.metadata
        assert all(one["metadata"]["topic"] == best.metadata["topic"] for one in sources)
        assert all(
            0.8 < one["resemblance"] <= 1 and one["metadata"]["day"] == "2026-01-02" for one in sources
        )
        urls = {best.metadata["url"], *(one["metadata"]["url"] for one in sources)}
        assert len(urls) == 1 + len(sources)
        if k > len(topics):
            assert len(urls) == copies
    assert "sources" not in store.similarity_search(QUERY, k=1)[0].metadata


@pytest.mark.parametrize("way", ["compress_documents", "acompress_documents"])
def test_a_list_is_folded_twice_and_keeps_its_sources(way):
    documents = filled(4, 3).similarity_search(QUERY, k=12)

    def compressed(given: list[Document], **options: Any) -> list[Document]:
        found = getattr(ShinglefoldCompressor(**options), way)(given, QUERY)
        return list(asyncio.run(found) if way.startswith("a") else found)

    once = compressed(documents)
    assert len(once) == 4
    assert compressed(once) == once
    assert compressed(documents, k=2) == once[:2]
    assert compressed([*reversed(once)], sources_key="folded")[0].metadata["folded"] == []


def test_sources_are_plain_json_whatever_metadata_holds():
    metadata = {"nan": float("nan"), "float": np.float32(0.5), "array": np.arange(2), "bytes": b"x"}
    documents = [Document(page_content=text_of(0, copy), metadata=metadata) for copy in range(2)]
    (document,) = ShinglefoldCompressor().compress_documents(documents, QUERY)
    json.dumps(document.metadata["sources"], allow_nan=False)
    assert document.metadata["sources"][0]["metadata"] == {
        "nan": "NaN",
        "float": 0.5,
        "array": [0, 1],
        "bytes": "b'x'",
    }
    assert all(document.metadata[name] is value for name, value in metadata.items())


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_other_arguments_go_to_the_retriever(way):
    retriever = ShinglefoldRetriever(retriever=filled(6, 3), k=6)
    found = retrieved(retriever, way, filter=lambda document: document.metadata["topic"] < 2)
    assert {document.metadata["topic"] for document in found} == {0, 1}


def test_documents_without_text_are_all_kept():
    documents = [Document(page_content="", metadata={"image": number}) for number in range(3)]
    assert len(ShinglefoldCompressor().compress_documents(documents, QUERY)) == 3


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
            lambda store: ShinglefoldRetriever(retriever=Fixed(store=store)),
            "takes no 'k'.*ShinglefoldCompressor",
        ),
        (lambda store: ShinglefoldRetriever(retriever=store, k=0), "greater than 0"),
        (lambda store: ShinglefoldRetriever(retriever=store, fold_options={"contained": 2}), "contained"),
        (lambda store: ShinglefoldRetriever(retriever=store, top_k=3), "top_k\n.*not permitted"),
        (lambda store: ShinglefoldCompressor(k=0), "greater than 0"),
        (lambda store: ShinglefoldCompressor(top_n=3), "top_n\n.*not permitted"),
        *(
            (
                lambda store, value=value: ShinglefoldCompressor().compress_documents(
                    [Document(page_content="x", metadata={"sources": value})], QUERY
                ),
                'another "sources".*sources_key="folded"',
            )
            for value in (["a.pdf"], "a.pdf", None, 5, {})
        ),
    ],
)
def test_what_cannot_be_done_is_told(make, told):
    with pytest.raises(Exception, match=told):
        make(filled(1, 1))


class TestStandard(RetrieversIntegrationTests):
    """LangChain's own tests of a retriever."""

    @property
    def retriever_constructor(self) -> type[ShinglefoldRetriever]:
        return ShinglefoldRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": filled(6, 3)}

    @property
    def retriever_query_example(self) -> str:
        return QUERY
