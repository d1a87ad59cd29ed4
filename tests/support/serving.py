"""Small servers of the standard library in threads, for tests: they answer, and end, without delay."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

#: Seconds between looks whether the end has come; half a second by default, and hundreds of tests would wait.
_TICK = 0.02


class Quiet(BaseHTTPRequestHandler):
    """A handler that logs nothing, and whose answers are sent as they are written.

    Headers and body are two writes. By default the second is held back until the first is acknowledged, and
    who has asked acknowledges 40 ms later.
    """

    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def serving(server: HTTPServer) -> Iterator[str]:
    """Run a server until the block ends; yields its address."""
    thread = threading.Thread(target=server.serve_forever, args=(_TICK,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
