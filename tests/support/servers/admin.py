"""What only an administrator does: settings, users, blocks."""

import base64
import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

from support.servers.security import Door

_NO_DOOR = Door()
_LONGEST = 1_000


def ask(url: str, method: str, path: str, body: Any = None, door: Door = _NO_DOOR) -> dict[str, Any]:
    """Send a request past all clients and return the answer; an error's text is part of the exception."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    if door.user:
        proof = base64.b64encode(f"{door.user.name}:{door.user.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {proof}")
    try:
        with urllib.request.urlopen(request, timeout=30, context=door.context) as answer:
            told: dict[str, Any] = json.load(answer)
    except HTTPError as error:
        error.msg = f"{error.msg}: {error.read().decode(errors='replace')[:_LONGEST]}"
        raise
    return told


def ingest_processors(url: str) -> set[str]:
    """Return the processors for pipelines that a server was built with."""
    nodes = ask(url, "GET", "/_nodes/ingest")["nodes"].values()
    return {one["type"] for node in nodes for one in node["ingest"]["processors"]}
