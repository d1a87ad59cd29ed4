"""What only an administrator does: settings, users, blocks."""

import json
import urllib.request
from typing import Any


def ask(url: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """Send a request past all clients and return the answer; an error's text is part of the exception."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        told: dict[str, Any] = json.load(answer)
        return told
