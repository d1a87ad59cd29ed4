"""Settings from ``shinglefold.toml`` and the environment; the environment wins.

The values of secret settings never appear in messages.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from dataclasses import field as made
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from shinglefold.errors import ConfigError, nearest, reason_of
from shinglefold.model.recipe import FIELD, check_field
from shinglefold.model.scheme import CanonOptions, Scheme
from shinglefold.options.validation import check_known, check_path, check_str, check_workers

_PREFIX = "SHINGLEFOLD_"
_FILE = "shinglefold.toml"
#: The least similarity of a mistyped name: that of five letters with two of them swapped.
_ALIKE = 0.8


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults of an installation for all commands.

    The file has these names, and a table ``[language.CODE]`` with canon options of one language. Variables
    are ``SHINGLEFOLD_`` and the upper-case name.

    Attributes:
        languages: empty for all installed ones.
        workers: 0 for one per core.
        field: the field of fingerprints of new indices. Queries that name no field leave out names that begin
            with ``_``.
        lexicon_file: empty to keep no lexicon between runs.
        seal_key: seals fingerprints: ``hex:…``, ``base64:…`` or other text, of 16 bytes or more; empty for no
            seal.
        cursor_key: encrypts the cursors of endless paging.
        given: the file or variable of each setting that was set; ``language.CODE.OPTION`` for those of one
            language.
    """

    preset: str = "default"
    languages: tuple[str, ...] = ()
    mode: str = "lemma"
    drop_function_words: bool = False
    drop_adjectives: bool = False
    min_length: int = 1
    field: str = FIELD
    data_dir: str = ".shinglefold"
    workers: int = 0
    lexicon_file: str = ""
    seal_key: str = made(default="", repr=False, metadata={"secret": True})
    cursor_key: str = made(default="", repr=False, metadata={"secret": True})
    language: tuple[tuple[str, CanonOptions], ...] = ()
    given: Mapping[str, str] = made(default_factory=dict, compare=False)

    def canon_options(self) -> CanonOptions:
        """Return the canon options of languages without a table of their own."""
        return CanonOptions(self.mode, self.drop_function_words, self.drop_adjectives, self.min_length)  # type: ignore[arg-type]

    def scheme(self) -> Scheme:
        """Return the scheme these settings describe."""
        # Imported here: it needs numpy, and an address is read without it.
        from shinglefold.registry import codes_with_any, make_scheme

        codes = codes_with_any(self.languages or None)
        return make_scheme(self.preset, codes, self.canon_options(), dict(self.language))


class SettingOrigin(NamedTuple):
    """The origin of a setting's value; ``where`` is the file or the variable, empty for a default."""

    kind: Literal["default", "file", "environment"]
    where: str = ""


