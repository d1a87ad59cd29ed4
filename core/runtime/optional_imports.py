"""Functions compiled by numba, where the extra ``fast`` is installed; numpy does the same without it."""

import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

_log = logging.getLogger("shinglefold.runtime.optional_imports")


def can_compile() -> bool:
    """Tell whether numba is installed, without importing it: that takes half a second."""
    return find_spec("numba") is not None


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
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
