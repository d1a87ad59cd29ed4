"""The engines that groups are measured on: the embedded one, and a server where one is named."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from tempfile import TemporaryDirectory

from bench.storage import URL
from shinglefold.contracts import Engine
from shinglefold.engines import open_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.model import Token


@contextmanager
def engines() -> Iterator[list[tuple[str, Engine]]]:
    """Open the engines, by what they are called in the figures."""
    with ExitStack() as opened:
        folder = opened.enter_context(TemporaryDirectory())
        found: list[tuple[str, Engine]] = [
            ("embedded", opened.enter_context(closing(EmbeddedEngine(folder, _words))))
        ]
        if url := os.environ.get(URL):
            server = opened.enter_context(closing(open_engine(url)))
            info = server.info()
            found.append((f"{info['distribution']} {info['version']}", server))
        yield found


def _words(text: str) -> list[Token]:
    return [Token(word, 0, 0, "en") for word in text.split()]
