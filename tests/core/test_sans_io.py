"""Steps that yield their requests say the same whether answers come at once or are awaited."""

import asyncio
from collections.abc import Generator

import pytest

from shinglefold.runtime.sans_io import run, run_async


def _steps(log: list[str]) -> Generator[int, str, str]:
    try:
        first = yield 1
        second = yield 2
        log.append(first + second)
        try:
            yield 0
        except ZeroDivisionError:
            log.append("caught")
            return (yield 4)
    finally:
        log.append("cleaned up")
    return "nothing went wrong"


def _answer(request: int) -> str:
    return f"{8 // request}"


async def _awaited(request: int) -> str:
    await asyncio.sleep(0)
    return _answer(request)


@pytest.mark.parametrize("awaits", [False, True])
def test_answers_come_back_and_errors_where_the_request_was_made(awaits):
    log: list[str] = []
    told = asyncio.run(run_async(_steps(log), _awaited)) if awaits else run(_steps(log), _answer)
    assert told == "2"
    assert log == ["84", "caught", "cleaned up"]


@pytest.mark.parametrize("awaits", [False, True])
def test_an_error_that_steps_do_not_catch_is_raised_after_they_cleaned_up(awaits):
    log: list[str] = []

    def fails(_: int) -> str:
        raise KeyboardInterrupt

    async def fails_later(request: int) -> str:
        return fails(request)

    def driven() -> None:
        if awaits:
            asyncio.run(run_async(_steps(log), fails_later))
        else:
            run(_steps(log), fails)

    with pytest.raises(KeyboardInterrupt):
        driven()
    assert log == ["cleaned up"]


def test_steps_that_ask_for_nothing_are_done_at_once():
    def nothing() -> Generator[int, str, int]:
        yield from ()
        return 7

    assert run(nothing(), _answer) == asyncio.run(run_async(nothing(), _awaited)) == 7
