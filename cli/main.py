"""The entry point: ``shinglefold COMMAND``."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module

import click

from shinglefold.cli.shared.command import (
    HELP,
    INTERRUPTED,
    PIPE_CLOSED,
    TERMINATED,
    CommandGroup,
    Invocation,
    common_options,
    discard_output,
    flush_or_discard_output,
    flush_stderr,
    report,
)
from shinglefold.cli.shared.output import flush_output, prepare_streams, write_json, write_line
from shinglefold.runtime.signals import raise_interrupted

#: The commands in the order of use, and the modules in cli/commands that have the functions of these names.
_COMMANDS = {
    "demo": "searching.search",
    "index": "indexing.index",
    "sign": "files.sign",
    "add": "indexing.add",
    "search": "searching.search",
    "similar": "searching.similar",
    "compare": "files.compare",
    "matches": "searching.similar",
    "serve": "searching.serving",
    "groups": "files.groups",
    "advise": "files.advise",
    "setup": "indexing.setup",
    "backfill": "indexing.backfill",
    "regroup": "indexing.regroup",
    "report": "files.report",
    "doctor": "indexing.doctor",
    "stats": "indexing.stats",
    "delete": "indexing.delete",
    "info": "indexing.stats",
    "gateway": "searching.serving",
}
#: The variable by which a shell asks for completions.
_COMPLETE = "_SHINGLEFOLD_COMPLETE"
_HELP = """Fold fuzzy duplicates: index documents, search with one hit a group, compare texts.

Start with: shinglefold demo
"""


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from shinglefold.model.scheme import ALGORITHM
    from shinglefold.version import __version__

    if ctx.ensure_object(Invocation).json:
        write_json({"shinglefold": __version__, "scheme_algorithm": ALGORITHM})
    else:
        write_line(f"shinglefold {__version__} (scheme algorithm sf{ALGORITHM})")
    ctx.exit()


class _Commands(Mapping[str, click.Command]):
    """The commands by name; a module is imported at first use."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in _COMMANDS:
            raise KeyError(name)
        module = import_module(f"shinglefold.cli.commands.{_COMMANDS[name]}")
        found: click.Command = getattr(module, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


_VERSION = click.Option(
    ["-V", "--version"], is_flag=True, expose_value=False, callback=_print_version, help="Print the version."
)
cli = CommandGroup(
    "shinglefold",
    commands=_Commands(),
    params=[*common_options(), _VERSION],
    help=_HELP,
    context_settings={"help_option_names": HELP},
)


def main(arguments: Sequence[str] | None = None, program: click.Group = cli) -> int:
    """Run a command and return the exit code; errors are reported, not raised."""
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    invocation = Invocation(json=asks_for_json(given), arguments=tuple(given))
    prepare_streams()
    try:
        with _handle_sigterm():
            code = _run(given, invocation, program)
        if code in (INTERRUPTED, TERMINATED):
            flush_or_discard_output()
        else:
            flush_output()
    except BrokenPipeError:
        discard_output()
        return PIPE_CLOSED
    except (Exception, KeyboardInterrupt) as error:
        return _report_error(error, invocation)
    finally:
        flush_stderr()
    return code


def _report_error(error: BaseException, invocation: Invocation) -> int:
    try:
        return report(error, invocation)
    except KeyboardInterrupt as second:
        # The user has stopped waiting for the message of the first error.
        return report(second, invocation)


@contextmanager
def _handle_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, unless it is handled or ignored already."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, raise_interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Return whether ``--json`` is among the options, so that an error in parsing them is JSON, too."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _run(arguments: list[str], invocation: Invocation, program: click.Group) -> int:
    if os.environ.get(_COMPLETE):
        cli.main(prog_name="shinglefold", complete_var=_COMPLETE)
    # Not click's own main, which prints errors and ends the process itself.
    try:
        with program.make_context(program.name, arguments, obj=invocation) as context:
            return int(program.invoke(context) or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
