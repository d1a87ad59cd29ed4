"""Going no faster than told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, sleep

from shinglefold.checks import check_number

_TICK = 0.2


@dataclass(slots=True)
class Throttle:
    """At most ``rate`` documents a second on average, 0 for no limit; a slow stretch is not made up for."""

    rate: float = 0.0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep
    _due: float = field(init=False)

    def __post_init__(self) -> None:
        check_number("requests_per_second (0 for no limit)", self.rate)
        self._due = self.clock()

    def wait(self, documents: int) -> None:
        """Wait until so many more documents were due."""
        if not self.rate:
            return
        self._due = max(self._due + documents / self.rate, self.clock())
        while (left := self._due - self.clock()) > 0:
            # In small steps, so that Ctrl-C is heard.
            self.sleep(min(_TICK, left))
