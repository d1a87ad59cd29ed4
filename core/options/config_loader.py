"""The one loader of settings: typed values of a dataclass from TOML files and from the environment.

What is secret is never shown: neither its value nor the file around it.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shinglefold.errors import ConfigError, reason_of

_SAID: Mapping[type, str] = MappingProxyType(
    {
        str: "a string",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        tuple: "a list of strings",
        dict: "a table",
        list: "a list",
    }
)
_TRUTH = MappingProxyType({"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False})


def field_types(options: type, *beside: str) -> Mapping[str, type]:
    """Return of each field of a dataclass the type its value must have, but for those ``beside``."""
    found = {f.name: getattr(f.type, "__origin__", f.type) for f in fields(options) if f.name not in beside}
    return MappingProxyType({name: kind for name, kind in found.items() if isinstance(kind, type)})


def read_table(file: str | Path, what: str, *, secret: bool = False) -> dict[str, Any]:
    """Return the table in a TOML file.

    Args:
        what: what the file is, for messages. ``secret``: whether a message may quote nothing of it.

    Raises:
        ConfigError: it can't be read.
    """
    # Mostly there is no file.
    import tomllib

    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # The parser's words may quote the file.
        quotes = secret and not isinstance(error, OSError)
        said = "no TOML; check its quotes and brackets" if quotes else f"{reason_of(error)}; check it"
        raise ConfigError(f"cannot read the {what} {file}: {said}") from (None if quotes else error)


def check_toml_type(name: str, value: object, kind: type, *, secret: bool = False) -> Any:  # noqa: ANN401 - TOML
    """Return a value of TOML as the type it must have.

    Raises:
        ConfigError: it has another.
    """
    if kind is tuple and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or kind is tuple:
        raise ConfigError(f"{name}: expected {_SAID[kind]}, got {_shown(value, secret)}")
    return value


def parse_variable(name: str, text: str, kind: type) -> Any:  # noqa: ANN401 - the kind decides
    """Return the text of a variable as the type it must have; several are parted by commas.

    Raises:
        ConfigError: it says none of that type.
    """
    try:
        if kind is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return _TRUTH[text.strip().lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ConfigError(f"{name}: expected {_SAID[kind]}, got {text!r}") from None


def prefixed_variables(prefix: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that begin with a prefix: of the rest of each name, in lower case, the text."""
    return {
        name.removeprefix(prefix).lower(): text
        for name, text in sorted(environ.items())
        if name.startswith(prefix)
    }


def _shown(value: object, secret: bool) -> str:
    kind: type = type(value)
    return _SAID.get(kind, kind.__name__) if secret else repr(value)
