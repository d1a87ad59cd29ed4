"""Commands that were printed, run as somebody would who copies them."""

import json
import re
import shlex
from contextlib import closing
from typing import Any

from support.maintenance import pages

from shinglefold.api.index_recipe import search_canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.registry import make_scheme

_NAMES = (
    "setup|backfill|retry|search|similar|matches|index|sign|doctor|pairs|groups|regroup|sweep|advise sample"
)


def lines(count: int = 20, **names: str) -> str:
    """Pages as JSON lines, some of their fields under other names."""
    told = [{names.get(key, key): value for key, value in page.items()} for page in pages(count)]
    return "".join(json.dumps(page) + "\n" for page in told)


def hints(text: str) -> list[list[str]]:
    """The commands in what a command printed."""
    found = re.findall(rf"shinglefold (?:{_NAMES}) .*", text)
    return [shlex.split(command)[1:] for line in found for command in line.split(" && ")]


def run_hints(run, text: str, stdin: str = "") -> list[Any]:
    ran = [run(*command, stdin=stdin) for command in hints(text)]
    assert ran
    assert all(one.code == 0 for one in ran), ran
    return ran


def opened(folder: str = ".shinglefold"):
    return closing(EmbeddedEngine(folder, search_canonicalizer(make_scheme())))
