"""Options that several commands share."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shinglefold.cli.shared.output import remark
from shinglefold.model.profiles import PROFILES, profile_of

if TYPE_CHECKING:
    from shinglefold.cli.shared.command import Invocation
    from shinglefold.ingest.processors.texts import NeverDiffer
    from shinglefold.model.scheme import Scheme

Function = TypeVar("Function", bound=Callable[..., Any])


class NumberRange(click.FloatRange):
    """A range of numbers without NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's own
        """Return the number.

        Raises:
            BadParameter: it is not a number, or out of range.
        """
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def options(*decorators: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return one decorator for several options, in the order of the help."""

    def decorate(function: Function) -> Function:
        return reduce(lambda inner, decorator: decorator(inner), reversed(decorators), function)

    return decorate


def pipeline_option(by_default: str) -> Callable[[Function], Function]:
    """Return the option ``--pipeline``; ``by_default`` is the end of its help."""
    return click.option(
        "--pipeline", metavar="FILE", help=f"Ingest pipeline as JSON; by default {by_default}."
    )


def fields_option(what: str, by_default: str) -> Callable[[Function], Function]:
    """Return the option ``--field``; ``what`` and ``by_default`` are parts of its help."""
    return click.option(
        "--field",
        "fields",
        multiple=True,
        metavar="FIELD",
        help=f"{what}; repeat it for more. By default {by_default}.",
    )


title_field_option = click.option(
    "--title-field", default="title", show_default=True, metavar="FIELD", help="Field of titles."
)
preset_option = click.option(
    "--preset", metavar="NAME", help="Scheme: default, compact, once, classic or fetterly."
)
html_option = click.option(
    "--html", is_flag=True, help="Treat every document as HTML, not only those whose format says so."
)


def listen_option(default: str) -> Callable[[Function], Function]:
    """Return the option ``--listen``."""
    return click.option(
        "--listen",
        default=default,
        show_default=True,
        metavar="HOST:PORT",
        help="Where to listen; port 0 takes a free one.",
    )


def admin_token_option(what: str) -> Callable[[Function], Function]:
    """Return the option ``--admin-token``; ``what`` is its help."""
    return click.option(
        "--admin-token", envvar="SHINGLEFOLD_ADMIN_TOKEN", default="", metavar="TOKEN", help=what
    )


workers_option = click.option(
    "--workers", type=click.IntRange(0, 1024), metavar="N", help="Worker processes; 0 means one per core."
)


def text_options(whose: str, language: str) -> Callable[[Function], Function]:
    """Return the options of texts on the command line: text or file, format, encoding, language.

    Args:
        whose: the help of ``--text``.
        language: the end of the help's words "Language …".
    """
    return options(
        click.option("--text", is_flag=True, help=f"{whose}."),
        click.option(
            "--format",
            "kind",
            type=click.Choice(["auto", "html", "text"]),
            default="auto",
            show_default=True,
            help="Format of a file; auto goes by its name.",
        ),
        click.option(
            "--encoding",
            metavar="NAME",
            default="",
            help="Encoding; by default what the text declares, else UTF-8.",
        ),
        click.option(
            "--language", metavar="CODE", help=f"Language {language}; by default chosen word by word."
        ),
    )


def threshold_options(
    who: str, least_shared: int = 1, shared_by_default: str = "the scheme's"
) -> Callable[[Function], Function]:
    """Return the thresholds of a decision.

    Args:
        who: what must reach them, such as ``a pair``.
        least_shared: the least value of ``--min-shared``.
    """
    return options(
        click.option(
            "--min-resemblance",
            type=NumberRange(0, 1),
            metavar="SHARE",
            help=f"Estimated resemblance that {who} must reach; by default the scheme's.",
        ),
        click.option(
            "--min-shared",
            type=click.IntRange(least_shared, 1024),
            metavar="K",
            help=f"Supershingles that {who} must share; by default {shared_by_default}.",
        ),
        click.option(
            "--min-length-ratio",
            type=NumberRange(0, 1),
            metavar="SHARE",
            help=f"Ratio of lengths that {who} must reach; by default the scheme's.",
        ),
    )


def verify_by_options(who: str, nominated: str) -> Callable[[Function], Function]:
    """Return the options ``--verify`` and ``--min-similarity``.

    Args:
        who: what is decided on, such as ``a pair``.
        nominated: what makes it a candidate, such as ``shares supershingles``.
    """
    return options(
        click.option(
            "--verify",
            type=click.Choice(["keywords", "signature", "text"]),
            help=f"What decides on {who} that {nominated}; by default what a given threshold belongs to, "
            "else the scheme's.",
        ),
        click.option(
            "--min-similarity",
            type=NumberRange(0, 1),
            metavar="SHARE",
            help=f"Edit similarity of the words that {who} must reach if texts decide; by default "
            "the scheme's.",
        ),
    )


#: What must not differ in copies; a profile sets it, too.
content_options = options(
    click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        help="Kind of content, which sets what it needs: pages (the default), products, chunks, messages.",
    ),
    click.option(
        "--never-differ",
        multiple=True,
        metavar="WHAT",
        help="What copies must have in common: numbers, letters (sizes and single letters), names, or a "
        "FIELD; repeat it for more. By default that of the profile.",
    ),
)
decision_options = options(verify_by_options("a pair", "shares supershingles"), threshold_options("a pair"))
engine_option = click.option(
    "--engine",
    metavar="ADDRESS",
    help="Address of a server, or folder of the embedded engine; by default the setting data_dir.",
)
engine_options = options(
    click.option("--index", metavar="NAME", default="pages", show_default=True, help="Name of the index."),
    engine_option,
)


def chosen_scheme(
    invocation: "Invocation",
    preset: str | None = None,
    profile: str | None = None,
    **decision: Any,  # noqa: ANN401
) -> "Scheme":
    """Return the scheme of the settings, with the preset, the profile and the decision of the command line.

    Raises:
        ConfigError: there is no such preset, or a value is not valid.
    """
    settings = invocation.settings()
    if preset is not None:
        settings = replace(settings, preset=preset)
    given = {name: value for name, value in decision.items() if value is not None}
    own = dict(profile_of(profile or "").decision)
    if "min_similarity" in given:
        # The command line chooses what decides.
        own = {}
    given = own | given
    scheme = settings.scheme().with_options(**given)
    if not settings.languages:
        note_missing_languages(scheme)
    return scheme


def chosen_facts(never_differ: Sequence[str], profile: str | None) -> "NeverDiffer":
    """Return what copies must have in common, from the options of the command line."""
    from shinglefold.ingest.processors.texts import NeverDiffer

    return NeverDiffer.parse(never_differ or profile_of(profile or "").never_differ, "--never-differ")


def note_missing_languages(scheme: "Scheme") -> None:
    """Write a note about languages that the scheme lacks because their dictionaries are not installed."""
    from shinglefold.registry import installed_languages, usable

    # Skipped if no language is missing, because looking for dictionaries takes time.
    if installed_languages().keys() == {reference.code for reference in scheme.languages}:
        return
    missing = usable()[1]
    extras = ",".join(dict.fromkeys(error.extra for error in missing.values()))
    remark(
        f"note: left out because their dictionaries are not installed: {', '.join(missing)}; their words "
        f"are compared as written. pip install 'shinglefold[{extras}]' adds them, which makes another scheme"
    )
