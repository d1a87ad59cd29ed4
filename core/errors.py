"""Every error shinglefold raises on purpose.

::

    ShinglefoldError
    ├── ConfigError               an option, a setting or a pipeline that is not valid
    │   ├── UnknownLanguage       no plugin has this code
    │   └── MissingExtra          an optional dependency is not installed
    ├── SchemeMismatch            signatures of two schemes, which can't be compared
    ├── RecipeMismatch            an index made with another pipeline or field than is asked for
    ├── InputError                a file or a document that can't be read
    │   └── OutputError           what is made can't be written to its file
    ├── ProcessorError            a processor failed on a document
    │   └── Refused               the gate lets a document not in: it resembles a stored one, or does not fit
    └── EngineError               the engine refused or could not
        ├── IndexMissing          there is no such index
        ├── IndexExists           the index is there already
        ├── IndexReadOnly         the index takes no writes now
        ├── UnsupportedQuery      the engine has no such query or option
        │   └── WindowTooLarge    a page further down than the index allows
        ├── PitExpired            the point in time was closed or ran out
        ├── AuthenticationFailed  the engine does not know who asks
        ├── PermissionDenied      the engine knows who asks, and does not allow it
        └── EngineUnavailable     the engine does not answer, or its files are locked or damaged

Each message names the remedy. Text analysis never raises: it answers with fewer tokens.
"""

import errno
import re
from collections.abc import Iterable, Mapping
from itertools import islice

#: Known names listed in a message.
_NAMED = 50
_NUMBERED = re.compile(r"^Error -?\d+ [a-z ]*: ")


def reason_of(error: BaseException) -> str:
    """Return what a foreign error says: the system's words without their number, and no path said before."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # zlib: "Error -3 while decompressing data: …"
    return _NUMBERED.sub("", str(error)) or type(error).__name__


def is_full(error: OSError) -> bool:
    """Tell whether there was no room left, on the disk or for this user."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return the known name that a mistyped one may mean, or nothing; ``alike``: how much of it, 0…1."""
    # Only mistakes need it.
    from difflib import get_close_matches

    near = get_close_matches(name[:MOST], list(known), n=1, cutoff=alike)
    return near[0] if near else ""


class ShinglefoldError(Exception):
    """The root: catch it to catch everything shinglefold raises on purpose."""


class ConfigError(ShinglefoldError):
    """An option, a setting or a pipeline that is not valid."""

    @classmethod
    def unknown(cls, what: str, name: object, known: Iterable[str]) -> "ConfigError":
        """Return the error for a name nobody knows, with the nearest known name."""
        names = sorted(known)
        near = nearest(name, names) if isinstance(name, str) else ""
        hint = f"; did you mean {near!r}?" if near else "."
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        known = ", ".join(names[:_NAMED]) or "none"
        return cls(f"unknown {what} {quote(name)}{hint} Known: {known}{more}.")


class UnknownLanguage(ConfigError):
    """No installed plugin has this language code."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs an optional part. Install it: pip install 'shinglefold[{extra}]'"
        )
        self.extra = extra
        self.needed_for = needed_for

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.extra, self.needed_for)


class SchemeMismatch(ShinglefoldError):
    """Signatures of two schemes, which can't be compared."""

    def __init__(self, found: str, expected: str, where: str, remedy: str) -> None:
        super().__init__(f"{where} was made with scheme {found}, but {expected} is in use. {remedy}")
        self.found = found
        self.expected = expected
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        return type(self), (self.found, self.expected, self.where, self.remedy)


class RecipeMismatch(ShinglefoldError):
    """An index made with another pipeline, or another field of fingerprints, than is asked for."""

    def __init__(self, what: str, found: str, expected: str, where: str, remedy: str) -> None:
        super().__init__(f"{where} was made with {what} {found}, but {expected} is asked for. {remedy}")
        self.what = what
        self.found = found
        self.expected = expected
        self.where = where
        self.remedy = remedy

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str, str]]:
        return type(self), (self.what, self.found, self.expected, self.where, self.remedy)


class InputError(ShinglefoldError):
    """A file or a document that can't be read."""


class OutputError(InputError):
    """What is made can't be written to its file."""

    @classmethod
    def of(cls, what: str, error: OSError, remedy: str = "check the path") -> "OutputError":
        """Return the error that tells why, and what to do; a full disk wants another remedy than a path."""
        if is_full(error):
            return cls(f"cannot write {what}: the disk is full; make room")
        return cls(f"cannot write {what}: {reason_of(error)}; {remedy}")


class ProcessorError(ShinglefoldError):
    """A processor failed on a document."""


class Refused(ProcessorError):
    """The gate lets a document not in.

    ``like``: the id of the stored document that it resembles, ``likeness`` how much; neither where the
    document itself does not fit. ``group``: the number of the group, where there is one.
    """

    def __init__(
        self, message: str, like: str | None = None, likeness: float | None = None, group: int | None = None
    ) -> None:
        super().__init__(message)
        self.like, self.likeness, self.group = like, likeness, group

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self), self.like, self.likeness, self.group)


class EngineError(ShinglefoldError):
    """The engine refused or could not.

    ``lost``: changes it had taken before and could not keep.
    """

    lost = 0


class IndexMissing(EngineError):
    """There is no such index."""


class IndexExists(EngineError):
    """The index is there already."""


class IndexReadOnly(EngineError):
    """The index takes no writes now, or the cluster no new index."""


class UnsupportedQuery(EngineError):
    """The engine has no such query or option."""


class WindowTooLarge(UnsupportedQuery):
    """A page further down than the index allows."""


class PitExpired(EngineError):
    """The point in time was closed or ran out."""


class AuthenticationFailed(EngineError):
    """The engine does not know who asks."""


class PermissionDenied(EngineError):
    """The engine knows who asks, and does not allow it."""


class EngineUnavailable(EngineError):
    """The engine does not answer, or its files are locked or damaged."""


#: Characters of input a message quotes at most.
MOST = 200
#: Items of a list or an object that are looked at, objects within objects, and bits of a number written out.
_ITEMS, _DEPTH, _BITS = 8, 4, 256
_CUT = "…"


def quote(value: object) -> str:
    """Return a value as Python writes it, 200 characters at most. Cost: a few µs, however large it is."""
    text = _text(value, _DEPTH)
    return text if len(text) <= MOST else text[: MOST - 1] + _CUT


def shorten(value: object) -> str:
    """Return a text as it is, 200 characters at most, and anything else as ``quote`` does."""
    if not isinstance(value, str):
        return quote(value)
    return value if len(value) <= MOST else value[: MOST - 1] + _CUT


def _text(value: object, depth: int) -> str:
    if isinstance(value, str | bytes):
        # One quotation mark stays open: the text goes on.
        return repr(value) if len(value) <= MOST else repr(value[:MOST])[:-1] + _CUT
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a number of about {round(value.bit_length() * 0.30103)} digits"
    if isinstance(value, Mapping):
        return _listed("{}", (f"{_text(k, 0)}: {_text(v, depth - 1)}" for k, v in value.items()), depth)
    if isinstance(value, list | tuple):
        marks = "[]" if isinstance(value, list) else "()"
        return _listed(marks, (_text(one, depth - 1) for one in value), depth)
    return repr(value)


def _listed(marks: str, items: Iterable[str], depth: int) -> str:
    if depth <= 0:
        return f"{marks[0]}{_CUT}{marks[1]}"
    shown = list(islice(items, _ITEMS + 1))
    more = [_CUT] if len(shown) > _ITEMS else []
    return marks[0] + ", ".join([*shown[:_ITEMS], *more]) + marks[1]
