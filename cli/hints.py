"""What to type next, as a complete command: every option in force is in it, quoted for the shell."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

#: What an option may be set to; None and False leave it out, True is a flag, a tuple repeats it.
Value = str | int | bool | tuple[str, ...] | None
_ENGINE = "--engine"


@dataclass(frozen=True, slots=True)
class Hints:
    """Builds commands with the options that say where and how: ``--engine``, ``--config``.

    Credentials in an address are left out: whoever types the command gives them again.
    """

    engine: str | None = None
    config: str | None = None

    def command(self, name: str, *arguments: str, **options: Value) -> str:
        """Return a command.

        Args:
            options: by their names with underscores, such as ``dead_letters="failed.jsonl"``.
        """
        words: list[str] = []
        engine = None if self.engine is None else _safe(self.engine)
        for option, value in {**options, "engine": engine, "config": self.config}.items():
            words += _words(f"--{option.replace('_', '-')}", value)
        if any(one.startswith("-") and one != "-" for one in arguments):
            return shlex.join(["shinglefold", name, *words, "--", *arguments])
        return shlex.join(["shinglefold", name, *arguments, *words])


def together(commands: Iterable[str]) -> str:
    """Return several commands as one line for the shell: each only where those before it went well."""
    return " && ".join(commands)


def again(arguments: Iterable[str], **changed: Value) -> str:
    """Return the command that was typed, with some options set otherwise.

    Args:
        arguments: as they were typed, behind ``shinglefold``.
    """
    words = list(arguments)
    for option, value in changed.items():
        flag = f"--{option.replace('_', '-')}"
        words = _without(words, flag, takes_value=not isinstance(value, bool))
        place = words.index("--") if "--" in words else len(words)
        words[place:place] = _words(flag, value)
    return shlex.join(["shinglefold", *_safe_words(words)])


def instead(arguments: Iterable[str], word: str, other: str) -> str:
    """Return the command that was typed, with another word in the place of one that names something."""
    words = list(arguments)
    at = len(words) - 1 - words[::-1].index(word)
    return shlex.join(["shinglefold", *_safe_words([*words[:at], other, *words[at + 1 :]])])


def _safe(where: str) -> str:
    """Return an address without credentials: what is printed ends up in logs and on screens."""
    from shinglefold.engines.http import without_secrets

    return without_secrets(where)


def _safe_words(words: list[str]) -> list[str]:
    safe = list(words)
    for place, word in enumerate(words):
        if word == "--":
            break
        if word.startswith(f"{_ENGINE}="):
            safe[place] = f"{_ENGINE}={_safe(word.removeprefix(f'{_ENGINE}='))}"
        elif place and words[place - 1] == _ENGINE:
            safe[place] = _safe(word)
    return safe


def _without(words: list[str], flag: str, takes_value: bool) -> list[str]:
    kept: list[str] = []
    skip = False
    for place, word in enumerate(words):
        if word == "--":
            return [*kept, *words[place:]]
        if skip:
            skip = False
        elif word == flag:
            skip = takes_value
        elif not word.startswith(f"{flag}="):
            kept.append(word)
    return kept


def _words(flag: str, value: Value) -> list[str]:
    if value is None or value is False or value == ():
        return []
    if value is True:
        return [flag]
    if isinstance(value, tuple):
        return [word for one in value for word in (flag, one)]
    return [flag, str(value)]
