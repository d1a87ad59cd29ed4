"""From an exception to an exit code and one line that says what to do."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TextIO

import click

from shinglefold.cli.framework.command import FAILED, INTERRUPTED, MISUSED, TERMINATED, Invocation
from shinglefold.cli.framework.output import OutputLost, flush_output, printable, remark, write_json
from shinglefold.errors import ConfigError, ShinglefoldError

#: Set to anything, a failure is raised with its traceback, for a report.
DEBUG = "SHINGLEFOLD_DEBUG"
#: Seconds a reader has to take what is buffered, once a command was asked to end.
_PATIENCE = 1.0


def report(error: BaseException, invocation: Invocation) -> int:
    """Say what went wrong and return the exit code."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        leave_output()
        return TERMINATED if getattr(error, "signal", None) == signal.SIGTERM else INTERRUPTED
    if isinstance(error, OutputLost):
        discard_output()
        remark(f"error: {error}")
        return FAILED
    code = _code(error)
    text = _message(error)
    if isinstance(error, ShinglefoldError):
        text = invocation.hints().completed(text)
    remark(f"error: {printable(text)}")
    if invocation.json:
        _write_error(error, text, code)
    return code


def _write_error(error: BaseException, text: str, code: int) -> None:
    try:
        write_json({"error": {"type": _type(error), "message": text, "exit_code": code}})
        flush_output()
    except OutputLost as lost:
        discard_output()
        remark(f"error: {lost}")
    except BrokenPipeError:
        discard_output()


def _code(error: BaseException) -> int:
    return MISUSED if isinstance(error, ConfigError | click.ClickException) else FAILED


def _type(error: BaseException) -> str:
    return "UsageError" if isinstance(error, click.ClickException) else type(error).__name__


def _message(error: BaseException) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        # Its message is the whole help.
        context = error.ctx
        known = context.command.list_commands(context) if isinstance(context.command, click.Group) else ()
        return f"{context.command_path} needs a command: {', '.join(known)}{_see(error)}"
    if isinstance(error, click.ClickException):
        said = error.format_message().rstrip(".")
        return said + _see(error).removeprefix("." if said.endswith(("?", ")")) else "")
    if isinstance(error, ShinglefoldError):
        return str(error)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}; check the path, its rights and the space left"
    if os.environ.get(DEBUG):
        raise error
    return f"unexpected {type(error).__name__}: {error}; a fault of shinglefold, {DEBUG}=1 shows where"


def _see(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f". See: {context.command_path} --help" if context is not None else ""


def leave_output() -> None:
    """Write what is buffered if somebody takes it soon; at exit Python would wait for a reader for ever."""
    try:
        with _patience():
            flush_output()
    except (_TooLate, OutputLost, BrokenPipeError, KeyboardInterrupt):
        discard_output()


class _TooLate(Exception):
    """What waits was not taken in time."""


@contextmanager
def _patience() -> Iterator[None]:
    """Break a block off after a second, in the main thread, which alone can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> NoReturn:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def discard_output() -> None:
    """Point standard output nowhere: what is buffered can't be written, and must not fail at exit."""
    _discard(sys.stdout)


def settle_remarks() -> None:
    """See that remarks which can't be written do not fail at exit: there is no place to tell it."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        # A captured stream has no descriptor and no reader to lose.
        pass
