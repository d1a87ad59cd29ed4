"""``shinglefold info``: show the engine, the settings and the languages in use."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import print_table, write_json, write_line
from shinglefold.errors import MissingExtra, ShinglefoldError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from shinglefold.settings import SettingOrigin, Settings


@command(
    examples="""
    shinglefold info
    SHINGLEFOLD_WORKERS=1 shinglefold info --json
    """
)
@click.pass_obj
def info(invocation: Invocation, /) -> int:
    """Show the engine, the settings and the languages in use.

    Each setting has its value and its origin: the file, the environment or the defaults. Each installed
    language has its scripts, unit, modes, version and distribution; an unusable one has what it lacks.
    """
    from shinglefold.engines.http.connection import without_secrets
    from shinglefold.registry import installed
    from shinglefold.settings import SECRETS, settings_with_origins

    settings, origins = settings_with_origins(invocation.config)
    values = {name: _plain(getattr(settings, name)) for name in origins}
    values |= {name: "(set)" for name in SECRETS if values[name]}
    values["data_dir"] = without_secrets(settings.data_dir)
    engine = without_secrets(invocation.target("*", None).where)
    languages = [_describe(point) for point in installed().values()]
    scheme, problem = _scheme(settings)
    if invocation.json:
        shown = {
            name: {"value": values[name], "from": origins[name].kind, "where": origins[name].where}
            for name in origins
        }
        write_json({"engine": engine, "settings": shown, **scheme, "languages": languages})
        return DONE
    write_line(f"engine: {engine}\n")
    print_table(("setting", "value", "from"), _rows(settings, values, origins, languages))
    write_line(f"scheme of these settings: {problem or scheme['scheme']} ({settings.preset})\n")
    _print(languages)
    return DONE


def _scheme(settings: "Settings") -> tuple[dict[str, Any], str]:
    """Return the id of the scheme that the settings describe, or why there is none."""
    try:
        return {"scheme": settings.scheme().id}, ""
    except ShinglefoldError as error:
        return {"scheme": None, "problem": str(error)}, f"none: {error}"
    except Exception as error:
        # A plugin may raise anything.
        problem = f"{type(error).__name__}: {error}"
        return {"scheme": None, "problem": problem}, f"none: {problem}"


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a setting as JSON; the options of languages by code."""
    if isinstance(value, tuple) and value and not isinstance(value[0], str):
        return {code: asdict(options) for code, options in value}
    return list(value) if isinstance(value, tuple) else value


def _rows(
    settings: "Settings",
    values: Mapping[str, Any],
    origins: "Mapping[str, SettingOrigin]",
    languages: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, str, str]]:
    """Yield the settings as typed in a file, and the values in force of those that are not set."""
    for name, value in values.items():
        origin = f"{origins[name].kind} {origins[name].where}".strip()
        if name == "language" and value:
            yield from _language_rows(settings, origin)
        elif name == "languages" and not value:
            codes = ",".join(one["code"] for one in languages if one["usable"])
            yield name, f"all installed: {codes}", origin
        else:
            yield name, _as_typed(name, value), origin


def _language_rows(settings: "Settings", origin: str) -> Iterator[tuple[str, str, str]]:
    """Yield the options that are set for single languages."""
    known = dict(settings.language)
    for name in settings.given:
        table, _, rest = name.partition(".")
        code, _, option = rest.partition(".")
        if table == "language" and code in known:
            yield name, _as_typed(option, getattr(known[code], option)), origin


def _as_typed(name: str, value: Any) -> str:  # noqa: ANN401 - of any setting
    if isinstance(value, list):
        return ",".join(value) or "none"
    if name == "workers" and not value:
        return "0 (one per core)"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return str(value or "none")


def _describe(point: "EntryPoint") -> dict[str, Any]:
    """Return the properties of a language; an error is not raised, but returned in ``problem``."""
    from shinglefold.model.scheme import CanonOptions
    from shinglefold.registry import language_class

    distribution = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    shown: dict[str, Any] = {"code": point.name, "plugin": point.value, "distribution": distribution}
    try:
        cls = language_class(point.name)
        shown |= {"scripts": sorted(cls.scripts), "unit": cls.unit, "modes": sorted({*cls.modes, "surface"})}
        cls(CanonOptions())
        # Last, as the version of a missing dictionary is unknown.
        shown["version"] = cls.version()
    except MissingExtra as error:
        return {
            **shown,
            "usable": False,
            "problem": str(error),
            "install": f"pip install 'shinglefold[{error.extra}]'",
        }
    except ShinglefoldError as error:
        return {**shown, "usable": False, "problem": str(error)}
    except Exception as error:
        # A plugin may raise anything.
        return {**shown, "usable": False, "problem": f"{type(error).__name__}: {error}"}
    return {**shown, "usable": True}


def _print(found: list[dict[str, Any]]) -> None:
    print_table(
        ("language", "scripts", "unit", "modes", "version", "from", "usable"),
        [
            (
                one["code"],
                " ".join(one.get("scripts", ())),
                one.get("unit", ""),
                " ".join(one.get("modes", ())),
                one.get("version", ""),
                one["distribution"],
                "yes" if one["usable"] else f"no: {one.get('install', one['problem'])}",
            )
            for one in found
        ],
    )
