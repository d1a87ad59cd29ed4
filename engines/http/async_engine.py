"""The methods a search needs, awaited: the same for both products but for points in time."""

import operator
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

from shinglefold.contracts.engine import JSON, Parameters, Search, VersionedDocument, WriteResult
from shinglefold.engines.fallbacks import Answer
from shinglefold.engines.http.guarded_writes import GuardedRequests
from shinglefold.runtime.sans_io import run_async


class AsyncHttpEngine(GuardedRequests):
    """An engine behind an asynchronous client, for searches and gates; made and closed in an event loop.

    Args:
        connection: the addresses and the credentials.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""

    @abstractmethod
    async def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""

    async def mappings(self, index: str) -> JSON:
        """Return the mappings of an index; of several (alias, pattern) what they have together."""
        return await run_async(self._mapping(index), operator.call)

    async def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name, an alias or a pattern means."""
        return await run_async(self._each_mapping(pattern), operator.call)

    async def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search; see ``HttpEngine.search``."""
        return await run_async(self._found(index, body, parameters), operator.call)

    async def msearch(self, searches: Sequence[Search]) -> list[Answer]:
        """Run several searches in one request; see ``Engine.msearch``."""
        return await run_async(self._all_found(searches), operator.call)

    async def identities(self, indices: Sequence[str]) -> dict[str, str]:
        """Return what tells each index from another of its name; see ``GuardedWrites``."""
        return await run_async(self._identifying(indices), operator.call)

    async def write(
        self, actions: Sequence[Mapping[str, Any]], *, refresh: bool = False
    ) -> list[WriteResult]:
        """Run bulk actions once and return what became of each; see ``GuardedWrites``."""
        return await run_async(self._writing(actions, refresh), operator.call)

    async def read(
        self,
        index: str,
        ids: Sequence[str],
        source: Sequence[str] = (),
        routings: Sequence[str | None] = (),
    ) -> list[VersionedDocument | None]:
        """Return documents as they are now; see ``GuardedWrites``."""
        return await run_async(self._reading(index, ids, source, routings), operator.call)

    async def get(self, index: str, id: str) -> JSON | None:  # noqa: A002 - the engines' own word
        """Return a document as it is now, refreshed or not, or None."""
        (held,) = await self.read(index, [id])
        return None if held is None else {"_index": index, "_id": id, "_source": held.source}

    async def refresh(self, index: str) -> None:
        """Make everything written so far visible to searches; see ``HttpEngine.refresh``."""
        await run_async(self._refreshing(index), operator.call)

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            if self.owns_client:
                await self._client.close()
