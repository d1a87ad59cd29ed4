"""What the tests know of a server, wherever it comes from."""

from collections.abc import Iterator
from contextlib import contextmanager
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


def add_alias(server: Server, alias: str, *indices: str, **options: Any) -> None:
    """Give indices one more name; options such as ``filter`` hold for each of them."""
    adds = [{"add": {"index": index, "alias": alias, **options}} for index in indices]
    server.ask("POST", "/_aliases", {"actions": adds})


@contextmanager
def blocked(server: Server, index: str, kind: str) -> Iterator[None]:
    """Set a block of an index, such as ``write``, and lift it in the end."""
    server.ask("PUT", f"/{index}/_settings", {f"index.blocks.{kind}": True})
    try:
        yield
    finally:
        server.ask("PUT", f"/{index}/_settings", {f"index.blocks.{kind}": None})
