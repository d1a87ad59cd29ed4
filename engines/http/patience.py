"""What a server is too busy for is asked again, after waiting."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from shinglefold.engines.http.failures import ClientErrors, NotRefreshed
from shinglefold.errors import EngineUnavailable

P = ParamSpec("P")
T = TypeVar("T")
#: Statuses that mean: nothing was done, ask later. After any other no one knows what was done.
_LATER = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to try again: after about ``first`` seconds, doubled each time, half of it by chance.

    Without the chance all indexers that a busy server sent away would be back at the same moment.
    """

    number: int = 3
    first: float = 0.25
    most: float = 10.0
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int) -> None:
        """Wait before retry ``attempt``, from 0."""
        self.sleep(min(self.most, self.first * 2.0**attempt) * (0.5 + 0.5 * self.chance()))


class Asking(Protocol):
    """Who asks a server: how often it does again, and what its client raises."""

    client_errors: ClassVar[ClientErrors]
    retries: Retries


S = TypeVar("S", bound=Asking)


def patient(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Ask again, after waiting, while the server is too busy; for requests that may be made twice.

    Searches are not asked again: whoever searches waits for the answer, and knows how long it is worth it.
    """

    @wraps(method)
    def asked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in range(self.retries.number):
            try:
                return method(self, *args, **kwargs)
            except NotRefreshed:
                pass
            except EngineUnavailable as error:
                cause = error.__cause__
                if not isinstance(cause, Exception) or self.client_errors.status(cause) not in _LATER:
                    raise
            self.retries.wait(attempt)
        return method(self, *args, **kwargs)

    return asked
