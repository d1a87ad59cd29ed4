"""Start and stop a server by hand: ``make engine-up ENGINE=opensearch-3``, ``make engine-down``.

``client NAME`` prints the folder of the client that a server needs where another one is installed.
"""

import sys
from pathlib import Path

from support.servers.admin import answers
from support.servers.choose import client_fits
from support.servers.generations import client_folder
from support.servers.kinds import Unavailable, all_kinds, kind
from support.servers.local import LocalServer
from support.servers.places import cache

_PORT = 9200


def main(arguments: list[str]) -> int:
    """Run ``up NAME``, ``down``, or ``client NAME``."""
    match arguments:
        case ["up", name]:
            return up(name)
        case ["down"]:
            return down()
        case ["client", name]:
            one = kind(name)
            print("" if client_fits(one) else client_folder(one))
            return 0
    print(f"usage: up NAME | down | client NAME; NAME is one of {', '.join(all_kinds())}", file=sys.stderr)
    return 2


def up(name: str) -> int:
    """Start a server that stays."""
    if (note := _note()).exists():
        print(f"{note.read_text().split()[1]} runs already; stop it with: make engine-down")
        return 1
    try:
        server = LocalServer(kind(name), port=_port(), detached=True)
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return 1
    note.write_text(f"{server.folder} {server.url}\n")
    print(f"{name} ({server.kind.version}) answers at {server.url}; stop it with: make engine-down")
    return 0


def down() -> int:
    """Stop the server that stays: without its file ``alive`` its keeper ends it and removes its folder."""
    if not (note := _note()).exists():
        print("no server runs that make engine-up started")
        return 0
    folder, url = note.read_text().split()
    Path(folder, "alive").unlink(missing_ok=True)
    note.unlink()
    print(f"{url} stops")
    return 0


def _note() -> Path:
    note = cache() / "up"
    if note.exists() and not answers(note.read_text().split()[1]):
        note.unlink()
    return note


def _port() -> int:
    """Return the usual port, or 0 for any where it is taken."""
    return 0 if answers(f"http://127.0.0.1:{_PORT}") else _PORT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
