"""What only an administrator asks a server for, and waits for."""

import base64
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.error import HTTPError

from support.servers.security import Door

_NO_DOOR = Door()
_LONGEST = 1_000
_PATIENCE = 120.0
#: Seconds, of which no point in time closes by itself.
_UNTIL_CLOSED = 10.0


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


def send(
    url: str, method: str = "GET", body: Any = None, *, context: SSLContext | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Send a request; return status, headers and body of the answer, also of a refusal."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if data is not None:
        sent.setdefault("content-type", "application/json")
    given = urllib.request.Request(url, data=data, headers=sent, method=method)
    try:
        found = urllib.request.urlopen(given, timeout=120, context=context)
    except HTTPError as error:
        found = error
    with found as answer:
        told = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, told, answer.read()


def ingest_processors(url: str) -> set[str]:
    """Return the processors for pipelines that a server was built with."""
    nodes = ask(url, "GET", "/_nodes/ingest")["nodes"].values()
    return {one["type"] for node in nodes for one in node["ingest"]["processors"]}


def answers(url: str, door: Door = _NO_DOOR) -> bool:
    """Tell whether a server takes requests and all its shards are there."""
    try:
        ask(url, "GET", "/_cluster/health?wait_for_status=yellow&timeout=5s", door=door)
    except (OSError, ValueError):
        # A refused connection, or an answer that says "not yet" (HTTPError is an OSError) or is no JSON.
        return False
    return True


def until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes] | None = None, output: Path | None = None
) -> None:
    """Wait until something is ready; fail with the server's last words when it ended or took too long."""
    end = time.monotonic() + _PATIENCE
    while not ready():
        ended = process is not None and process.poll() is not None
        if ended or time.monotonic() > end:
            last = output.read_text(errors="replace")[-3000:] if output else ""
            raise RuntimeError(f"the server {'ended' if ended else 'does not answer'}. It said:\n{last}")
        time.sleep(0.2)


def open_contexts(url: str) -> int:
    """Return how many contexts a server holds for searches that go on."""
    nodes = ask(url, "GET", "/_nodes/stats/indices/search")["nodes"]
    return sum(node["indices"]["search"]["open_contexts"] for node in nodes.values())


def left_open(url: str, before: int) -> int:
    """Return how many more there are than before, once a server had time to close them.

    A server closes those of shards that a page shows nothing of after it has answered.
    """
    end = time.monotonic() + _UNTIL_CLOSED
    while (more := open_contexts(url) - before) > 0 and time.monotonic() < end:
        time.sleep(0.1)
    return more
