"""What every command has: ``--json``, ``--config``, ``-h`` and examples under its help."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from shinglefold.cli.framework.output import write_line

if TYPE_CHECKING:
    from shinglefold.cli.framework.next_commands import Hints
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.settings import Settings

#: Exit codes; the page docs/cli.md tells them.
DONE, FAILED, MISUSED, PARTLY, INTERRUPTED, PIPE_CLOSED, TERMINATED = 0, 1, 2, 3, 130, 141, 143
HELP = ["-h", "--help"]


def stopped_code(stopped: str) -> int:
    """Return the exit code for a run that ended early, for the reason its summary gives."""
    return {"interrupted": INTERRUPTED, "terminated": TERMINATED}.get(stopped, FAILED)


@dataclass(slots=True)
class Invocation:
    """What the options every command has were set to, and all arguments as they were typed."""

    json: bool = False
    config: str | None = None
    arguments: tuple[str, ...] = ()
    engine: str | None = None

    def settings(self) -> "Settings":
        """Return the settings of the file and the environment.

        Raises:
            ConfigError: a setting is not valid.
        """
        from shinglefold.settings import load_settings

        return load_settings(self.config)

    def asked(self, index: str, engine: str | None, **flags: Any) -> "Asked":  # noqa: ANN401 - Asked's own
        """Return what was asked for of an index.

        Raises:
            ConfigError: a setting or a flag is not valid.
        """
        from shinglefold.cli.session.recipe import Asked

        if engine is not None and "," in engine:
            self._check_several(engine)
        self.engine = engine
        return Asked(index, self.settings(), self.hints(), **flags)

    def _check_several(self, engine: str) -> None:
        """Refuse several addresses of which only the first has a scheme, with the command that was meant."""
        from shinglefold.cli.framework.next_commands import again
        from shinglefold.engines.http import each_with_scheme
        from shinglefold.errors import ConfigError

        if meant := each_with_scheme(engine):
            raise ConfigError(
                "--engine: several addresses are written each with its scheme: "
                f"{again(self.arguments, engine=meant)}"
            )

    def hints(self) -> "Hints":
        """Return what completes commands in messages with the options in force."""
        from shinglefold.cli.framework.next_commands import Hints

        return Hints(self.engine, self.config)


class _Helpful(click.Command):
    """Shows examples under its help as they are typed, and its help as all output is shown."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        kwargs.setdefault("context_settings", {"help_option_names": HELP})
        super().__init__(*args, **kwargs)
        self.examples = tuple(line.strip() for line in examples.strip().splitlines())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, a line each."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option that shows the help; a full disk is told of as for any other output."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _print_help
        return option


def _print_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_line(ctx.get_help())
        ctx.exit()


class Command(_Helpful):
    """A command with the common options; what its help calls FILE or SOURCE, the shell completes as such."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        kwargs["params"] = [*(kwargs.get("params") or ()), *common_options()]
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            named = (parameter.metavar or "").strip("[].")
            if named in _COMPLETED and parameter.type is click.STRING:
                parameter.type = Name(_COMPLETED[named])


class Name(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """A name of a file or a folder, taken as it is: what opens it says what is wrong with it."""

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell, which knows its files."""
        return [CompletionItem(incomplete, type=self._kind)]


#: By what a command's help calls its arguments.
_COMPLETED = {"FILE": "file", "SOURCE": "file", "ADDRESS": "dir"}


class CommandGroup(_Helpful, click.Group):
    """Commands in the order they were given in."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names."""
        return list(self.commands)


#: ``@command(examples=…)`` above a function makes it a command.
command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)


def common_options() -> tuple[click.Option, ...]:
    """Return the options every command has."""
    return (
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_set_json,
            help="Write JSON to standard output.",
        ),
        click.Option(
            ["--config"],
            metavar="FILE",
            expose_value=False,
            callback=_set_config,
            help="Settings file; by default shinglefold.toml of the working folder.",
        ),
    )


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Invocation).json |= value


def _set_config(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Invocation).config = value
