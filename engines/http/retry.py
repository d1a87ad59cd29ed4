"""Retries of requests that a busy server turned away."""

from collections.abc import Callable
from functools import wraps
from typing import ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from shinglefold.engines.http.errors import ClientErrors, NotRefreshed
from shinglefold.errors import EngineUnavailable
from shinglefold.runtime.backoff import Backoff, retry_unavailable

P = ParamSpec("P")
T = TypeVar("T")
#: Delays before the retries of requests and bulks. Half of each is random.
BACKOFF = Backoff(3, first=0.25, most=10.0, jitter=0.5)
#: Statuses of a request that the server did not run. After any other nobody knows whether it ran.
_LATER = frozenset({429, 503})


class Retrying(Protocol):
    """An engine with a backoff, and with a client whose errors have statuses."""

    client_errors: ClassVar[ClientErrors]
    backoff: Backoff


S = TypeVar("S", bound=Retrying)


def retry_when_busy(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Retry a method, after waiting, while the server is too busy. Only for requests that may run twice.

    Searches are not retried: their callers wait for the answer, and know how long it is worth waiting.
    """

    @wraps(method)
    def retried(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        def is_final(error: EngineUnavailable) -> bool:
            cause = error.__cause__
            ran = not isinstance(cause, Exception) or self.client_errors.status(cause) not in _LATER
            return ran and not isinstance(error, NotRefreshed)

        return retry_unavailable(lambda: method(self, *args, **kwargs), self.backoff, until=is_final)

    return retried
