"""The methods a search needs, awaited: the same for both products but for points in time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from shinglefold.contracts import JSON, Capabilities, Parameters, Search, search_parts
from shinglefold.engines.http import several
from shinglefold.engines.http.answers import check_given, check_searched, one_mapping, plain
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.failures import ClientErrors
from shinglefold.engines.http.parameters import in_address
from shinglefold.engines.several import Answer
from shinglefold.errors import EngineError, PermissionDenied, UnsupportedQuery


class AsyncHttpEngine(ABC):
    """An engine behind an asynchronous client, for ``AsyncFoldedSearch``; made and closed in an event loop.

    Args:
        connection: the addresses and the credentials.
    """

    #: The name of the product in messages, and what its client raises.
    product: ClassVar[str]
    client_errors: ClassVar[ClientErrors]
    can: Capabilities = Capabilities(takes_json=True, seq_no=True, slices="any")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._client = self._connect(connection)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    @property
    def who(self) -> str:
        """The server, as messages name it."""
        return f"{self.product} at {self.connection.address}"

    @abstractmethod
    async def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""

    @abstractmethod
    async def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""

    @abstractmethod
    async def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        """Send a search with parameters through the client."""

    @abstractmethod
    async def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - the clients' own types
        """Send several searches through the client."""

    @abstractmethod
    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - the clients' own types
        """Return the client."""

    async def mappings(self, index: str) -> JSON:
        """Return the mappings of an index; of several (alias, pattern) what they have together."""
        check_given(index)
        with self._asking():
            answer = await self._client.indices.get_mapping(index=index)
        return one_mapping(index, plain(answer), self.who)

    async def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search; see ``HttpEngine.search``."""
        check_searched(index, body)
        with self._asking():
            if parameters:
                return plain(await self._search_with(index, dict(body), in_address(parameters)))
            return plain(await self._client.search(index=index, body=dict(body)))

    async def msearch(self, searches: Sequence[Search]) -> list[Answer]:
        """Run several searches in one request; see ``Engine.msearch``."""
        refusals, sent = several.checked(searches)
        if all(several.fits(search) for search in sent):
            return several.in_place(refusals, await self._several(sent) if sent else [])
        # Some parameters hold for a whole request: each search is one then.
        return several.in_place(refusals, [await self._answer(search) for search in sent])

    async def _answer(self, search: Search) -> Answer:
        try:
            return await self.search(*search_parts(search))
        except EngineError as error:
            return error

    async def _several(self, searches: Sequence[Search]) -> list[Answer]:
        try:
            with self._asking():
                return several.meant(plain(await self._msearch(several.lines(searches))), self.who)
        except UnsupportedQuery as error:
            if len(searches) == 1:
                return [error]
            # A server that can't read one of them refuses all.
            return [answer for search in searches for answer in await self._several([search])]
        except PermissionDenied:
            # A role that only reads indices may search, but on OpenSearch not several times at once.
            return [await self._one(search) for search in searches]

    async def _one(self, search: Search) -> Answer:
        try:
            return await self.search(*search_parts(search))
        except EngineError as error:
            return error

    async def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            await self._client.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        if self._closed:
            raise EngineError(f"the connection to {self.who} is closed; open another")
        try:
            yield
        except self.client_errors.raised as error:
            raise self.client_errors.translate(error, self.who) from error
