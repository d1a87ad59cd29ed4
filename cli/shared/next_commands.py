"""Commands in messages: complete, with the options in force, quoted for the shell."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.errors import Value, chain, complete_commands, line, option

__all__ = ["Hints", "chain", "repeat_command"]
_ENGINE = "--engine"
#: The keys of summaries that hold messages; all others hold names, ids and counts.
_MESSAGES = frozenset(
    {
        "mapping",
        "notes",
        "obstacles",
        "problem",
        "problems",
        "reason",
        "reasons",
        "remarks",
        "stopped",
        "unread",
        "warnings",
    }
)


@dataclass(frozen=True, slots=True)
class Hints:
    """Builds commands with the values of ``--engine`` and ``--config``, but without credentials."""

    engine: str | None = None
    config: str | None = None

    def command(self, name: str, *arguments: str, **options: Value) -> str:
        """Return a command.

        Args:
            options: with underscores for hyphens, such as ``dead_letters="failed.jsonl"``.
        """
        words = [
            word for key, value in options.items() for word in option(f"--{key.replace('_', '-')}", value)
        ]
        return line(name, arguments, [*words, *self._in_force()])

    def complete(self, text: str) -> str:
        """Return a message of the library with ``--engine`` and ``--config`` in its commands."""
        return complete_commands(text, self._complete)

    def complete_json(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a summary as JSON whose messages have the commands that ``complete`` makes."""
        if isinstance(value, list | tuple):
            return [self.complete_json(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        return {
            name: self._messages(one) if name in _MESSAGES else self._items(one)
            for name, one in value.items()
        }

    def _items(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Complete the messages of each item of a list; an object below a key is a user's, not ours."""
        return self.complete_json(value) if isinstance(value, list | tuple) else value

    def _messages(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, str):
            return self.complete(value)
        if isinstance(value, list | tuple):
            return [self._messages(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        # Messages are counted ({reason: count}), or belong to a name ({name: messages}).
        return {
            self.complete(name) if isinstance(one, int) else name: self._messages(one)
            for name, one in value.items()
        }

    def _complete(self, words: list[str]) -> list[str]:
        place = words.index("--") if "--" in words else len(words)
        return [*words[:place], *self._in_force(), *words[place:]]

    def _in_force(self) -> list[str]:
        engine = None if self.engine is None else _safe_address(self.engine)
        return [*option(_ENGINE, engine), *option("--config", self.config)]


def repeat_command(arguments: Iterable[str], **changed: Value) -> str:
    """Return the command that was typed, with some options changed.

    Args:
        arguments: as typed after ``shinglefold``.
    """
    words = list(arguments)
    for name, value in changed.items():
        flag = f"--{name.replace('_', '-')}"
        words = _without_option(words, flag, takes_value=not isinstance(value, bool))
        place = words.index("--") if "--" in words else len(words)
        words[place:place] = option(flag, value)
    return shlex.join(["shinglefold", *_safe_words(words)])


def replace_word(arguments: Iterable[str], word: str, other: str) -> str:
    """Return the command that was typed, with one argument replaced."""
    words = list(arguments)
    at = len(words) - 1 - words[::-1].index(word)
    return shlex.join(["shinglefold", *_safe_words([*words[:at], other, *words[at + 1 :]])])


def option_to_argument(arguments: Iterable[str], command: str, flag: str) -> str:
    """Return the command that was typed, with the value of an option as the first argument."""
    words = list(arguments)
    value = next(
        (
            words[at + 1] if word == flag and at + 1 < len(words) else word.partition("=")[2]
            for at, word in enumerate(words)
            if word == flag or word.startswith(f"{flag}=")
        ),
        "",
    )
    rest = _without_option(words, flag, takes_value=True)
    rest.insert(rest.index(command) + 1, value or "INDEX")
    return shlex.join(["shinglefold", *_safe_words(rest)])


def argument_to_option(arguments: Iterable[str], command: str, word: str, flag: str) -> str:
    """Return the command that was typed, with an argument as the value of an option."""
    words = list(arguments)
    del words[words.index(word, words.index(command) + 1)]
    return repeat_command(words, **{flag.removeprefix("--"): word})


def _safe_address(where: str) -> str:
    """Return an address without credentials, which must not get into logs."""
    from shinglefold.engines.http.connection import without_secrets

    return without_secrets(where)


def _safe_words(words: list[str]) -> list[str]:
    safe = list(words)
    for place, word in enumerate(words):
        if word == "--":
            break
        if word.startswith(f"{_ENGINE}="):
            safe[place] = f"{_ENGINE}={_safe_address(word.removeprefix(f'{_ENGINE}='))}"
        elif place and words[place - 1] == _ENGINE:
            safe[place] = _safe_address(word)
    return safe


def _without_option(words: list[str], flag: str, takes_value: bool) -> list[str]:
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
