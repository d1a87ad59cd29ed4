"""The seal of an index for a command: the key of the settings, held against the index."""

from typing import TYPE_CHECKING

from shinglefold.cli.framework.next_commands import chain
from shinglefold.cli.framework.output import printable, remark
from shinglefold.errors import ConfigError
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal, check_sealed

if TYPE_CHECKING:
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.settings import Settings


def seal_of_settings(settings: "Settings") -> Seal | None:
    """Return the seal of the key that is set, None where none is.

    Raises:
        ConfigError: the key is not valid.
    """
    return Seal.parse(settings.seal_key) if settings.seal_key else None


def seal_of_index(asked: "Asked", recipe: Recipe) -> Seal | None:
    """Return the seal of an index, None where it is not sealed; that is said where a key is set.

    Raises:
        ConfigError: the index is sealed, and the key that is set is another one, or none is.
    """
    seal = seal_of_settings(asked.settings)
    if recipe.sealed:
        check_sealed(recipe.sealed, seal, f"index {asked.index!r}")
        return seal
    if seal is not None:
        change = [asked.hints.command("setup", asked.index, seal=True), asked.command("backfill")]
        told = f"note: index {asked.index!r} is not sealed, though a key is set; to seal it: {chain(change)}"
        remark(printable(told))
    return None


def needed_seal(settings: "Settings") -> Seal:
    """Return the seal of the key that is set.

    Raises:
        ConfigError: none is set, or it is not valid.
    """
    seal = seal_of_settings(settings)
    if seal is None:
        raise ConfigError(
            "--seal needs a key: set SHINGLEFOLD_SEAL_KEY, or seal_key in the settings file, to a text of 16 "
            "bytes or more that nobody else knows"
        )
    return seal
