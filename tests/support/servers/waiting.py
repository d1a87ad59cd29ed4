"""Wait until a server answers."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from support.servers.admin import ask
from support.servers.security import Door

_PATIENCE = 120.0
_NO_DOOR = Door()


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
