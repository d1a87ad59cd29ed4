"""Settings: from ``shinglefold.toml`` and the environment, the environment winning."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from dataclasses import field as made
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from shinglefold.errors import ConfigError, why
from shinglefold.registry import make_scheme
from shinglefold.scheme import CanonOptions, Scheme

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
    no seal. ``given``: where each setting is from that was set (a file, or the variable),
    ``language.CODE.OPTION`` for those of one language.
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
    language: tuple[tuple[str, CanonOptions], ...] = ()
    given: Mapping[str, str] = made(default_factory=dict, compare=False)

    def canon_options(self) -> CanonOptions:
        """Return the options of every language that has none of its own."""
        return CanonOptions(self.mode, self.drop_function_words, self.drop_adjectives, self.min_length)  # type: ignore[arg-type]

    def scheme(self) -> Scheme:
        """Return the scheme these settings describe."""
        return make_scheme(self.preset, self.languages or None, self.canon_options(), dict(self.language))


class Origin(NamedTuple):
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
) -> tuple[Settings, dict[str, Origin]]:
    """Return the settings, and by name where each comes from; see ``load_settings``."""
    table = _read(path)
    settings = _from_table(table, str(path or _FILE))
    origins = {f.name: Origin("default") for f in fields(Settings) if f.name != "given"}
    origins |= {name: Origin("file", str(path or _FILE)) for name in table}
    for name, text in sorted((os.environ if environ is None else environ).items()):
        key = name.removeprefix(_PREFIX).lower()
        if name.startswith(_PREFIX) and key not in _KINDS and (meant := _nearly(key)):
            raise ConfigError(f"unknown setting {name}; did you mean {_PREFIX}{meant.upper()}?")
        if name.startswith(_PREFIX) and key in _KINDS:
            value = {key: _parse(name, text, _KINDS[key])}
            settings = replace(settings, **value, given={**settings.given, key: name})
            origins[key] = Origin("environment", name)
    return settings, origins


def _nearly(key: str) -> str:
    """Return the setting that a mistyped one means, or nothing: variables of other parts begin alike."""
    near = get_close_matches(key, _KINDS, n=1, cutoff=_ALIKE)
    return near[0] if near else ""


def _read(path: str | Path | None) -> dict[str, Any]:
    file = Path(path or _FILE)
    if path is None and not file.exists():
        return {}
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the settings file {file}: {why(error)}; check it") from error


def _from_table(table: Mapping[str, Any], source: str) -> Settings:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KINDS and key != "language":
            raise ConfigError.unknown("setting", key, [*_KINDS, "language"])
        if key != "language":
            values[key] = _checked(key, value, _KINDS[key])
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
    known = [f.name for f in fields(CanonOptions)]
    if not isinstance(table, dict):
        raise ConfigError(f"[language.{code}] must be a table")
    for key in table.keys() - set(known):
        raise ConfigError.unknown(f"option in [language.{code}]", key, known)
    return replace(settings.canon_options(), **{k: _checked(k, v, _KINDS[k]) for k, v in table.items()})


def _checked(key: str, value: Any, kind: type) -> Any:  # noqa: ANN401 - TOML
    if kind is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if type(value) is not kind or kind is tuple:
        shown = f", got {value!r}" if key not in SECRETS else ""
        raise ConfigError(f"{key}: expected {_SAID[kind]}{shown}")
    return value


def _parse(name: str, text: str, kind: type) -> Any:  # noqa: ANN401 - the kind decides
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind is bool and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if kind is int and text.strip().isdecimal():
        return int(text)
    if kind is str:
        return text
    raise ConfigError(f"{name}: expected {_SAID[kind]}, got {text!r}")


_KINDS: Mapping[str, type] = {
    f.name: {"str": str, "int": int, "bool": bool}.get(str(getattr(f.type, "__name__", f.type)), tuple)
    for f in fields(Settings)
    if f.name not in ("language", "given")
}
#: Settings whose values are shown nowhere.
SECRETS = frozenset(f.name for f in fields(Settings) if f.metadata.get("secret"))
_SAID = {str: "a string", int: "a whole number", bool: "true or false", tuple: "a list of strings"}
_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
