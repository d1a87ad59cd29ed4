"""The clients of both products, their errors and helpers, and asynchronous ones called as blocking ones."""

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any


def a_client(product: str, url: str, *, awaited: bool, **options: Any) -> Any:
    if product == "opensearch":
        from opensearchpy import AsyncOpenSearch, OpenSearch

        # The first bulk loads dictionaries, on a machine that does much else.
        return (AsyncOpenSearch if awaited else OpenSearch)(url, timeout=60, **options)
    from elasticsearch import AsyncElasticsearch, Elasticsearch

    return (AsyncElasticsearch if awaited else Elasticsearch)(url, request_timeout=60, **options)


def errors(product: str) -> SimpleNamespace:
    if product == "opensearch":
        import opensearchpy as package

        return SimpleNamespace(
            missing=package.NotFoundError, broken=package.RequestError, any=package.TransportError
        )
    import elasticsearch as package

    return SimpleNamespace(
        missing=package.NotFoundError, broken=package.BadRequestError, any=package.ApiError
    )


def helpers(product: str) -> Any:
    if product == "opensearch":
        from opensearchpy import helpers
    else:
        from elasticsearch import helpers
    return helpers


def lines(product: str, name: str, given: list[Any]) -> dict[str, list[Any]]:
    """Return the argument by which a client takes lines: ``operations``, ``searches`` and the like."""
    return {"body" if product == "opensearch" else name: given}


def plain(answer: Any) -> Any:
    """An answer as JSON, without what differs from one request to the next."""
    body = getattr(answer, "body", answer)
    if isinstance(body, dict):
        return {
            name: plain(value) for name, value in body.items() if name not in ("took", "_seq_no", "_version")
        }
    return [plain(one) for one in body] if isinstance(body, list) else body


class Blocking:
    """An asynchronous client, called as a blocking one, so that one table serves both."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self._loop = client, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found):
            return Blocking(found, self._loop)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = found(*args, **kwargs)
            return self._loop.run_until_complete(made) if inspect.isawaitable(made) else made

        return call
