"""What only an administrator does: settings, users, blocks."""

import json
import urllib.request
from typing import Any

from support.servers.security import Certificates, User
from support.servers.waiting import request_of


def ask(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    user: User | None = None,
    certificates: Certificates | None = None,
) -> dict[str, Any]:
    """Send a request past all clients and return the answer; an error's text is part of the exception."""
    request = request_of(url + path, user)
    request.method = method
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    context = certificates.context() if certificates else None
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        told: dict[str, Any] = json.load(answer)
        return told
