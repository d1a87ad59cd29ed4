"""Every error shinglefold raises on purpose, and what messages are made of: values and commands.

::

    ShinglefoldError
    ├── ConfigError               an option, a setting or a pipeline that is not valid
    │   ├── UnknownLanguage       no plugin has this code
    │   └── MissingExtra          an optional dependency is not installed
    ├── SchemeMismatch            signatures of different schemes can't be compared
    ├── RecipeMismatch            the index has another pipeline or field than the one given
    ├── InputError                a file or a document can't be read
    │   └── OutputError           a result can't be written to its file
    ├── ProcessorError            a processor failed on a document
    │   └── Refused               the gate rejects a document: it resembles a stored one, or is invalid
    └── EngineError               the engine refused a request, or failed
        ├── IndexMissing          there is no such index
        ├── IndexExists           the index exists already
        ├── IndexReadOnly         the index accepts no writes
        ├── UnsupportedQuery      the engine has no such query or option
        │   └── WindowTooLarge    the page lies deeper than the index allows
        ├── PitExpired            the point in time was closed or has expired
        ├── AuthenticationFailed  the engine does not accept the credentials
        ├── PermissionDenied      the user lacks a permission
        └── EngineUnavailable     the engine does not answer, or its files are locked or damaged

Each message names the remedy. Text analysis never raises: it returns fewer tokens.

The library knows neither ``--engine`` nor ``--config``. It puts a command between backquotes (``suggest``),
and the command line adds the options that are in force (``complete_commands``) before it prints the message.
"""

import errno
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

#: A message lists at most this many known names.
_NAMED = 50
_NUMBERED = re.compile(r"^Error -?\d+ [a-z ]*: ")


def reason_of(error: BaseException) -> str:
    """Return the text of another library's error, without error numbers and paths."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # zlib: "Error -3 while decompressing data: …"
    return _NUMBERED.sub("", str(error)) or type(error).__name__


def is_full(error: OSError) -> bool:
    """Return whether the disk, or the user's quota, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return the known name most similar to a mistyped one, or an empty string.

    Args:
        alike: the least similarity of the two names, 0 to 1.
    """
    # Imported here: only mistakes need it.
    from difflib import get_close_matches

    near = get_close_matches(name[:MOST], list(known), n=1, cutoff=alike)
    return near[0] if near else ""


class ShinglefoldError(Exception):
    """The base class of all errors that shinglefold raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # Copied without ``__init__``, whose arguments differ between the classes.
        return _restore, (type(self), self.args), vars(self)


def _restore(kind: type[ShinglefoldError], args: tuple[object, ...]) -> ShinglefoldError:
    return kind.__new__(kind, *args)


class ConfigError(ShinglefoldError):
    """An option, a setting or a pipeline that is not valid."""

    @classmethod
    def unknown(cls, what: str, name: object, known: Iterable[str]) -> "ConfigError":
        """Return the error for an unknown name; it suggests the nearest known name."""
        names = sorted(known)
        near = cls._nearest(name, names) if isinstance(name, str) else ""
        hint = f"; did you mean {near!r}?" if near else "."
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        known = ", ".join(names[:_NAMED]) or "none"
        return cls(f"unknown {what} {quote(name)}{hint} Known: {known}{more}.")

    @classmethod
    def _nearest(cls, name: str, known: list[str]) -> str:
        return nearest(name, known)


#: Common mistakes for a code of ISO 639-1: codes of countries, and codes of three letters.
_LANGUAGES = {
    "ua": "uk", "ukr": "uk", "cn": "zh", "tw": "zh", "hk": "zh", "zho": "zh", "chi": "zh",
    "rus": "ru", "eng": "en", "gb": "en", "us": "en",
}  # fmt: skip


class UnknownLanguage(ConfigError):
    """No installed plugin has this language code."""

    @classmethod
    def _nearest(cls, name: str, known: list[str]) -> str:
        code = name.lower().replace("_", "-").split("-")[0]
        meant = _LANGUAGES.get(code, code)
        return meant if meant in known else nearest(name, known)


class MissingExtra(ConfigError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs an optional part. Install it: pip install 'shinglefold[{extra}]'"
        )
        self.extra = extra


class SchemeMismatch(ShinglefoldError):
    """Signatures of different schemes can't be compared."""

    def __init__(self, found: str, expected: str, where: str, remedy: str) -> None:
        super().__init__(f"{where} was made with scheme {found}, but {expected} is in use. {remedy}")
        self.found = found
        self.expected = expected


class RecipeMismatch(ShinglefoldError):
    """The index has another pipeline or fingerprint field than the one given."""

    def __init__(self, what: str, found: str, expected: str, where: str, remedy: str) -> None:
        super().__init__(f"{where} was made with {what} {found}, not {expected}. {remedy}")


class InputError(ShinglefoldError):
    """A file or a document can't be read."""


class OutputError(InputError):
    """A result can't be written to its file."""

    @classmethod
    def of(cls, what: str, error: OSError, remedy: str = "check the path") -> "OutputError":
        """Return the error for a failed write; on a full disk the remedy is to make room."""
        if is_full(error):
            return cls(f"cannot write {what}: the disk is full; make room")
        return cls(f"cannot write {what}: {reason_of(error)}; {remedy}")


class ProcessorError(ShinglefoldError):
    """A processor failed on a document."""


