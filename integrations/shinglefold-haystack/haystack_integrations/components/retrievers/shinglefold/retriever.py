"""A retriever that refills what folding removed."""

from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.core.serialization import component_to_dict
from haystack_integrations.components.rankers.shinglefold.ranker import chunks_of, documents_of

import shinglefold


@component
class ShinglefoldRetriever:
    """Return the first `top_k` distinct documents of another retriever.

    Near-copies become `sources` in the `meta` of the best of them, and more documents are requested until
    there are `top_k`, or no more. Order, scores and documents stay as they are. It takes the inputs of the
    retriever.
    """

    def __init__(
        self,
        retriever: Any,  # noqa: ANN401 - components have no type in common
        top_k: int = 10,
        fold_options: dict[str, Any] | None = None,
        sources_key: str = "sources",
    ) -> None:
        """Wrap a retriever.

        :param retriever: A component that takes `top_k` and returns `documents`.
        :param top_k: How many distinct documents are wanted.
        :param fold_options: Other arguments of `shinglefold.fold_chunks`.
        :param sources_key: The key in the `meta` of a document for what was folded under it.
        """
        self.retriever, self.top_k = retriever, top_k
        self.fold_options, self.sources_key = fold_options or {}, sources_key
        shinglefold.fold_chunks([], top_k, lambda _: [], **self.fold_options)
        if not hasattr(retriever, "__haystack_input__"):
            raise TypeError(f"{type(retriever).__name__} is no component. Give a retriever of it")
        sockets = retriever.__haystack_input__._sockets_dict  # noqa: SLF001
        if "top_k" not in sockets:
            raise ValueError(
                f"{type(retriever).__name__} takes no top_k, so it returns no more documents. "
                "Put ShinglefoldRanker behind it"
            )
        for name, socket in sockets.items():
            if name != "top_k":
                component.set_input_type(self, name, socket.type, socket.default_value)

    def warm_up(self) -> None:
        """Load dictionaries, and whatever the retriever needs."""
        shinglefold.warm(self.fold_options.get("languages"))
        if hasattr(self.retriever, "warm_up"):
            self.retriever.warm_up()

    async def warm_up_async(self) -> None:
        """Do as `warm_up` does, by the `warm_up_async` of the retriever if it has one."""
        if not hasattr(self.retriever, "warm_up_async"):
            self.warm_up()
            return
        shinglefold.warm(self.fold_options.get("languages"))
        await self.retriever.warm_up_async()

    def close(self) -> None:
        """Close the retriever."""
        if hasattr(self.retriever, "close"):
            self.retriever.close()

    async def close_async(self) -> None:
        """Close the retriever, by its `close_async` if it has one."""
        if hasattr(self.retriever, "close_async"):
            await self.retriever.close_async()
        else:
            self.close()

    def to_dict(self) -> dict[str, Any]:
        """Return the component and its retriever as a dictionary."""
        return default_to_dict(
            self,
            retriever=component_to_dict(self.retriever, "retriever"),
            top_k=self.top_k,
            fold_options=self.fold_options,
            sources_key=self.sources_key,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ShinglefoldRetriever":
        """Return the component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, *, top_k: int | None = None, **inputs: Any) -> dict[str, list[Document]]:  # noqa: ANN401
        """Return the first distinct documents.

        :param top_k: How many are wanted, instead of the `top_k` of the component.
        :param inputs: The inputs of the retriever.
        """

        def fetch(count: int) -> list[dict[str, Any]]:
            return chunks_of(self.retriever.run(**inputs, top_k=count)["documents"], self.sources_key)

        wanted = self.top_k if top_k is None else top_k
        found = shinglefold.fold_chunks([], wanted, fetch, **self.fold_options)
        return {"documents": documents_of(found.chunks, self.sources_key)}

    @component.output_types(documents=list[Document])
    async def run_async(self, *, top_k: int | None = None, **inputs: Any) -> dict[str, list[Document]]:  # noqa: ANN401
        """Do as `run` does, by the `run_async` of the retriever."""
        if not hasattr(self.retriever, "run_async"):
            raise TypeError(
                f"{type(self.retriever).__name__} has no run_async. Put ShinglefoldRanker behind it, "
                "or run the pipeline by run"
            )

        async def fetch(count: int) -> list[dict[str, Any]]:
            found = await self.retriever.run_async(**inputs, top_k=count)
            return chunks_of(found["documents"], self.sources_key)

        wanted = self.top_k if top_k is None else top_k
        found = await shinglefold.fold_chunks_async([], wanted, fetch, **self.fold_options)
        return {"documents": documents_of(found.chunks, self.sources_key)}
