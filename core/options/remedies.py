"""Commands in messages: quoted for the shell, and completed by whoever knows where the index is.

The library knows neither ``--engine`` nor ``--config``. It puts a command between backquotes, and the command
line adds to it the options that are in force before it is shown.
"""

import re
import shlex
from collections.abc import Callable, Iterable

#: What an option may be set to; None and False leave it out, True is a flag, a tuple repeats it.
Value = str | int | bool | tuple[str, ...] | None
_PROGRAM = "shinglefold"
_ADVISED = re.compile(rf"`({_PROGRAM} [^`]+)`")


def option(flag: str, value: Value) -> list[str]:
    """Return the words of an option."""
    if value is None or value is False or value == ():
        return []
    if value is True:
        return [flag]
    if isinstance(value, tuple):
        return [word for one in value for word in (flag, one)]
    return [flag, str(value)]


def line(name: str, arguments: Iterable[str], options: Iterable[str]) -> str:
    """Return a command as one line for the shell, also where an argument looks like an option."""
    given = list(arguments)
    if any(one.startswith("-") and one != "-" for one in given):
        return shlex.join([_PROGRAM, name, *options, "--", *given])
    return shlex.join([_PROGRAM, name, *given, *options])


def suggest(name: str, *arguments: str, **options: Value) -> str:
    """Return a command for a message of the library.

    Args:
        options: by their names with underscores, such as ``dedup_field="copies"``.
    """
    words = [word for key, value in options.items() for word in option(f"--{key.replace('_', '-')}", value)]
    return f"`{line(name, arguments, words)}`"


def chain(commands: Iterable[str]) -> str:
    """Return several commands as one line for the shell: each only where those before it went well."""
    return " && ".join(commands)


def complete_commands(text: str, complete: Callable[[list[str]], list[str]]) -> str:
    """Return a message with its commands completed, and without the backquotes around them.

    Args:
        complete: gets the words behind ``shinglefold``, and returns them with what they lack.
    """

    def told(found: re.Match[str]) -> str:
        return shlex.join([_PROGRAM, *complete(shlex.split(found[1])[1:])])

    return _ADVISED.sub(told, text)
