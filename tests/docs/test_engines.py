"""docs/engines.md tells all there is: settings, errors, servers."""

import re
from dataclasses import fields
from pathlib import Path

from support.servers.kinds import all_kinds, usual_kinds

from shinglefold import errors
from shinglefold.engines import Connection, load_connection
from shinglefold.engines.http.bulk import BYTES, CHUNK
from shinglefold.engines.http.engine import BACKOFF

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text("utf-8")
HOUSE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")


def test_every_setting_of_a_connection_is_told_as_it_is_said_in_file_and_environment():
    told = set(re.findall(r"SHINGLEFOLD_ENGINE_([A-Z_]+)", PAGE)) - {"FILE"}
    names = {"url" if field.name == "urls" else field.name for field in fields(Connection)}
    assert told == {name.upper() for name in names}
    assert not [name for name in names if f"`{name}`" not in PAGE]


def test_the_defaults_told_are_the_defaults():
    connection = load_connection("http://localhost:9200", environ={})
    assert f"one request, {connection.timeout:.0f} by default" in PAGE
    assert f"asked again, {connection.retries} by default" in PAGE
    assert f"{CHUNK:,} at a time and at most {BYTES >> 20} MB" in PAGE
    first = BACKOFF.first
    assert f"after about {first}, {2 * first}, {4 * first:.0f} … seconds" in PAGE


def test_every_error_of_an_engine_is_told():
    told = set(re.findall(r"^\| `([A-Z]\w+)` \|", PAGE, re.MULTILINE))
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.EngineError)
    }
    assert told == kinds - {"EngineError"}


def test_the_servers_are_those_of_the_matrix():
    row = re.compile(r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d–]+) \|$", re.MULTILINE)
    rows = {name: (version, java) for name, version, java in row.findall(HOUSE)}
    assert rows == {
        name: (kind.version, f"{kind.java[0]}–{kind.java[1]}") for name, kind in all_kinds().items()
    }
    assert all(kind.version in PAGE.split("## Credentials")[0] for kind in usual_kinds().values())


def test_the_commands_are_there():
    for command in re.findall(r"`make ([\w-]+)", PAGE + HOUSE):
        assert re.search(rf"^{command}:", MAKEFILE, re.MULTILINE)
