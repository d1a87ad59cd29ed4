"""``shinglefold plugins``: the installed languages and whether they can be used."""

from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import print_table, write_json

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@command(
    examples="""
    shinglefold plugins
    shinglefold plugins --json
    """
)
@click.pass_obj
def plugins(invocation: Invocation, /) -> int:
    """List the installed languages.

    Shows scripts, unit, modes, version and distribution of each, and what an unusable one lacks.
    """
    from shinglefold.registry import installed

    found = [describe(point) for point in installed().values()]
    if invocation.json:
        write_json({"languages": found})
    else:
        _print(found)
    return DONE


def describe(point: "EntryPoint") -> dict[str, Any]:
    """Return what is known of a language; what is wrong with it stands in ``problem``, it is not raised."""
    from shinglefold.errors import MissingExtra, ShinglefoldError
    from shinglefold.model.scheme import CanonOptions
    from shinglefold.registry import language_class

    told: dict[str, Any] = {"code": point.name, "plugin": point.value, "distribution": _distribution(point)}
    try:
        cls = language_class(point.name)
        told |= {"scripts": sorted(cls.scripts), "unit": cls.unit, "modes": sorted({*cls.modes, "surface"})}
        cls(CanonOptions())
        # Only now: the version of a dictionary can't be told where it is not installed.
        told["version"] = cls.version()
    except MissingExtra as error:
        return {**told, "usable": False, "problem": str(error), "install": _pip(error.extra)}
    except ShinglefoldError as error:
        return {**told, "usable": False, "problem": str(error)}
    except Exception as error:
        # A stranger's plugin may raise anything; the others are still to be listed.
        return {**told, "usable": False, "problem": f"{type(error).__name__}: {error}"}
    return {**told, "usable": True}


def _distribution(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""


def _pip(extra: str) -> str:
    return f"pip install 'shinglefold[{extra}]'"


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
