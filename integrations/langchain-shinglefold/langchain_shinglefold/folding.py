"""A retriever that refills what folding removed, and a compressor that folds what it is given."""

import inspect
import json
from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from shinglefold import fold_chunks, fold_chunks_async

_FINGERPRINT = "_dedup"


class _Folding(BaseModel):
    """How documents are folded."""

    fold_options: dict[str, Any] = Field(default_factory=dict)
    """Other arguments of `shinglefold.fold_chunks`: `similarity`, `contained`, `languages`, `most`."""

    sources_key: str = "sources"
    """The key in the metadata of a document for what was folded under it."""

    @model_validator(mode="after")
    def _check_fold_options(self) -> Self:
        fold_chunks([], **self.fold_options)
        return self

    def _chunks(self, documents: Sequence[Document]) -> list[dict[str, Any]]:
        return [_chunk(document, self.sources_key) for document in documents]

    def _documents(self, chunks: Sequence[dict[str, Any]]) -> list[Document]:
        return [_with_sources(chunk, self.sources_key) for chunk in chunks]


def _chunk(document: Document, key: str) -> dict[str, Any]:
    metadata = dict(document.metadata)
    chunk: dict[str, Any] = {"id": document.id, "text": document.page_content, "metadata": metadata}
    if _FINGERPRINT in metadata:
        chunk[_FINGERPRINT] = metadata.pop(_FINGERPRINT)
    if key in metadata:
        chunk["sources"] = metadata.pop(key)
        if not _is_folded(chunk["sources"]):
            raise ValueError(
                f'A document has another "{key}" in its metadata: {chunk["sources"]!r}. '
                'Choose another key for what is folded: sources_key="folded"'
            )
    return {**chunk, "document": document}


def _is_folded(sources: object) -> bool:
    each = sources if isinstance(sources, list) else [None]
    return all(isinstance(one, dict) and "resemblance" in one for one in each)


def _plain(value: Any) -> Any:  # noqa: ANN401 - metadata may hold anything
    """Return a number or an array of NumPy as JSON has it, and others as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _with_sources(chunk: dict[str, Any], key: str) -> Document:
    document: Document = chunk["document"]
    sources = [{name: value for name, value in one.items() if name != "document"} for one in chunk["sources"]]
    # Plain JSON, whatever metadata holds; JSON has no NaN.
    sources = json.loads(json.dumps(sources, default=_plain), parse_constant=str)
    return document.model_copy(update={"metadata": {**document.metadata, key: sources}})


class ShinglefoldRetriever(_Folding, BaseRetriever):
    """Return the first `k` distinct documents of another retriever, or of a vector store.

    Near-copies become `sources` in the metadata of the best of them, and more documents are requested until
    there are `k`, or no more. Order and documents stay as they are.

    ```python
    ShinglefoldRetriever(retriever=vector_store, k=5).invoke("annual leave")
    ```
    """

    model_config = ConfigDict(extra="forbid")

    retriever: BaseRetriever | VectorStore
    """Where documents come from. It must take the number of documents, see `k_name`."""

    k: PositiveInt = 4
    """How many distinct documents are wanted."""

    k_name: str = "k"
    """The number of documents among the retriever's fields, search arguments or arguments of `invoke`."""

    @model_validator(mode="after")
    def _check_retriever(self) -> Self:
        if isinstance(self.retriever, VectorStore):
            self.retriever = self.retriever.as_retriever()
        known = inspect.signature(self.retriever._get_relevant_documents).parameters  # noqa: SLF001
        fields = type(self.retriever).model_fields
        if not {self.k_name, "search_kwargs"} & fields.keys() and self.k_name not in known:
            raise ValueError(
                f"{type(self.retriever).__name__} takes no {self.k_name!r}, so it returns no more documents. "
                "Name what it takes as k_name, or fold what it returns: ShinglefoldCompressor"
            )
        return self

    def _asking_for(self, count: int) -> tuple[BaseRetriever, dict[str, int]]:
        """Return the retriever that returns so many documents, and arguments of its `invoke`."""
        assert isinstance(self.retriever, BaseRetriever)
        fields = type(self.retriever).model_fields
        if self.k_name in fields:
            return self.retriever.model_copy(update={self.k_name: count}), {}
        if "search_kwargs" in fields:
            search = {**vars(self.retriever)["search_kwargs"], self.k_name: count}
            return self.retriever.model_copy(update={"search_kwargs": search}), {}
        return self.retriever, {self.k_name: count}

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **others: Any,  # noqa: ANN401 - what the retriever takes
    ) -> list[Document]:
        def fetch(count: int) -> list[dict[str, Any]]:
            retriever, arguments = self._asking_for(count)
            config = RunnableConfig(callbacks=run_manager.get_child())
            return self._chunks(retriever.invoke(query, config, **others, **arguments))

        found = fold_chunks([], self.k if k is None else k, fetch, **self.fold_options)
        return self._documents(found.chunks)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **others: Any,  # noqa: ANN401 - what the retriever takes
    ) -> list[Document]:
        async def fetch(count: int) -> list[dict[str, Any]]:
            retriever, arguments = self._asking_for(count)
            config = RunnableConfig(callbacks=run_manager.get_child())
            return self._chunks(await retriever.ainvoke(query, config, **others, **arguments))

        found = await fold_chunks_async([], self.k if k is None else k, fetch, **self.fold_options)
        return self._documents(found.chunks)


class ShinglefoldCompressor(_Folding, BaseDocumentCompressor):
    """Return the distinct documents of a list, at most `k`; near-copies become `sources` of the best one."""

    model_config = ConfigDict(extra="forbid")

    k: PositiveInt | None = None
    """How many documents are wanted; by default all that are distinct."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the distinct documents, in their order."""
        return self._documents(fold_chunks(self._chunks(documents), self.k, **self.fold_options).chunks)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the distinct documents, in their order. Nothing is awaited, as nothing is requested."""
        return self.compress_documents(documents, query, callbacks)
