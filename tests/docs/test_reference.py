"""Pages of reference tell all there is: settings, findings, errors, servers, terms, tests."""

import json
import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import get_args

from support.servers.kinds import all_kinds, usual_kinds

from shinglefold import errors
from shinglefold.canon import Canonicalizer
from shinglefold.cli.main import cli
from shinglefold.engines import Connection, load_connection
from shinglefold.engines.http.bulk import BYTES, CHUNK
from shinglefold.engines.http.engine import BACKOFF
from shinglefold.ingest import mappings
from shinglefold.maintenance.doctor import Finding
from shinglefold.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = (ROOT / "docs" / "settings.md").read_text("utf-8")
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)
_NAMED = {"all installed": (), "none": ""}


def test_every_setting_has_a_row_with_its_default():
    rows = dict(_ROW.findall(SETTINGS))
    defaults = Settings()
    assert list(rows) == [field.name for field in fields(Settings) if field.name not in ("language", "given")]
    for name, told in rows.items():
        value = getattr(defaults, name)
        if told in _NAMED:
            assert value == _NAMED[told]
        else:
            assert told.strip("`") == (str(value).lower() if isinstance(value, bool) else str(value))


def test_the_example_is_a_settings_file(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", SETTINGS, re.DOTALL)
    file = tmp_path / "shinglefold.toml"
    file.write_text(example, "utf-8")
    settings = load_settings(file, environ={})
    assert settings.languages == ("ru", "uk", "en")
    assert Canonicalizer.of(settings.scheme()).tokens("мост")
    assert dict(settings.language)["ru"].drop_function_words


MAINTENANCE = (ROOT / "docs" / "maintenance.md").read_text("utf-8")


def test_its_commands_can_be_read():
    removal = (ROOT / "docs" / "how-to-uninstall.md").read_text("utf-8")
    lines = re.findall(r"^shinglefold (.*)$", MAINTENANCE + removal, re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        name, *arguments = re.findall(r"'[^']*'|\S+", line)
        cli.commands[name].make_context(name, [argument.strip("'") for argument in arguments])


def test_every_finding_and_every_field_is_told(scheme):
    assert set(re.findall(r"^\| `(\w+)` \|", MAINTENANCE, re.MULTILINE)) == set(get_args(Finding))
    fields = mappings(scheme)["properties"]["_dedup"]["properties"]
    told = dict(re.findall(r"^\| `_dedup\.(\w+)` \| `(\w+)`", MAINTENANCE, re.MULTILINE))
    assert told == {name: definition["type"] for name, definition in fields.items()}


def test_its_figure_is_that_measured_last():
    newest = max((ROOT / "bench" / "runs").glob("*-storage.json"))
    rows = {row["name"]: row["value"] for row in json.loads(newest.read_text("utf-8"))["rows"]}
    (figure,) = re.findall(r"grows by (\d+) bytes", MAINTENANCE)
    assert int(figure) == round(rows["+ fingerprint, as chosen"])


ENGINES = (ROOT / "docs" / "engines.md").read_text("utf-8")
HOUSE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_every_setting_of_a_connection_is_told_as_it_is_said_in_file_and_environment():
    told = set(re.findall(r"SHINGLEFOLD_ENGINE_([A-Z_]+)", ENGINES)) - {"FILE"}
    names = {"url" if field.name == "urls" else field.name for field in fields(Connection)}
    assert told == {name.upper() for name in names}
    assert not [name for name in names if f"`{name}`" not in ENGINES]


def test_the_defaults_told_are_the_defaults():
    connection = load_connection("http://localhost:9200", environ={})
    assert f"one request, {connection.timeout:.0f} by default" in ENGINES
    assert f"asked again, {connection.retries} by default" in ENGINES
    assert f"{CHUNK:,} at a time and at most {BYTES >> 20} MB" in ENGINES
    first = BACKOFF.first
    assert f"after about {first}, {2 * first}, {4 * first:.0f} … seconds" in ENGINES


def test_every_error_of_an_engine_is_told():
    told = set(re.findall(r"^\| `([A-Z]\w+)` \|", ENGINES, re.MULTILINE))
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
    assert all(kind.version in ENGINES.split("## Credentials")[0] for kind in usual_kinds().values())


def test_the_commands_are_there():
    for command in re.findall(r"`make ([\w-]+)", ENGINES + HOUSE):
        assert re.search(rf"^{command}:", MAKEFILE, re.MULTILINE)


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ROWS = [line.strip("|").split("|") for line in GLOSSARY.splitlines() if line.startswith("| **")]
NEEDED = (
    "token, shingle, signature, supershingle, resemblance, containment, candidate, group, representative, "
    "member, scheme, processor, pipeline, oversample, collapse"
)


def terms():
    return [term for row in ROWS for term in re.findall(r"\*\*`?(.+?)`?\*\*", row[0])]


def test_each_term_is_explained_once():
    assert [term for term, times in Counter(terms()).items() if times > 1] == []


def test_each_term_has_a_meaning_and_an_example():
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in ROWS)


def test_the_words_of_the_project_are_all_there():
    assert [term for term in NEEDED.split(", ") if term not in terms()] == []


RELIABILITY = (ROOT / "docs" / "reliability.md").read_text("utf-8")


def test_every_test_that_is_named_is_there():
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", RELIABILITY)
    assert len(named) > 8
    for file, test in named:
        texts = [found.read_text("utf-8") for found in (ROOT / "tests").rglob(file)]
        assert any(f"def {test}(" in text or not test for text in texts), file
