"""A small site in four languages for the demo: articles with near-copies, and searches over them.

Every text was written for this purpose; hosts, places and people are fictional.
"""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

__all__ = ["Query", "articles", "queries", "temporary_index"]


@dataclass(frozen=True, slots=True)
class Query:
    """One search of the demo.

    ``lang``: the language the query is written in. ``shows``: what a reader sees on its page of results.
    """

    lang: str
    text: str
    shows: str


def articles() -> Iterator[dict[str, Any]]:
    """Yield the articles in file order.

    Each has ``id``, ``title``, ``body``, ``lang``, ``format`` ("html" or "text": of the body), ``host``,
    ``url``, ``date`` (ISO), ``story`` (equal for near-copies of one text, and only for them) and ``note``
    (how this copy differs from the first).
    """
    for line in _packaged("articles.jsonl").rstrip("\n").split("\n"):
        yield json.loads(line)


def queries() -> list[Query]:
    """Return the searches of the demo in order."""
    return [Query(**entry) for entry in tomllib.loads(_packaged("queries.toml"))["query"]]


def temporary_index(index: str) -> str:
    """Return a new temporary folder with an index of all articles, for examples."""
    from tempfile import mkdtemp

    import shinglefold

    folder = mkdtemp()
    shinglefold.setup(folder, index, text=["title", "body"], groups=True, passages=True)
    with shinglefold.open(folder, index) as opened:
        opened.index(articles())
    return folder


def _packaged(name: str) -> str:
    return files("shinglefold.examples").joinpath(name).read_text("utf-8")
