"""The engines that groups are measured on: the embedded one, and a server where one is named."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from tempfile import TemporaryDirectory
from time import sleep
from urllib.request import urlopen

from bench.storage import URL
from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.model.values import Token

#: Environment: the folder of the embedded engine, whose indices then stay for the next part.
FOLDER = "SHINGLEFOLD_BENCH_FOLDER"


@contextmanager
def engines() -> Iterator[list[tuple[str, Engine]]]:
    """Open the engines, by what they are called in the figures."""
    with ExitStack() as opened:
        folder = os.environ.get(FOLDER) or opened.enter_context(TemporaryDirectory())
        found: list[tuple[str, Engine]] = [
            ("embedded", opened.enter_context(closing(EmbeddedEngine(folder, words))))
        ]
        if url := os.environ.get(URL):
            server = opened.enter_context(closing(open_engine(url)))
            info = server.info()
            found.append((f"{info['distribution']} {info['version']}", server))
        yield found


@contextmanager
def kept() -> Iterator[None]:
    """Keep the embedded engine's indices from part to part, longer only in a folder that was named."""
    if os.environ.get(FOLDER):
        yield
        return
    with TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


def merged() -> None:
    """Wait until a server, where one is named, has merged what was written."""
    while url := os.environ.get(URL):
        with urlopen(f"{url}/_nodes/stats/indices/merge") as answer:
            nodes = json.load(answer)["nodes"].values()
        if not any(node["indices"]["merges"]["current"] for node in nodes):
            return
        sleep(0.5)


def words(text: str) -> list[Token]:
    """Return the words of a text as they are."""
    return [Token(word, 0, 0, "en") for word in text.split()]
