"""A gateway as a process of its own, as ``shinglefold gateway`` starts it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.servers.local import free_port

_COMMAND = Path(sys.executable).with_name("shinglefold")
#: Seconds to end in after a polite request.
_PATIENCE = 30


class RunningGateway:
    """A gateway in front of a server; it can be killed and started again at the same address."""

    def __init__(self, upstream: str, *options: str) -> None:
        self._port = free_port()
        self._command = [
            *(str(_COMMAND), "gateway", "--upstream", upstream),
            *("--listen", f"127.0.0.1:{self._port}", "--workers", "1", *options),
        ]
        self.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def start(self) -> None:
        """Start it, or start it again after ``kill``; returns when it listens."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if self.url not in line:
            self.kill()
            raise AssertionError(f"the gateway did not start: {line!r}, {self._process.returncode}")

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """End it politely; it must end well."""
        self._process.terminate()
        assert self._end() == 0

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def _end(self) -> int:
        assert self._process.stdout is not None
        try:
            return self._process.wait(_PATIENCE)
        finally:
            self._process.kill()
            self._process.stdout.close()


@contextmanager
def gateway_before(upstream: str, *options: str) -> Iterator[RunningGateway]:
    """Run a gateway in front of a server until the block ends."""
    gateway = RunningGateway(upstream, *options)
    try:
        yield gateway
    finally:
        gateway.stop()
