"""What every command has: ``--json``, ``--config``, ``-h``, examples, exit codes, and errors in one line."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from shinglefold.cli.shared.next_commands import (
    Hints,
    argument_to_option,
    option_to_argument,
    repeat_command,
)
from shinglefold.cli.shared.output import (
    OutputLost,
    flush_output,
    printable,
    remark,
    write_json,
    write_line,
)
from shinglefold.errors import ConfigError, ShinglefoldError

if TYPE_CHECKING:
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.settings import Settings

#: Exit codes, as in docs/cli.md.
DONE, FAILED, MISUSED, PARTLY, INTERRUPTED, PIPE_CLOSED, TERMINATED = 0, 1, 2, 3, 130, 141, 143
HELP = ["-h", "--help"]


def exit_code_of_stop(stopped: str) -> int:
    """Return the exit code of a run that ended early, from the reason in its summary."""
    return {"interrupted": INTERRUPTED, "terminated": TERMINATED}.get(stopped, FAILED)


@dataclass(slots=True)
class Invocation:
    """The values of the common options, and all arguments as typed."""

    json: bool = False
    config: str | None = None
    arguments: tuple[str, ...] = ()
    engine: str | None = None

    def settings(self) -> "Settings":
        """Return the settings of the file and the environment.

        Raises:
            ConfigError: a setting is not valid.
        """
        from shinglefold.settings import load_settings

        return load_settings(self.config)

    def target(self, index: str, engine: str | None, **flags: Any) -> "Target":  # noqa: ANN401 - Asked's own
        """Return the index that a command works on.

        Raises:
            ConfigError: a setting or a flag is not valid.
        """
        from shinglefold.cli.shared.recipe import Target

        if engine is not None and "," in engine:
            self._check_addresses(engine)
        self.engine = engine
        return Target(index, self.settings(), self.hints(), **flags)

    def _check_addresses(self, engine: str) -> None:
        """Refuse several addresses if only the first has a scheme; the message has the right command."""
        from shinglefold.engines.http.connection import each_with_scheme

        if meant := each_with_scheme(engine):
            raise ConfigError(
                "--engine: several addresses are written each with its scheme: "
                f"{repeat_command(self.arguments, engine=meant)}"
            )

    def hints(self) -> Hints:
        """Return a builder of commands for messages, with ``--engine`` and ``--config`` of this one."""
        return Hints(self.engine, self.config)

    def write_summary(self, summary: Mapping[str, Any], indent: int | None = 2) -> None:
        """Write a summary as JSON, with the options in force in the commands of its messages."""
        write_json(self.hints().complete_json(summary), indent)


class _WithExamples(click.Command):
    """A command whose help ends with examples, and is written like any other output."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        kwargs.setdefault("context_settings", {"help_option_names": HELP})
        super().__init__(*args, **kwargs)
        self.examples = tuple(line.strip() for line in examples.strip().splitlines())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, one a line."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option that prints the help; a full disk is reported as for other output."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _print_help
        return option


def _print_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_line(ctx.get_help())
        ctx.exit()


class Command(_WithExamples):
    """A command with the common options; the shell completes arguments called FILE, SOURCE or ADDRESS."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        kwargs["params"] = [*(kwargs.get("params") or ()), *common_options()]
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            named = (parameter.metavar or "").strip("[].")
            if named in _COMPLETED and parameter.type is click.STRING:
                parameter.type = Name(_COMPLETED[named])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; if the index is not where this command takes it, name the right command."""
        given = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            if meant := self._with_index_in_place(ctx, given, error):
                raise click.UsageError(meant, ctx) from error
            raise
        if not ctx.resilient_parsing:
            self._refuse_empty_options(ctx)
        return rest

    def _refuse_empty_options(self, ctx: click.Context) -> None:
        """Refuse an option with an empty value, as an unset shell variable leaves it."""
        for one in self.params:
            value = ctx.params.get(one.name or "")
            is_empty = value == "" or (isinstance(value, tuple) and "" in value)
            typed = ctx.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
            if is_empty and typed and isinstance(one, click.Option):
                raise _is_empty(ctx, one)

    def _with_index_in_place(self, ctx: click.Context, given: list[str], error: click.UsageError) -> str:
        """Return the message for an index in the wrong place, with the right command; else ""."""
        typed, name = ctx.ensure_object(Invocation).arguments, ctx.info_name or ""
        arguments = [one for one in self.params if isinstance(one, click.Argument)]
        if isinstance(error, click.NoSuchOption):
            if error.option_name != "--index" or not any("INDEX" in (one.metavar or "") for one in arguments):
                return ""
            return f"the index is an argument of {name}: {option_to_argument(typed, name, '--index')}"
        if not any(one.name == "index" for one in self.params if isinstance(one, click.Option)):
            return ""
        options, rest, _ = self.make_parser(ctx).parse_args(given)
        word = options.get(arguments[0].name or "")
        if len(rest) != 1 or "index" in options or not isinstance(word, str):
            return ""
        if os.path.exists(word):
            word = rest[0]
        meant = argument_to_option(typed, name, word, "--index")
        return f"{name} takes an index by --index. If {printable(word)!r} is the index: {meant}"