class Refused(ProcessorError):
    """The gate rejected a document.

    Attributes:
        like: the id of the stored document that it resembles; None if the document is invalid.
        likeness: how similar the two are, 0 to 1.
        group: the number of the stored document's group, if it has one.
    """

    def __init__(
        self, message: str, like: str | None = None, likeness: float | None = None, group: int | None = None
    ) -> None:
        super().__init__(message)
        self.like, self.likeness, self.group = like, likeness, group


class EngineError(ShinglefoldError):
    """The engine refused a request, or failed.

    ``lost``: how many changes it had accepted before and could not keep.
    """

    lost = 0


class IndexMissing(EngineError):
    """There is no such index."""


class IndexExists(EngineError):
    """The index exists already."""


class IndexReadOnly(EngineError):
    """The index accepts no writes, or the cluster no new index."""


class UnsupportedQuery(EngineError):
    """The engine has no such query or option."""


class WindowTooLarge(UnsupportedQuery):
    """The page lies deeper than the index allows."""


class PitExpired(EngineError):
    """The point in time was closed or has expired."""


class AuthenticationFailed(EngineError):
    """The engine does not accept the credentials."""


class PermissionDenied(EngineError):
    """The user lacks a permission."""


class EngineUnavailable(EngineError):
    """The engine does not answer, or its files are locked or damaged."""


#: The node of a point in time has left the cluster; the point in time is lost even if the node returns.
NODE_GONE = "no node found for id"
#: A message quotes at most this many characters of input.
MOST = 200
#: Limits of a quotation: items of a list or object, levels of nesting, bits of a number.
_ITEMS, _DEPTH, _BITS = 8, 4, 256
_CUT = "…"


def quote(value: object) -> str:
    """Return the ``repr`` of a value, cut to 200 characters. Cost: a few µs, however large the value is."""
    text = _text(value, _DEPTH)
    return text if len(text) <= MOST else text[: MOST - 1] + _CUT


def counted(count: int, one: str, several: str = "") -> str:
    """Return a count with what is counted, such as "1 document"; ``several``: the words of other counts."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def shorten(value: object) -> str:
    """Return a string cut to 200 characters; quote any other value."""
    if not isinstance(value, str):
        return quote(value)
    return value if len(value) <= MOST else value[: MOST - 1] + _CUT


def _text(value: object, depth: int) -> str:
    if isinstance(value, str | bytes):
        # The closing quotation mark is cut off, to show that the text continues.
        return repr(value) if len(value) <= MOST else repr(value[:MOST])[:-1] + _CUT
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a number of about {round(value.bit_length() * 0.30103)} digits"
    if isinstance(value, Mapping):
        return _list_items("{}", (f"{_text(k, 0)}: {_text(v, depth - 1)}" for k, v in value.items()), depth)
    if isinstance(value, list | tuple):
        marks = "[]" if isinstance(value, list) else "()"
        return _list_items(marks, (_text(one, depth - 1) for one in value), depth)
    return repr(value)


def _list_items(marks: str, items: Iterable[str], depth: int) -> str:
    if depth <= 0:
        return f"{marks[0]}{_CUT}{marks[1]}"
    shown = list(islice(items, _ITEMS + 1))
    more = [_CUT] if len(shown) > _ITEMS else []
    return marks[0] + ", ".join([*shown[:_ITEMS], *more]) + marks[1]


#: The value of an option: None and False omit it, True makes it a flag, a tuple repeats it.
Value = str | int | bool | tuple[str, ...] | None
_PROGRAM = "shinglefold"
_COMMAND = re.compile(rf"`({_PROGRAM} [^`]+)`")


def option(flag: str, value: Value) -> list[str]:
    """Return the arguments that set an option."""
    if value is None or value is False or value == ():
        return []
    if value is True:
        return [flag]
    if isinstance(value, tuple):
        return [word for one in value for word in (flag, one)]
    return [flag, str(value)]


def line(name: str, arguments: Iterable[str], options: Iterable[str]) -> str:
    """Return a command quoted for the shell, with ``--`` before arguments that look like options."""
    given = list(arguments)
    if any(one.startswith("-") and one != "-" for one in given):
        return shlex.join([_PROGRAM, name, *options, "--", *given])
    return shlex.join([_PROGRAM, name, *given, *options])


def suggest(name: str, /, *arguments: str, **options: Value) -> str:
    """Return a command between backquotes, for a message.

    Args:
        options: by name with underscores, such as ``dedup_field="copies"``.
    """
    words = [word for key, value in options.items() for word in option(f"--{key.replace('_', '-')}", value)]
    return f"`{line(name, arguments, words)}`"


def chain(commands: Iterable[str]) -> str:
    """Join commands with ``&&``: each runs only if the one before it succeeded."""
    return " && ".join(commands)


def complete_commands(text: str, complete: Callable[[list[str]], list[str]]) -> str:
    """Complete the commands of a message and remove the backquotes around them.

    Args:
        complete: receives the arguments after ``shinglefold`` and returns all arguments.
    """

    def complete_command(found: re.Match[str]) -> str:
        try:
            words = shlex.split(found[1])
        except ValueError:
            # A quotation of a document, not a command of ours.
            return found[0]
        return shlex.join([_PROGRAM, *complete(words[1:])])

    return _COMMAND.sub(complete_command, text)
