"""Connections from the environment and from a file, the address given winning over both."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shinglefold.engines.http.connection import SECRETS, Connection, parse_urls
from shinglefold.errors import ConfigError
from shinglefold.options.config_loader import (
    check_toml_type,
    field_types,
    parse_variable,
    prefixed_variables,
    read_table,
)

_PREFIX = "SHINGLEFOLD_ENGINE_"


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
    named = prefixed_variables(_PREFIX, os.environ if environ is None else environ)
    file = file or named.pop("file", None)
    named.pop("file", None)
    values = _checked(read_table(file, "connection file", secret=True), f"{file}") if file else {}
    values |= _checked({name: _parsed(name, text) for name, text in named.items()}, "environment")
    if urls is not None:
        values |= parse_urls(urls)
    return Connection(**{"urls": (), **values})


def named_addresses(environ: Mapping[str, str] | None = None) -> str:
    """Return the addresses that the environment or its file names, separated by commas; empty where none is.

    Raises:
        ConfigError: as ``load_connection``.
    """
    environ = os.environ if environ is None else environ
    if not any(environ.get(f"{_PREFIX}{name}") for name in ("URL", "FILE")):
        return ""
    return ",".join(load_connection(environ=environ).urls)


def _checked(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields a table says, their types checked; no value is named in an error."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "url":
            values |= parse_urls(value)
        elif name in _FILES:
            values[_FILES[name]] = _secret(name, value)
        elif name in _KINDS:
            values[name] = check_toml_type(f"{name} ({where})", value, _KINDS[name], secret=True)
        else:
            raise ConfigError.unknown(f"key of a connection ({where})", name, ["url", *_KINDS, *_FILES])
    return values


def _parsed(name: str, text: str) -> object:
    return parse_variable(f"{_PREFIX}{name.upper()}", text, _KINDS.get(name, str))


def _secret(name: str, path: object) -> str:
    try:
        return Path(str(path)).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} {path}: {type(error).__name__}; make it readable") from error


_KINDS = field_types(Connection, "urls")
_FILES: Mapping[str, str] = MappingProxyType({f"{name}_file": name for name in SECRETS})
