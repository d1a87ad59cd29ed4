"""Wait until a server answers."""

import base64
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from support.servers.security import Certificates, User

_PATIENCE = 120.0


def answers(url: str, user: User | None = None, certificates: Certificates | None = None) -> bool:
    """Tell whether a server takes requests and all its shards are there."""
    request = request_of(f"{url}/_cluster/health?wait_for_status=yellow&timeout=5s", user)
    context = certificates.context() if certificates else None
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        # A refused connection, or an answer that says "not yet" (HTTPError is an OSError).
        return False


def request_of(url: str, user: User | None = None) -> urllib.request.Request:
    """Return a request that says who asks."""
    request = urllib.request.Request(url)
    if user:
        proof = base64.b64encode(f"{user.name}:{user.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {proof}")
    return request


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
