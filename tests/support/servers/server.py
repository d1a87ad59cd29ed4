"""What the tests know of a server, wherever it comes from."""

from dataclasses import dataclass
from typing import Any, Protocol

from support.servers.admin import ask
from support.servers.kinds import Kind


class Server(Protocol):
    """A running server of the matrix, or the one the environment names (then ``kind`` is None)."""

    @property
    def kind(self) -> Kind | None:
        """Which of the matrix it is."""
        ...

    @property
    def how(self) -> str:
        """Where it comes from."""
        ...

    @property
    def url(self) -> str: ...

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask it as its administrator, past all clients."""
        ...

    def stop(self) -> None:
        """Give it back; a second call does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """The server at ``SHINGLEFOLD_TEST_URL``."""

    url: str
    kind: Kind | None = None
    how: str = "SHINGLEFOLD_TEST_URL"

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask it past all clients."""
        return ask(self.url, method, path, body)

    def stop(self) -> None:
        """Leave it to whoever started it."""
