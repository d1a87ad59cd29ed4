"""From an exception to an exit code and one line that says what to do."""

import os
import signal
import sys

import click

from shinglefold.cli.command import FAILED, INTERRUPTED, MISUSED, TERMINATED
from shinglefold.cli.output import printable, remark, write_json
from shinglefold.errors import ConfigError, ShinglefoldError

#: Set to anything, a failure is raised with its traceback, for a report.
DEBUG = "SHINGLEFOLD_DEBUG"


def report(error: BaseException, as_json: bool) -> int:
    """Say what went wrong and return the exit code."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return TERMINATED if getattr(error, "signal", None) == signal.SIGTERM else INTERRUPTED
    code = _code(error)
    text = _message(error)
    remark(f"error: {printable(text)}")
    if as_json:
        write_json({"error": {"type": _type(error), "message": text, "exit_code": code}})
    return code


def _code(error: BaseException) -> int:
    return MISUSED if isinstance(error, ConfigError | click.ClickException) else FAILED


def _type(error: BaseException) -> str:
    return "UsageError" if isinstance(error, click.ClickException) else type(error).__name__


def _message(error: BaseException) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message() + _see(error)
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
    return f" See: {context.command_path} --help" if context is not None else ""


def discard_output() -> None:
    """Point standard output nowhere: its reader is gone, and what is buffered must not fail at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        # A captured stream has no descriptor and no reader to lose.
        pass
