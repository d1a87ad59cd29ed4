"""The options of commands over collections of any size: memory, a folder to work in, fingerprints at hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from shinglefold.cli.hints import again
from shinglefold.cli.options import options
from shinglefold.cli.output import remark

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

scale_options = options(
    click.option(
        "--signed/--texts",
        "signed",
        default=None,
        help="Take the fingerprints that sign wrote, or make them of texts; by default as the first document "
        "of each file says.",
    ),
    click.option(
        "--memory",
        default="4G",
        show_default=True,
        metavar="SIZE",
        help="Memory the work may take; what does not fit is done in files.",
    ),
    click.option(
        "--work",
        metavar="DIR",
        help="Folder for these files, with which a run that was broken off goes on; else they are temporary.",
    ),
    click.option("--restart", is_flag=True, help="Begin anew, whatever an earlier run left in DIR."),
    click.option(
        "--most-shared",
        type=click.IntRange(2),
        default=1000,
        show_default=True,
        metavar="N",
        help="Where work is done in files: documents that may share a supershingle for all their pairs to be "
        "looked at; of more, a few stand for the others.",
    ),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How a collection is worked on, as ``scale_options`` say; by default of texts."""

    signed: bool | None = False
    memory: str = "4G"
    work: str | None = None
    restart: bool = False
    most_shared: int = 1000

    def bytes(self) -> int:
        """Return the memory in bytes.

        Raises:
            UsageError: it is no size, or flags need a folder that is not given.
        """
        if self.restart and self.work is None:
            raise click.UsageError(
                "--restart is of a folder that an earlier run worked in: name it with --work"
            )
        number, unit = self.memory.upper().removesuffix("B"), 1
        if number[-1:] in _UNITS:
            number, unit = number[:-1], _UNITS[number[-1]]
        try:
            size = int(float(number) * unit)
        except (ValueError, OverflowError):
            size = 0
        # Nobody means so little who leaves out the unit.
        if size < 1 << 10:
            raise click.UsageError(f"--memory {self.memory}: give a size such as 500M or 4G")
        return size

    @contextmanager
    def kept(self, arguments: tuple[str, ...]) -> Iterator[None]:
        """Say how a run goes on that ended early, and where there was no room.

        Args:
            arguments: the command, as it was typed.

        Raises:
            Unwritable: the disk is full.
        """
        from shinglefold.errors import Unwritable, is_full

        on = f"the same command goes on from there: {again(arguments, restart=False)}"
        try:
            yield
        except KeyboardInterrupt as error:
            if self.work is not None:
                remark(f"stopped: {error or 'interrupted'}; {on}")
            raise
        except OSError as error:
            if not is_full(error):
                raise
            if self.work is not None:
                raise Unwritable(f"cannot write to {self.work}: the disk is full; make room; {on}") from error
            raise Unwritable(
                "cannot write temporary files: the disk is full; make room, set TMPDIR to a folder on "
                "another disk, or work in a folder of your own: add --work DIR"
            ) from error
