"""The embedded engine for ``AsyncFoldedSearch``: searches run in threads and do not block the event loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from shinglefold.contracts.engine import JSON, Capabilities, Parameters, Search, search_parts
from shinglefold.engines.embedded.engine import EmbeddedEngine
from shinglefold.errors import EngineError

Result = TypeVar("Result")
#: More threads would only wait for each other, because much of a search holds Python's lock.
_THREADS = 4


class AsyncEmbeddedEngine:
    """A folder of indices whose searches are awaited.

    A cancelled call stops waiting, but its thread finishes the search. ``blocking`` is the engine that does
    the work. Use it for writing, in any thread.

    Args:
        path, canonicalizer: see ``EmbeddedEngine``.
        threads: the number of searches that run at the same time.
    """

    can: Capabilities = EmbeddedEngine.can

    def __init__(
        self,
        path: str | Path,
        canonicalizer: Any,  # noqa: ANN401 - a Canonicalizer or a callable
        *,
        threads: int = _THREADS,
    ) -> None:
        self.blocking = EmbeddedEngine(path, canonicalizer)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="shinglefold")
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def mappings(self, index: str) -> JSON:
        """Return the mappings of an index."""
        return await self._run(partial(self.blocking.mappings, index))

    async def all_mappings(self, pattern: str) -> dict[str, JSON]:
        """Return the mappings of each index that a name or pattern matches."""
        return await self._run(partial(self.blocking.all_mappings, pattern))

    async def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search; see ``EmbeddedEngine.search``."""
        return await self._run(partial(self.blocking.search, index, body, parameters))

    async def msearch(self, searches: Sequence[Search]) -> list[JSON | EngineError]:
        """Run several searches at the same time; see ``Engine.msearch``."""
        return list(await asyncio.gather(*map(self._answer, searches)))

    async def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        return await self._run(partial(self.blocking.open_pit, index, keep_alive, parameters))

    async def close_pit(self, pit: str) -> None:
        """Close a point in time; a second call does nothing."""
        await self._run(partial(self.blocking.close_pit, pit))

    async def close(self) -> None:
        """Wait for running searches and release the folder; a second call does nothing."""
        if not self._closed:
            await self._run(self.blocking.close)
            self._closed = True
            self._threads.shutdown(wait=False)

    async def _answer(self, search: Search) -> JSON | EngineError:
        try:
            return await self.search(*search_parts(search))
        except EngineError as error:
            return error

    async def _run(self, call: Callable[[], Result]) -> Result:
        if self._closed:
            raise EngineError("the engine is closed; open another on the same folder")
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
