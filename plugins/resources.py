"""Word lists of the built-in languages, and checks that their optional dependencies are installed."""

from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.util import find_spec

from shinglefold.errors import MissingExtra


def read_lines(code: str, name: str) -> tuple[str, ...]:
    """Return the lines of a file in the folder of a language, without comments (``#``) and blank lines."""
    lines = files(f"shinglefold.plugins.{code}").joinpath(name).read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def read_words(code: str, name: str) -> frozenset[str]:
    """Return the words of a file in the folder of a language."""
    return frozenset(word for line in read_lines(code, name) for word in line.split())


def require(extra: str, language: str, *modules: str) -> None:
    """Check that modules are installed, without importing them.

    Raises:
        MissingExtra: one is not.
    """
    if any(find_spec(module) is None for module in modules):
        raise MissingExtra(extra, language)


def distribution_version(extra: str, language: str, distribution: str) -> str:
    """Return the version of an installed distribution, without importing it.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return version(distribution)
    except PackageNotFoundError as error:
        raise MissingExtra(extra, language) from error
