"""Imports on demand: compilation by numba, and the public names of a package."""

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_log = logging.getLogger("shinglefold.runtime.optional_imports")


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with numba; the code is cached on disk for later processes.

    Raises:
        ImportError: numba is not installed, or does not fit the numpy that is.
    """
    import numba

    try:
        kept: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError as error:
        # numba finds no writable folder for its cache.
        _log.info("compiled code can't be kept between runs: %s", error)
        kept = numba.njit(function)
    return kept


def lazy_attributes(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package, which imports a public name at its first use.

    Args:
        names: the public names of each module, with spaces between them; ``.rules`` is in the package, and
            an attribute of it.
    """
    homes = {name: module for module, several in names.items() for name in several.split()}

    def look_up(name: str) -> object:
        if name in homes:
            return getattr(import_module(homes[name], package), name)
        if (module := f".{name}") in names:
            return import_module(module, package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return look_up