def load_settings(path: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings.

    Args:
        path: a TOML file; by default ``shinglefold.toml`` in the working folder, if there is one.
        environ: replaces the environment of the process.

    Raises:
        ConfigError: the file can't be read, or has an unknown key or a wrong value; or the name of a variable
            looks like a mistyped setting.
    """
    return settings_with_origins(path, environ)[0]


def settings_with_origins(
    path: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Settings, dict[str, SettingOrigin]]:
    """Return the settings, and the origin of each by name; see ``load_settings``."""
    table = _read(None if path is None else check_path("path", path))
    settings = _from_table(table, str(path or _FILE))
    origins = {f.name: SettingOrigin("default") for f in fields(Settings) if f.name != "given"}
    origins |= {name: SettingOrigin("file", str(path or _FILE)) for name in table}
    for key, text in prefixed_variables(_PREFIX, os.environ if environ is None else environ).items():
        name = f"{_PREFIX}{key.upper()}"
        if key in _KINDS:
            value = {key: parse_variable(name, text, _KINDS[key])}
            settings = replace(settings, **value, given={**settings.given, key: name})
            origins[key] = SettingOrigin("environment", name)
        # Variables with other meanings have the same prefix.
        elif meant := nearest(key, _KINDS, _ALIKE):
            raise ConfigError(f"unknown setting {name}; did you mean {_PREFIX}{meant.upper()}?")
    # An unset shell variable makes an empty name, which would mean the working folder.
    check_str(_origin_name("data_dir", origins), settings.data_dir)
    check_field(_origin_name("field", origins), settings.field)
    check_workers(_origin_name("workers", origins), settings.workers)
    return settings, origins


def _origin_name(setting: str, origins: Mapping[str, SettingOrigin]) -> str:
    """Return the name of a setting in messages: its variable, or with its file."""
    kind, where = origins[setting]
    return {"environment": where, "file": f"{setting} (in {where})"}.get(kind, setting)


def _read(path: str | Path | None) -> dict[str, Any]:
    file = Path(path or _FILE)
    if path is None and not file.exists():
        return {}
    return read_table(file, "settings file")


def _from_table(table: Mapping[str, Any], source: str) -> Settings:
    check_known(f"setting (in {source})", table, [*_KINDS, "language"])
    values = {key: _check_value(key, value, source) for key, value in table.items() if key != "language"}
    settings = Settings(**values, given=_origins(table, source))
    own = table.get("language", {})
    if not isinstance(own, dict):
        raise ConfigError("language: expected tables, such as [language.ru]")
    return replace(settings, language=tuple((code, _own(settings, code, own[code])) for code in sorted(own)))


def _origins(table: Mapping[str, Any], source: str) -> dict[str, str]:
    """Return the file for each setting in it; options of a language are named ``language.CODE.OPTION``."""
    own = table.get("language")
    tables = own if isinstance(own, dict) else {}
    known = {code: keys for code, keys in tables.items() if isinstance(keys, dict)}
    names = [f"language.{code}.{key}" for code, keys in known.items() for key in keys]
    return dict.fromkeys([*(name for name in table if name != "language"), *names], source)


def _own(settings: Settings, code: str, table: object) -> CanonOptions:
    options = check_toml_type(f"[language.{code}]", table, dict)
    check_known(f"option in [language.{code}]", options, [f.name for f in fields(CanonOptions)])
    return replace(
        settings.canon_options(),
        **{key: _check_value(key, value, f"[language.{code}]") for key, value in options.items()},
    )


def _check_value(key: str, value: object, place: str) -> Any:  # noqa: ANN401 - TOML
    return check_toml_type(f"{key} (in {place})", value, _KINDS[key], secret=key in SECRETS)


_TYPE_NAMES: Mapping[type, str] = MappingProxyType(
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
_BOOLS = MappingProxyType({"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False})


def field_types(options: type, *excluded: str) -> Mapping[str, type]:
    """Return the type of each field of a dataclass, without the excluded ones."""
    found = {f.name: getattr(f.type, "__origin__", f.type) for f in fields(options) if f.name not in excluded}
    return MappingProxyType({name: kind for name, kind in found.items() if isinstance(kind, type)})


def read_table(file: str | Path, what: str, *, secret: bool = False) -> dict[str, Any]:
    """Return the table in a TOML file.

    Args:
        what: the kind of file, for messages.
        secret: messages must not quote the file.

    Raises:
        ConfigError: it can't be read.
    """
    # Imported here: usually there is no file.
    import tomllib

    try:
        return tomllib.loads(Path(file).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # The parser's message may quote the file.
        quotes = secret and not isinstance(error, OSError)
        reason = "no TOML; check its quotes and brackets" if quotes else f"{reason_of(error)}; check it"
        raise ConfigError(f"cannot read the {what} {file}: {reason}") from (None if quotes else error)


def read_secret(name: str, path: object) -> str:
    """Return the secret that is alone in a file; ``name`` is that of the setting, for messages.

    Raises:
        ConfigError: it can't be read, or is empty.
    """
    # Editors of Windows begin a file with a byte-order mark.
    try:
        secret = Path(str(path)).read_text("utf-8-sig").strip()
    except OSError as error:
        raise ConfigError(f"cannot read {name} {path}: {reason_of(error)}; make it readable") from error
    except UnicodeDecodeError:
        # The error would quote the secret.
        raise ConfigError(f"{name} {path} is not in UTF-8: save it so") from None
    if not secret:
        raise ConfigError(f"{name} {path} is empty: write the secret into it")
    return secret


def check_toml_type(name: str, value: object, kind: type, *, secret: bool = False) -> Any:  # noqa: ANN401 - TOML
    """Return a TOML value; convert lists to tuples, and whole numbers to floats if necessary.

    Raises:
        ConfigError: it has the wrong type.
    """
    if kind is tuple and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or kind is tuple:
        raise ConfigError(f"{name}: expected {_TYPE_NAMES[kind]}, got {_display(value, secret)}")
    return value


def parse_variable(name: str, text: str, kind: type) -> Any:  # noqa: ANN401 - the kind decides
    """Parse the text of a variable; items of a tuple are separated by commas.

    Raises:
        ConfigError: it is not of that type.
    """
    try:
        if kind is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return _BOOLS[text.strip().lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ConfigError(f"{name}: expected {_TYPE_NAMES[kind]}, got {text!r}") from None


def prefixed_variables(prefix: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with a prefix, by the rest of their names in lower case."""
    return {
        name.removeprefix(prefix).lower(): text
        for name, text in sorted(environ.items())
        if name.startswith(prefix)
    }


def _display(value: object, secret: bool) -> str:
    kind: type = type(value)
    return _TYPE_NAMES.get(kind, kind.__name__) if secret else repr(value)


_KINDS = field_types(Settings, "language", "given")
#: Settings whose values are never shown.
SECRETS = frozenset(f.name for f in fields(Settings) if f.metadata.get("secret"))
