"""What a server is too busy for is asked again, after waiting; nothing else is."""

import pytest

from shinglefold.engines.http.engine import retry_when_busy
from shinglefold.engines.http.errors import ClientErrors, NotRefreshed
from shinglefold.errors import EngineUnavailable, IndexMissing
from shinglefold.runtime.backoff import Backoff


class Answered(Exception):
    """What a client raises for a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Asking:
    """Asks a server whose answers are given: errors, one after the other, and then what was asked for."""

    client_errors = ClientErrors(
        (Answered,), lambda error, who: EngineUnavailable(who), lambda error: getattr(error, "status", 0)
    )

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.waits: list[float] = []
        self.backoff = Backoff(3, first=0.25, wait=lambda seconds, _: not self.waits.append(seconds))

    @retry_when_busy
    def ask(self, what: str) -> str:
        """Return what was asked for."""
        if self.errors:
            raise self.errors.pop(0)
        return what


def told(status: int) -> EngineUnavailable:
    """Return an error as it is made of a server's answer."""
    error = EngineUnavailable("not now")
    error.__cause__ = Answered(status)
    return error


@pytest.mark.parametrize("error", [told(429), told(503), NotRefreshed("some copies")])
def test_a_busy_server_is_asked_again_and_again(error):
    asking = Asking(error, error, error)
    assert asking.ask("this") == "this"
    assert asking.waits == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("error", [told(429), NotRefreshed("some copies")])
def test_one_that_stays_busy_is_given_up(error):
    asking = Asking(*[error] * 9)
    with pytest.raises(type(error), match=str(error)):
        asking.ask("this")
    assert (len(asking.errors), len(asking.waits)) == (5, 3)


@pytest.mark.parametrize("error", [told(502), told(0), EngineUnavailable("gone"), IndexMissing("none")])
def test_where_nobody_knows_what_was_done_or_waiting_helps_nothing_the_error_is_told_at_once(error):
    asking = Asking(error)
    with pytest.raises(type(error)):
        asking.ask("this")
    assert asking.waits == []
