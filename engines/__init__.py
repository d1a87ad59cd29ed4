"""Where documents are kept: one ``Engine`` contract, and the engines that fulfil it."""

from pathlib import Path
from typing import Any

from shinglefold.contracts import Engine
from shinglefold.errors import EngineError

__all__ = ["open_engine"]

_EMBEDDED = "embedded:"


def open_engine(where: str | Path, canonicalizer: Any) -> Engine:  # noqa: ANN401 - a Canonicalizer or a callable
    """Return the engine that an address names.

    Args:
        where: a folder, as a path or as ``embedded:PATH``; it is made when the first index is.
        canonicalizer: what makes tokens of text for searching: a ``Canonicalizer`` or a callable
            ``text -> list[Token]``.

    Raises:
        EngineError: the address names an engine there is no adapter for.
        MissingExtra: the engine's library is not installed.
    """
    address = str(where)
    if address.startswith(("http://", "https://")):
        raise EngineError(
            f"{address}: this version has no adapter for servers; give a folder (embedded:PATH) instead"
        )
    from shinglefold.engines.embedded import EmbeddedEngine

    return EmbeddedEngine(address.removeprefix(_EMBEDDED), canonicalizer)