class Name(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """A file or folder that the shell completes; it is not checked before it is opened."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Let the shell complete it."""
        return [CompletionItem(incomplete, type=self._kind)]


#: What the shell completes, by the metavar of a parameter.
_COMPLETED = {"FILE": "file", "SOURCE": "file", "ADDRESS": "dir"}


class CommandGroup(_WithExamples, click.Group):
    """A group that lists its commands in the given order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(self.commands)


def given_options(context: click.Context) -> dict[str, str]:
    """Return the options that were given, as typed, by the names of their parameters."""
    options = [one for one in context.command.params if isinstance(one, click.Option)]
    return {
        name: one.opts[0]
        for one in options
        if context.get_parameter_source(name := one.name or "") is not ParameterSource.DEFAULT
    }


#: ``@command(examples=…)`` above a function makes it a command.
command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)


def common_options() -> tuple[click.Option, ...]:
    """Return the options every command has."""
    return (
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_set_json,
            help="Write JSON to standard output.",
        ),
        click.Option(
            ["--config"],
            metavar="FILE",
            expose_value=False,
            callback=_set_config,
            help="Settings file; by default shinglefold.toml of the working folder.",
        ),
    )


def _is_empty(ctx: click.Context, option: click.Parameter) -> click.UsageError:
    return click.UsageError(f"{option.opts[0]} is empty: give it a value, or leave it out", ctx)


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Invocation).json |= value


def _set_config(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value == "":
        raise _is_empty(ctx, option)
    if value is not None:
        ctx.ensure_object(Invocation).config = value


#: If this variable is set, an unexpected error is raised with its traceback.
DEBUG = "SHINGLEFOLD_DEBUG"
#: Seconds that an interrupted command waits for the reader of its output.
_FLUSH_SECONDS = 1.0


def report(error: BaseException, invocation: Invocation) -> int:
    """Write the message of an error and return the exit code."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        flush_or_discard_output()
        return TERMINATED if getattr(error, "signal", None) == signal.SIGTERM else INTERRUPTED
    if isinstance(error, OutputLost):
        discard_output()
        remark(f"error: {error}")
        return FAILED
    code = _code(error)
    text = _message(error)
    if isinstance(error, ShinglefoldError):
        text = invocation.hints().complete(text)
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
        # The message of this error is the help of the command.
        context = error.ctx
        known = context.command.list_commands(context) if isinstance(context.command, click.Group) else ()
        return f"{context.command_path} needs a command: {', '.join(known)}{_see(error)}"
    if isinstance(error, click.ClickException):
        message = error.format_message().rstrip(".")
        return message + _see(error).removeprefix("." if message.endswith(("?", ")")) else "")
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


def flush_or_discard_output() -> None:
    """Flush standard output, or discard it after a second: at exit Python would wait for a reader forever."""
    try:
        with _time_limit():
            flush_output()
    except (_Timeout, OutputLost, BrokenPipeError, KeyboardInterrupt):
        discard_output()


class _Timeout(Exception):
    """The reader of standard output did not read in time."""


@contextmanager
def _time_limit() -> Iterator[None]:
    """Interrupt a block after a second, in the main thread, which alone gets signals, and not on Windows."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> NoReturn:
        raise _Timeout

    previous = signal.signal(signal.SIGALRM, expire)
    try:
        signal.setitimer(signal.ITIMER_REAL, _FLUSH_SECONDS)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def discard_output() -> None:
    """Redirect standard output to the null device, so that flushing it at exit can't fail."""
    _discard(sys.stdout)


def flush_stderr() -> None:
    """Flush standard error, or discard it, so that flushing it at exit can't fail."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        # A captured stream has no descriptor, and needs none of this.
        pass
