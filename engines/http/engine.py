"""What both adapters do alike: the clients share these methods and differ in the rest."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from shinglefold.contracts import JSON, BulkResult, Capabilities, Parameters, Search, search_parts
from shinglefold.engines.http import several
from shinglefold.engines.http.answers import (
    check_given,
    check_local,
    check_name,
    check_searched,
    one_mapping,
    plain,
)
from shinglefold.engines.http.bulk import Bulk, Malformed, Retries
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.failures import MALFORMED, ClientErrors, NoDocument
from shinglefold.engines.http.parameters import in_address
from shinglefold.engines.several import Answer
from shinglefold.errors import EngineError, PermissionDenied, UnsupportedQuery


class HttpEngine(ABC):
    """An engine behind a client. Threads may share one; a forked process needs its own.

    Args:
        connection: the addresses and the credentials.
        retries: for bulk requests the server is too busy for; None takes the connection's number.
    """

    #: The name of the product in messages, and what its client raises.
    product: ClassVar[str]
    client_errors: ClassVar[ClientErrors]
    #: Two bulk requests on their way, so that the server need not wait for us.
    can: Capabilities = Capabilities(bulks_at_once=2, takes_json=True, seq_no=True, slices="any")

    def __init__(self, connection: Connection, retries: Retries | None = None) -> None:
        self.connection = connection
        self._retries = retries or Retries(connection.retries)
        self._client = self._connect(connection)
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    @property
    def who(self) -> str:
        """The server, as messages name it."""
        return f"{self.product} at {self.connection.address}"

    @abstractmethod
    def info(self) -> JSON:
        """Return the product's name and version."""

    @abstractmethod
    def tiebreaker(self) -> str | None:
        """Return the sort key that makes any order total under a point in time."""

    @abstractmethod
    def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""

    @abstractmethod
    def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""

    @abstractmethod
    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - the clients' own types
        """Return the client."""

    @abstractmethod
    def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        """Send a search with parameters through the client."""

    @abstractmethod
    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - the clients' own types
        """Send several searches through the client."""

    @abstractmethod
    def _create(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Create an index through the client."""

    @abstractmethod
    def _helper(self, actions: Sequence[dict[str, Any]]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
        """Run the client's own ``streaming_bulk``, once, returning what fails."""

    def create_index(self, index: str, mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Create an index.

        Raises:
            IndexExists: it is there already.
            UnsupportedQuery: the server knows no such name, field type or setting.
        """
        check_name(index)
        with self._asking():
            self._create(index, mappings, settings)

    def delete_index(self, index: str) -> None:
        """Delete one index with all its documents; patterns and aliases are refused.

        Raises:
            IndexMissing: there is none.
        """
        check_name(index)
        with self._asking():
            self._client.indices.delete(index=index)

    def index_exists(self, index: str) -> bool:
        """Tell whether there is such an index or alias."""
        check_name(index)
        with self._asking():
            return bool(self._client.indices.exists(index=index))

    def mappings(self, index: str) -> JSON:
        """Return the mappings of an index; of several (alias, pattern) what they have together."""
        check_given(index)
        check_local(index)
        with self._asking():
            answer = self._client.indices.get_mapping(index=index)
        return one_mapping(index, plain(answer), self.who)

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        """Run actions in order through the client's helper; what is refused is returned, not raised.

        What the server is too busy for (429, 503, no answer in time) is sent again, after waiting. An action
        for a missing index is refused with 404; no index is made up.

        Raises:
            EngineError: the server can't be reached or does not let us in, and nothing was done yet.
        """
        self._check_open()
        return Bulk(self._send, self._retries, self._takes_writes).run(actions)

    def refresh(self, index: str) -> None:
        """Make everything written so far visible to searches."""
        check_given(index)
        with self._asking():
            self._client.indices.refresh(index=index)

    def get(self, index: str, id: str) -> JSON | None:  # noqa: A002 - the engines' own word
        """Return a document as it is now, refreshed or not, or None."""
        check_name(index)
        try:
            with self._asking():
                answer = plain(self._client.get(index=index, id=id))
        except NoDocument:
            return None
        return {name: answer[name] for name in ("_index", "_id", "_source")}

    def search(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> JSON:
        """Run a search.

        Raises:
            IndexMissing: there is no such index.
            UnsupportedQuery: the server can't read the body; ``WindowTooLarge`` for a page too far down.
            PitExpired: the point in time was closed or ran out.
        """
        check_searched(index, body)
        with self._asking():
            if parameters:
                return plain(self._search_with(index, dict(body), in_address(parameters)))
            return plain(self._client.search(index=index, body=dict(body)))

    def msearch(self, searches: Sequence[Search]) -> list[Answer]:
        """Run several searches in one request; see ``Engine.msearch``."""
        refusals, sent = several.checked(searches)
        if all(several.fits(search) for search in sent):
            return several.in_place(refusals, self._several(sent) if sent else [])
        # Some parameters hold for a whole request: each search is one then.
        return several.in_place(refusals, [self._answer(search) for search in sent])

    def _answer(self, search: Search) -> Answer:
        try:
            return self.search(*search_parts(search))
        except EngineError as error:
            return error

    def _several(self, searches: Sequence[Search]) -> list[Answer]:
        try:
            with self._asking():
                return several.meant(plain(self._msearch(several.lines(searches))), self.who)
        except UnsupportedQuery as error:
            if len(searches) == 1:
                return [error]
            # A server that can't read one of them refuses all.
            return [answer for search in searches for answer in self._several([search])]
        except PermissionDenied:
            # A role that only reads indices may search, but on OpenSearch not several times at once.
            return [self._one(search) for search in searches]

    def _one(self, search: Search) -> Answer:
        try:
            return self.search(*search_parts(search))
        except EngineError as error:
            return error

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._client.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Translate what the client raises."""
        self._check_open()
        try:
            yield
        except self.client_errors.raised as error:
            raise self.client_errors.translate(error, self.who) from error

    def _send(self, actions: Sequence[dict[str, Any]]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
        try:
            yield from self._helper(actions)
        except self.client_errors.raised as error:
            translated = self.client_errors.translate(error, self.who)
            if self.client_errors.status(error) in MALFORMED:
                raise Malformed(400, str(translated)) from error
            raise translated from error

    def _takes_writes(self, index: str) -> bool:
        """Tell whether an index is there; where asking fails, writing will tell."""
        try:
            return self.index_exists(index)
        except UnsupportedQuery:
            return False
        except EngineError:
            return True

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError(f"the connection to {self.who} is closed; open another")
