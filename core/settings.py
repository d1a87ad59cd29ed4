"""Settings: from ``shinglefold.toml`` and the environment, the environment winning."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from dataclasses import field as made
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from shinglefold.errors import ConfigError, nearest, reason_of
from shinglefold.model.recipe import check_field
from shinglefold.model.scheme import CanonOptions, Scheme
from shinglefold.options.validation import check_known, check_path, check_str
from shinglefold.registry import make_scheme

_PREFIX = "SHINGLEFOLD_"
_FILE = "shinglefold.toml"
#: Two letters changed places in a name of five.
_ALIKE = 0.8


@dataclass(frozen=True, slots=True)
class Settings:
    """What an installation may set once for all commands.

    In the file: these names, and a table ``[language.CODE]`` with canon options for one language. In the
    environment: ``SHINGLEFOLD_`` and the upper-case name. ``languages`` empty means all installed;
    ``workers`` 0 means one per core; ``lexicon_file`` empty means the lexicon is not kept between runs.
    ``seal_key``: seals fingerprints (``hex:…``, ``base64:…`` or other text, of 16 bytes or more); empty means
    no seal. ``cursor_key``: seals cursors of endless paging. ``given``: where each setting comes from that
    was set (a file, or the variable); ``language.CODE.OPTION`` for those of one language.
    """

    preset: str = "default"
    languages: tuple[str, ...] = ()
    mode: str = "lemma"
    drop_function_words: bool = False
    drop_adjectives: bool = False
    min_length: int = 1
    field: str = "dedup"
    data_dir: str = ".shinglefold"
    workers: int = 0
    lexicon_file: str = ""
    seal_key: str = made(default="", repr=False, metadata={"secret": True})
    cursor_key: str = made(default="", repr=False, metadata={"secret": True})
    language: tuple[tuple[str, CanonOptions], ...] = ()
    given: Mapping[str, str] = made(default_factory=dict, compare=False)

    def canon_options(self) -> CanonOptions:
        """Return the options of every language that has none of its own."""
        return CanonOptions(self.mode, self.drop_function_words, self.drop_adjectives, self.min_length)  # type: ignore[arg-type]

    def scheme(self) -> Scheme:
        """Return the scheme these settings describe."""
        return make_scheme(self.preset, self.languages or None, self.canon_options(), dict(self.language))


class SettingOrigin(NamedTuple):
    """Where the value of a setting comes from; ``where`` is the file or the variable, empty for a default."""

    kind: Literal["default", "file", "environment"]
    where: str = ""


def load_settings(path: str | Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings.

    Args:
        path: a TOML file; None takes ``shinglefold.toml`` of the working folder where there is one.
        environ: instead of the process's environment.

    Raises:
        ConfigError: the file can't be read, or it has an unknown key or a wrong value; or a variable is
            nearly a setting.
    """
    return settings_with_origins(path, environ)[0]


def settings_with_origins(
    path: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Settings, dict[str, SettingOrigin]]:
    """Return the settings, and by name where each comes from; see ``load_settings``."""
    check_path("path", path, optional=True)
    table = _read(path)
    settings = _from_table(table, str(path or _FILE))
    origins = {f.name: SettingOrigin("default") for f in fields(Settings) if f.name != "given"}
    origins |= {name: SettingOrigin("file", str(path or _FILE)) for name in table}
    for key, text in prefixed_variables(_PREFIX, os.environ if environ is None else environ).items():
        name = f"{_PREFIX}{key.upper()}"
        if key in _KINDS:
            value = {key: parse_variable(name, text, _KINDS[key])}
            settings = replace(settings, **value, given={**settings.given, key: name})
            origins[key] = SettingOrigin("environment", name)
        # Variables of other parts begin alike.
        elif meant := nearest(key, _KINDS, _ALIKE):
            raise ConfigError(f"unknown setting {name}; did you mean {_PREFIX}{meant.upper()}?")
    # Nothing would be the working folder, as a variable says that a script meant to set.
    check_str(settings.given.get("data_dir", "data_dir"), settings.data_dir)
    check_field(settings.given.get("field", "field"), settings.field)
    return settings, origins


def _read(path: str | Path | None) -> dict[str, Any]:
    file = Path(path or _FILE)
    if path is None and not file.exists():
        return {}
    return read_table(file, "settings file")


def _from_table(table: Mapping[str, Any], source: str) -> Settings:
    check_known("setting", table, [*_KINDS, "language"])
    values = {key: _typed(key, value) for key, value in table.items() if key != "language"}
    settings = Settings(**values, given=_places(table, source))
    own = table.get("language", {})
    if not isinstance(own, dict):
        raise ConfigError("language: expected tables, such as [language.ru]")
    return replace(settings, language=tuple((code, _own(settings, code, own[code])) for code in sorted(own)))


def _places(table: Mapping[str, Any], source: str) -> dict[str, str]:
    """Return of each setting in a file the file; a language's own come as ``language.CODE.OPTION``."""
    own = table.get("language")
    tables = own if isinstance(own, dict) else {}
    known = {code: keys for code, keys in tables.items() if isinstance(keys, dict)}
    names = [f"language.{code}.{key}" for code, keys in known.items() for key in keys]
    return dict.fromkeys([*(name for name in table if name != "language"), *names], source)


def _own(settings: Settings, code: str, table: object) -> CanonOptions:
    options = check_toml_type(f"[language.{code}]", table, dict)
    check_known(f"option in [language.{code}]", options, [f.name for f in fields(CanonOptions)])
    return replace(settings.canon_options(), **{key: _typed(key, value) for key, value in options.items()})


def _typed(key: str, value: object) -> Any:  # noqa: ANN401 - TOML
    return check_toml_type(key, value, _KINDS[key], secret=key in SECRETS)


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


_KINDS = field_types(Settings, "language", "given")
#: Settings whose values are shown nowhere.
SECRETS = frozenset(f.name for f in fields(Settings) if f.metadata.get("secret"))
