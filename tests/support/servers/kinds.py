"""The servers the tests run on, read from ``matrix.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

_FILE = Path(__file__).with_name("matrix.toml")


class Unavailable(Exception):
    """A server can't be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One server of the matrix.

    ``java`` holds the oldest and newest major version it starts with; ``client`` is the requirement of the
    Python client of its generation, empty where the installed one will do. ``plugins`` are unpacked into it;
    the first gets ``library``, where it would take that from a module that the distribution lacks.
    One that stands ``apart`` has tests of its own and is not what every server test runs on. A ``minimal``
    one has no module but its HTTP server, as distributions of OpenSearch 2 for tests have.
    """

    name: str
    product: str
    version: str
    artifact: str
    image: str
    java: tuple[int, int]
    client: str = ""
    plugins: tuple[str, ...] = ()
    library: str = ""
    apart: bool = False
    minimal: bool = False

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def folder(self) -> str:
        """The folder in the distribution's zip."""
        return f"{self.product}-{self.version}"

    @property
    def home(self) -> str:
        """The folder it is kept in: another with plugins than without."""
        folder = f"{self.folder}-minimal" if self.minimal else self.folder
        return "-with-".join([folder, *(plugin.split(":")[-3:][0] for plugin in self.plugins)])


@cache
def all_kinds() -> Mapping[str, Kind]:
    """Return the matrix by name; read once, as it is asked for at every test that is collected."""
    table = tomllib.loads(_FILE.read_text("utf-8"))
    return MappingProxyType({name: Kind(name, **_tuples(row)) for name, row in table.items()})


def usual_kinds() -> dict[str, Kind]:
    """Return those of the matrix that every server test runs on."""
    return {name: kind for name, kind in all_kinds().items() if not kind.apart}


def kind(name: str) -> Kind:
    known = all_kinds()
    if name not in known:
        raise Unavailable(f"no server {name!r} in the matrix; there are: {', '.join(known)}")
    return known[name]


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
