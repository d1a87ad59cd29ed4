"""Imports on demand: numba where the extra ``fast`` is installed, and the public names of a package."""

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_log = logging.getLogger("shinglefold.runtime.optional_imports")


def numba_installed() -> bool:
    """Tell whether numba is installed, without importing it: that takes half a second."""
    return find_spec("numba") is not None


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled; it is kept on disk, so that the next process only loads it.

    Raises:
        ImportError: numba is not installed, or does not fit the numpy that is.
    """
    import numba

    try:
        kept: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError as error:
        # No folder can be written to.
        _log.info("compiled code can't be kept between runs: %s", error)
        kept = numba.njit(function)
    return kept


def lazy_attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package.

    Args:
        homes: of each public name the module that has it.
    """

    def look_up(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return look_up
