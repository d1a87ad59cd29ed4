"""Run an application: uvicorn, signals, and logs as lines of JSON."""

import asyncio
import gc
import json
import logging
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from shinglefold.errors import ConfigError, MissingExtra, reason_of
from shinglefold.gateway.access import Listener
from shinglefold.ingest.writing.worker_pool import keep_loaded

try:
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    if sys.platform != "win32":
        import uvloop as _loop  # noqa: F401 - only to see whether it is there
except ModuleNotFoundError as _error:
    raise MissingExtra("gateway", "the gateway") from _error

#: Seconds that an idle connection stays open; engines never close one, so clients expect none to.
_IDLE_SECONDS = 300
_LOGGERS = ("shinglefold", "uvicorn.error")
#: Log lines of uvicorn that repeat ours, or address its own users.
_SILENT = ("ASGI callable returned without completing response.", "Unsupported upgrade request.")


def serve(
    app: Callable[..., Awaitable[None]],
    listener: Listener,
    started: Callable[[], None] = lambda: None,
    *,
    certificate: str | None = None,
    key: str | None = None,
    stop_seconds: int = 30,
) -> None:
    """Serve requests until SIGTERM or SIGINT; then finish running requests, and return.

    Args:
        app: an ASGI application.
        started: is called when connections are accepted.
        certificate, key: files in PEM; without them plain HTTP is spoken.
        stop_seconds: how long running requests may take after SIGTERM.

    Raises:
        ConfigError: the certificate can't be read.
    """
    config = uvicorn.Config(
        app,
        loop="auto",
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # The engine's own headers are sent on.
        server_header=False,
        date_header=False,
        # Nothing asks who is behind a proxy, and this would be read for each request.
        proxy_headers=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=stop_seconds,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:
        raise ConfigError(
            f"--certificate {certificate}: {reason_of(error)}; give a certificate and its key as PEM"
        ) from error
    server = uvicorn.Server(config)
    # Requests would wait for the collector, which finds hardly anything.
    gc.collect()
    keep_loaded()
    with _json_logs(), _stopped_by_signals(server):
        started()
        server.run(sockets=[listener.socket])


class _Joined:
    """A transport that sends the head of an answer together with the body, if both are there."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the transport
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes once the callbacks that are due now have added theirs."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(data)

    def close(self) -> None:
        """Send what waits, and close the connection."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._transport.writelines(waiting)


class _Protocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Joined(transport))  # type: ignore[arg-type]


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Stop a server on signals, also before it handles them itself and when it raises them again."""

    def stop(_number: int, _frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _json_logs() -> Iterator[None]:
    """Write logs to standard error, a JSON object a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    handler.addFilter(lambda record: record.getMessage() not in _SILENT)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(one.level, one.propagate) for one in loggers]
    for one in loggers:
        one.addHandler(handler)
        one.setLevel(logging.INFO if one.name == "shinglefold" else logging.WARNING)
        one.propagate = False
    try:
        yield
    finally:
        for one, (level, propagate) in zip(loggers, before, strict=True):
            one.removeHandler(handler)
            one.setLevel(level)
            one.propagate = propagate


class _JsonLines(logging.Formatter):
    """A log record as one line of JSON; for an error the lines of code, but no values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage().strip(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])[-5:]
            line["places"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False)
