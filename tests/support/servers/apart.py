"""The servers that stand apart, one at a time: what several tests are about is started once for them."""

import time
from collections.abc import Callable
from typing import Any

from support.servers.choose import excused, need


class Apart:
    """Keeps the server that was asked for last, and ends it when another is asked for."""

    def __init__(self, report: list[str]) -> None:
        self._report = report
        self._name = ""
        self._server: Any = None

    def running(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the server of this name, made where it does not run yet; skip where it can't be had."""
        need(name)
        if name != self._name:
            self.stop()
            begin = time.monotonic()
            with excused():
                self._server = make()
            self._name = name
            self._report.append(f"{name}: {self._server.how}, up in {time.monotonic() - begin:.0f} s")
        return self._server

    def stop(self) -> None:
        """End what runs; a second call does nothing."""
        if self._server is not None:
            self._server.stop()
        self._name, self._server = "", None
