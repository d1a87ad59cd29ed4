"""``shinglefold config show``: the settings in force, and where each of them comes from."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Group, Invocation, command, common_options
from shinglefold.cli.framework.output import print_table, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.settings import SettingOrigin, Settings


@click.group(
    "config",
    cls=Group,
    params=list(common_options()),
    examples="""
    shinglefold config show
    """,
)
def config() -> None:
    """Show the settings that commands run with."""


@command(
    "show",
    examples="""
    shinglefold config show
    SHINGLEFOLD_WORKERS=1 shinglefold config show --json
    """,
)
@click.pass_obj
def show(invocation: Invocation, /) -> int:
    """Show every setting, its value, and whether it comes from the file, the environment or the defaults."""
    from shinglefold.engines.http import without_secrets
    from shinglefold.settings import SECRETS, settings_with_origins

    settings, origins = settings_with_origins(invocation.config)
    values = {name: _plain(getattr(settings, name)) for name in origins}
    values |= {name: "(set)" for name in SECRETS if values[name]}
    values["data_dir"] = without_secrets(settings.data_dir)
    scheme = settings.scheme()
    if invocation.json:
        told = {name: {"value": values[name], **_origin(origins[name])} for name in origins}
        write_json({"settings": told, "scheme": scheme.id})
    else:
        print_table(("setting", "value", "from"), _rows(settings, values, origins))
        write_line(f"scheme of these settings: {scheme.id} ({scheme.name})")
    return DONE


config.add_command(show)


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a setting as JSON has it; the options of single languages by their codes."""
    if isinstance(value, tuple) and value and not isinstance(value[0], str):
        return {code: asdict(options) for code, options in value}
    return list(value) if isinstance(value, tuple) else value


def _origin(origin: "SettingOrigin") -> dict[str, str]:
    return {"from": origin.kind, "where": origin.where}


def _rows(
    settings: "Settings", values: Mapping[str, Any], origins: "Mapping[str, SettingOrigin]"
) -> Iterator[tuple[str, str, str]]:
    """Yield settings as one would type them, and what is in force where none is set."""
    for name, value in values.items():
        origin = f"{origins[name].kind} {origins[name].where}".strip()
        if name == "language" and value:
            yield from _of_single(settings, origin)
        elif name == "languages" and not value:
            codes = ",".join(ref.code for ref in settings.scheme().languages)
            yield name, f"all installed: {codes}", origin
        else:
            yield name, _said(name, value), origin


def _of_single(settings: "Settings", origin: str) -> Iterator[tuple[str, str, str]]:
    """Yield the options that single languages have of their own."""
    known = dict(settings.language)
    for name in settings.given:
        table, _, rest = name.partition(".")
        code, _, option = rest.partition(".")
        if table == "language" and code in known:
            yield name, _said(option, getattr(known[code], option)), origin


def _said(name: str, value: Any) -> str:  # noqa: ANN401 - of any setting
    if isinstance(value, list):
        return ",".join(value) or "none"
    if name == "workers" and not value:
        return "0 (one per core)"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return str(value or "none")
