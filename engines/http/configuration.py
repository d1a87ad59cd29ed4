"""Connections from the environment and from a file, the address given winning over both."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shinglefold.engines.http.connection import SECRETS, Connection, parse_urls
from shinglefold.errors import ConfigError

_PREFIX = "SHINGLEFOLD_ENGINE_"
_TRUTH = MappingProxyType({"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False})


def load_connection(
    urls: str | Iterable[str] | None = None,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """Return a connection, from a file, then the environment, then the address given; the later wins.

    In the file (TOML): the names of ``Connection``, with ``url`` (one or a list) for the addresses. In the
    environment: ``SHINGLEFOLD_ENGINE_`` and the upper-case name; ``SHINGLEFOLD_ENGINE_FILE`` names the file.
    In both, ``password_file``, ``api_key_file`` and ``bearer_token_file`` name files that hold the secret
    alone. Credentials go to whatever address is in force.

    Raises:
        ConfigError: a key or a value is not valid, or a file can't be read.
    """
    environ = os.environ if environ is None else environ
    named = {
        name.removeprefix(_PREFIX).lower(): text for name, text in environ.items() if name.startswith(_PREFIX)
    }
    file = file or named.pop("file", None)
    named.pop("file", None)
    values = _checked(_read(file), f"{file}") if file else {}
    values |= _checked({name: _parsed(name, text) for name, text in sorted(named.items())}, "environment")
    if urls is not None:
        values |= parse_urls(urls)
    return Connection(**{"urls": (), **values})


def _read(file: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        # The parser's words may quote the file, which holds secrets.
        raise ConfigError(f"connection file {file} is no TOML; check its quotes and brackets") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"connection file {file}: {type(error).__name__}; make it readable") from error


def _checked(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields a table says, their types checked; no value is named in an error."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "url":
            values |= parse_urls(value)
        elif name in _FILES:
            values[_FILES[name]] = _secret(name, value)
        elif name in _KINDS:
            values[name] = _typed(name, value, where)
        else:
            raise ConfigError.unknown(f"key of a connection ({where})", name, ["url", *_KINDS, *_FILES])
    return values


def _typed(name: str, value: object, where: str) -> object:
    kind = _KINDS[name]
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{name} ({where}): expected {kind.__name__}, got {type(value).__name__}")
    return value


def _parsed(name: str, text: str) -> object:
    kind = _KINDS.get(name, str)
    try:
        return _TRUTH[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ConfigError(f"{_PREFIX}{name.upper()}: expected {kind.__name__}, got {text!r}") from None


def _secret(name: str, path: object) -> str:
    try:
        return Path(str(path)).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} {path}: {type(error).__name__}; make it readable") from error


_KINDS: Mapping[str, type] = MappingProxyType(
    {f.name: type(f.default) for f in fields(Connection) if f.default is not MISSING}
)
_FILES: Mapping[str, str] = MappingProxyType({f"{name}_file": name for name in SECRETS})
