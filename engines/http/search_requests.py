"""Searches through a client, as sans-IO generators: the blocking and the awaited engine both run them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, ClassVar, Self, TypeVar

from shinglefold.contracts.engine import JSON, Capabilities, Parameters, Search, search_parts
from shinglefold.engines.fallbacks import Answer
from shinglefold.engines.http.connection import Connection, addresses_of, check_raises_errors
from shinglefold.engines.http.errors import ClientErrors, under_pit
from shinglefold.engines.http.responses import (
    check_given,
    check_local,
    check_refreshed,
    check_searched,
    checked,
    fits,
    in_address,
    in_place,
    lines,
    meant,
    one_mapping,
    plain,
    with_objects,
)
from shinglefold.errors import EngineError, PermissionDenied, UnsupportedQuery

T = TypeVar("T")
#: Yields requests, which ``operator.call`` sends; is sent what the client returns, or raises; returns T.
Steps = Generator[Callable[[], Any], Any, T]


class HttpSearches(ABC):
    """A client, what its errors mean, and the steps of searches through it.

    Args:
        connection: the addresses and the credentials; of a client that is handed in the addresses alone.
        client: one to use as it is; closing the engine leaves it open. None connects.
    """

    #: The name of the product in messages, and what its client raises.
    product: ClassVar[str]
    client_errors: ClassVar[ClientErrors]
    can: Capabilities = Capabilities(takes_json=True, seq_no=True, slices="any", samples=True)

    def __init__(self, connection: Connection, *, client: Any = None) -> None:  # noqa: ANN401
        self.connection = connection
        self.owns_client = client is None
        self._client = self._connect(connection) if client is None else client
        self._closed = False

    @classmethod
    def of_client(cls, client: Any) -> Self:  # noqa: ANN401 - the clients' own types
        """Return an engine that sends its requests by a client as it is: its credentials, pool and hooks.

        Raises:
            ConfigError: the client hides errors (``options(ignore_status=…)``).
        """
        check_raises_errors(client)
        return cls(Connection(addresses_of(client), product=cls.product.lower()), client=client)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connection!r})"

    @property
    def who(self) -> str:
        """The server, as messages name it."""
        return f"{self.product} at {self.connection.address}"

    @abstractmethod
    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - the clients' own types
        """Return the client."""

    @abstractmethod
    def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        """Send a search with parameters through the client."""

    @abstractmethod
    def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - the clients' own types
        """Send several searches through the client."""

    def _mapping(self, index: str) -> Steps[JSON]:
        """Return the mappings of an index; of several (alias, pattern) what they have together."""
        return one_mapping(index, (yield from self._told_mappings(index)), self.who)

    def _each_mapping(self, pattern: str) -> Steps[dict[str, JSON]]:
        """Return the mappings of each index that a name, an alias or a pattern means."""
        told = yield from self._told_mappings(pattern)
        return {index: dict(entry["mappings"]) for index, entry in told.items()}

    def _told_mappings(self, pattern: str) -> Steps[JSON]:
        check_given(pattern)
        check_local(pattern)
        with self._asking():
            answer = plain((yield lambda: self._client.indices.get_mapping(index=pattern)))
        return {
            index: {"mappings": with_objects(entry.get("mappings") or {})} for index, entry in answer.items()
        }

    def _found(
        self, index: str | None, body: Mapping[str, Any], parameters: Parameters | None = None
    ) -> Steps[JSON]:
        """Return what one search finds."""
        check_searched(index, body)
        with self._asking(under_pit if index is None else None):
            if parameters:
                return plain((yield lambda: self._search_with(index, dict(body), in_address(parameters))))
            return plain((yield lambda: self._client.search(index=index, body=dict(body))))

    def _all_found(self, searches: Sequence[Search]) -> Steps[list[Answer]]:
        """Return what each of several searches finds, in one request where that can be."""
        refusals, sent = checked(searches)
        if not sent:
            return in_place(refusals, [])
        # Some parameters hold for a whole request: each search is one then.
        together = all(fits(search) for search in sent)
        answers = yield from (self._in_one_request(sent) if together else self._one_by_one(sent))
        return in_place(refusals, answers)

    def _in_one_request(self, searches: Sequence[Search]) -> Steps[list[Answer]]:
        try:
            with self._asking():
                answer = yield lambda: self._msearch(lines(searches))
                return meant(searches, plain(answer), self.who)
        except UnsupportedQuery as error:
            if len(searches) == 1:
                return [error]
        except PermissionDenied:
            # A role that only reads indices may search, but on OpenSearch not several times at once.
            return (yield from self._one_by_one(searches))
        # A server that can't read one of them refuses all.
        answers: list[Answer] = []
        for search in searches:
            answers += yield from self._in_one_request([search])
        return answers

    def _one_by_one(self, searches: Sequence[Search]) -> Steps[list[Answer]]:
        answers: list[Answer] = []
        for search in searches:
            try:
                answers.append((yield from self._found(*search_parts(search))))
            except EngineError as error:
                answers.append(error)
        return answers

    def _refreshing(self, index: str) -> Steps[None]:
        """Make everything written so far visible to searches, whichever copy answers them."""
        check_given(index)
        begun = monotonic()
        with self._asking():
            answer = plain((yield lambda: self._client.indices.refresh(index=index)))
        check_refreshed(answer, monotonic() - begun, self.who)

    @contextmanager
    def _asking(self, meant: Callable[[EngineError], EngineError] | None = None) -> Iterator[None]:
        """Translate what the client raises.

        Args:
            meant: says of an error what else it means here.
        """
        self._check_open()
        try:
            yield
        except self.client_errors.raised as error:
            told = self.client_errors.translate(error, self.who)
            raise (told if meant is None else meant(told)) from error

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError(f"the connection to {self.who} is closed; open another")
