"""A component that folds the documents of any retriever."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, component

import shinglefold

_FINGERPRINT = "_dedup"


def chunks_of(documents: Sequence[Document], key: str) -> list[dict[str, Any]]:
    """Return documents as chunks; `key` is where earlier sources are in their `meta`."""
    return [_chunk(document, key) for document in documents]


def _chunk(document: Document, key: str) -> dict[str, Any]:
    meta = dict(document.meta)
    chunk: dict[str, Any] = {"id": document.id, "text": document.content or "", "score": document.score}
    # A document is the same one if its score changes with the number of documents that are requested.
    chunk |= {"meta": meta, "document": replace(document, score=None)}
    if _FINGERPRINT in meta:
        chunk[_FINGERPRINT] = meta.pop(_FINGERPRINT)
    if key in meta:
        chunk["sources"] = meta.pop(key)
        if not _is_folded(chunk["sources"]):
            raise ValueError(
                f'Document {document.id} has another "{key}" in its meta: {chunk["sources"]!r}. '
                'Choose another key for what is folded: sources_key="folded"'
            )
    return chunk


def _is_folded(sources: object) -> bool:
    each = sources if isinstance(sources, list) else [None]
    return all(isinstance(one, dict) and "resemblance" in one for one in each)


def _plain(value: Any) -> Any:  # noqa: ANN401 - meta may hold anything
    """Return a number or an array of NumPy as JSON has it, and others as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def documents_of(chunks: Sequence[dict[str, Any]], key: str) -> list[Document]:
    """Return the documents of folded chunks, each with its sources under `key` in its `meta`."""
    return [_with_sources(chunk, key) for chunk in chunks]


def _with_sources(chunk: dict[str, Any], key: str) -> Document:
    """Return a copy of a document, as stores return the documents they hold."""
    document: Document = chunk["document"]
    sources = [{name: value for name, value in one.items() if name != "document"} for one in chunk["sources"]]
    # Plain JSON, whatever meta holds; JSON has no NaN.
    sources = json.loads(json.dumps(sources, default=_plain), parse_constant=str)
    return replace(document, score=chunk["score"], meta={**document.meta, key: sources})


@component
class ShinglefoldRanker:
    """Return the distinct documents of a list in order; near-copies become `sources` of the best one."""

    def __init__(
        self,
        top_k: int | None = None,
        fold_options: dict[str, Any] | None = None,
        sources_key: str = "sources",
    ) -> None:
        """Set how documents are folded.

        :param top_k: How many documents are wanted; by default all that are distinct.
        :param fold_options: Other arguments of `shinglefold.fold_chunks`.
        :param sources_key: The key in the `meta` of a document for what was folded under it.
        """
        self.top_k, self.fold_options, self.sources_key = top_k, fold_options or {}, sources_key
        shinglefold.fold_chunks([], top_k, **self.fold_options)

    def warm_up(self) -> None:
        """Load dictionaries, so that the first run takes no longer than others."""
        shinglefold.warm(self.fold_options.get("languages"))

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the distinct documents.

        :param documents: Documents, best first.
        :param top_k: How many are wanted, instead of the `top_k` of the component.
        """
        wanted = self.top_k if top_k is None else top_k
        found = shinglefold.fold_chunks(chunks_of(documents, self.sources_key), wanted, **self.fold_options)
        return {"documents": documents_of(found.chunks, self.sources_key)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Do as `run` does. Nothing is awaited, as nothing is requested."""
        return self.run(documents, top_k)
