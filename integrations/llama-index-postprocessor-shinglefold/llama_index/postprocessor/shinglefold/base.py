"""A retriever that refills what folding removed, and a postprocessor that folds what it is given."""

import copy
import json
from collections.abc import Sequence
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import ConfigDict, Field, model_validator
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from shinglefold import fold_chunks, fold_chunks_async

_FINGERPRINT = "_dedup"


def _chunks(nodes: Sequence[NodeWithScore], key: str) -> list[dict[str, Any]]:
    return [_chunk(node, key) for node in nodes]


def _chunk(node: NodeWithScore, key: str) -> dict[str, Any]:
    metadata, document = dict(node.metadata), node.node.source_node
    chunk: dict[str, Any] = {
        "id": node.node_id,
        "text": node.get_content(),
        "node": node.node,
        "score": node.score,
        "metadata": metadata,
    }
    if document is not None:
        chunk["document"] = document.node_id
    if _FINGERPRINT in metadata:
        chunk[_FINGERPRINT] = metadata.pop(_FINGERPRINT)
    if key in metadata:
        chunk["sources"] = metadata.pop(key)
        if not _is_folded(chunk["sources"]):
            raise ValueError(
                f'Node {node.node_id} has another "{key}" in its metadata: {chunk["sources"]!r}. '
                'Choose another key for what is folded: sources_key="folded"'
            )
    return chunk


def _is_folded(sources: object) -> bool:
    each = sources if isinstance(sources, list) else [None]
    return all(isinstance(one, dict) and "resemblance" in one for one in each)


def _plain(value: Any) -> Any:  # noqa: ANN401 - metadata may hold anything
    """Return a number or an array of NumPy as JSON has it, and others as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _nodes(chunks: Sequence[dict[str, Any]], key: str) -> list[NodeWithScore]:
    return [_with_sources(chunk, key) for chunk in chunks]


def _with_sources(chunk: dict[str, Any], key: str) -> NodeWithScore:
    """Return a copy of a node, as stores return the nodes they hold."""
    node: BaseNode = chunk["node"]
    sources = [{name: value for name, value in one.items() if name != "node"} for one in chunk["sources"]]
    # Plain JSON, whatever metadata holds; JSON has no NaN.
    sources = json.loads(json.dumps(sources, default=_plain), parse_constant=str)
    # Metadata is a part of prompts and of texts to embed, unless it is left out there.
    changed = {
        "metadata": {**node.metadata, key: sources},
        "excluded_llm_metadata_keys": sorted({*node.excluded_llm_metadata_keys, key}),
        "excluded_embed_metadata_keys": sorted({*node.excluded_embed_metadata_keys, key}),
    }
    return NodeWithScore(node=node.model_copy(update=changed), score=chunk["score"])


class ShinglefoldRetriever(BaseRetriever):
    """Return the first `similarity_top_k` distinct nodes of another retriever.

    Near-copies become `sources` in the metadata of the best of them, and more nodes are requested until there
    are enough, or no more. Order, scores and nodes stay as they are.

    Args:
        retriever: a retriever with a `similarity_top_k`, as `index.as_retriever()` returns.
        similarity_top_k: how many distinct nodes are wanted.
        fold_options: other arguments of `shinglefold.fold_chunks`.
        sources_key: the key in the metadata of a node for what was folded under it.
        callback_manager: as in other retrievers.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        similarity_top_k: int = 2,
        fold_options: dict[str, Any] | None = None,
        sources_key: str = "sources",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if not isinstance(retriever, BaseRetriever):
            raise TypeError(
                f"{type(retriever).__name__} is no retriever. An index makes one: index.as_retriever()"
            )
        if not {"similarity_top_k", "_similarity_top_k"} & vars(retriever).keys():
            raise ValueError(
                f"{type(retriever).__name__} has no similarity_top_k, so it returns no more nodes. "
                "Fold what it returns: ShinglefoldPostprocessor"
            )
        self.similarity_top_k = similarity_top_k
        self._retriever, self._key, self._options = retriever, sources_key, fold_options or {}
        fold_chunks([], similarity_top_k, lambda _: [], **self._options)
        super().__init__(callback_manager)

    def _returning(self, count: int) -> BaseRetriever:
        """Return the retriever of so many nodes: a copy, as others may use the one that was given."""
        retriever = copy.copy(self._retriever)
        name = "similarity_top_k" if "similarity_top_k" in vars(retriever) else "_similarity_top_k"
        # BM25Retriever fails if more nodes are requested than it has.
        known = vars(retriever)["bm25"].scores.get("num_docs", count) if "bm25" in vars(retriever) else count
        setattr(retriever, name, min(count, int(known)))
        return retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        def fetch(count: int) -> list[dict[str, Any]]:
            return _chunks(self._returning(count).retrieve(query_bundle), self._key)

        return _nodes(fold_chunks([], self.similarity_top_k, fetch, **self._options).chunks, self._key)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        async def fetch(count: int) -> list[dict[str, Any]]:
            return _chunks(await self._returning(count).aretrieve(query_bundle), self._key)

        found = await fold_chunks_async([], self.similarity_top_k, fetch, **self._options)
        return _nodes(found.chunks, self._key)


class ShinglefoldPostprocessor(BaseNodePostprocessor):
    """Return the distinct nodes of a list, at most `top_n`; near-copies become `sources` of the best one."""

    model_config = ConfigDict(extra="forbid")

    top_n: int | None = Field(
        default=None, gt=0, description="How many nodes are wanted; by default all that are distinct."
    )
    fold_options: dict[str, Any] = Field(
        default_factory=dict, description="Other arguments of `shinglefold.fold_chunks`."
    )
    sources_key: str = Field(
        default="sources", description="The key in the metadata of a node for what was folded under it."
    )

    @model_validator(mode="after")
    def _check_fold_options(self) -> Self:
        fold_chunks([], **self.fold_options)
        return self

    @classmethod
    def class_name(cls) -> str:
        """Return the name by which the class is serialized."""
        return "ShinglefoldPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        found = fold_chunks(_chunks(nodes, self.sources_key), self.top_n, **self.fold_options)
        return _nodes(found.chunks, self.sources_key)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self._postprocess_nodes(nodes, query_bundle)
