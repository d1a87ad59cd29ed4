"""Every command and option stands on the page, and nothing else does."""

import ast
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import shinglefold
from shinglefold.cli.main import cli

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")
_COMMON = {"--json", "--config", "--help", "--version"}


def _section(name: str) -> str:
    found = re.search(rf"^## shinglefold {name}\b.*?\n(.*?)(?=^## |\Z)", _PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"docs/cli.md has no section for {name}"
    return found[1]


def _options(command: click.Command) -> set[str]:
    own = {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }
    return own.union(*(_options(below) for below in getattr(command, "commands", {}).values()))


def _named(text: str) -> set[str]:
    return set(re.findall(r"`(--[a-z-]+)`", text))


def _listed(name: str) -> set[str]:
    """Return the options that a section lists, and those of the groups that it links to."""
    section = _section(name)
    lists = re.findall(r"\bOptions:\s(.*?)(?=\n\n|\n- |\Z)", section, re.DOTALL)
    groups = dict(re.findall(r"^- \*(\w.*?)\*: (.*?)(?=\n- |\n\n)", _PAGE, re.DOTALL | re.MULTILINE))
    assert groups.keys() == {"File options", "Thresholds"}
    linked = [
        options
        for group, options in groups.items()
        if f"[{group.lower()}](#shared-options)" in " ".join(section.split())
    ]
    return _named(" ".join([*lists, *linked]))


@pytest.mark.parametrize("name", cli.commands)
def test_every_option_is_listed_and_every_listed_option_exists(name):
    assert _listed(name) == _options(cli.commands[name]) - _COMMON


@pytest.mark.parametrize("name", cli.commands)
def test_every_option_that_a_section_names_exists(name):
    of_any = set().union(*(_options(command) for command in cli.commands.values()))
    assert _named(_section(name)) - of_any - _COMMON == set()


def test_the_common_options_and_exit_codes_are_told():
    head = _PAGE.split("## shinglefold demo")[0]
    for option in _COMMON:
        assert f"`{option}`" in head or f"shinglefold {option}" in head
    for code in (0, 1, 2, 3, 130, 141, 143):
        assert f"| {code} |" in head


def test_every_command_on_the_page_exists():
    assert re.findall(r"^## shinglefold (\w+)", _PAGE, re.MULTILINE) == list(cli.commands)


@pytest.mark.parametrize("name", cli.commands)
def test_every_option_has_help(name):
    for parameter in cli.commands[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help


def _kinds(command: click.Command) -> Iterator[tuple[str, str, str]]:
    """Yield each option of a command and those below it: its name, the command, and whether it is a flag."""
    for one in command.params:
        if isinstance(one, click.Option):
            kind = "a flag" if one.is_flag else "a value"
            yield from ((name, kind, f"{command.name}") for name in one.opts if name.startswith("--"))
    for below in getattr(command, "commands", {}).values():
        yield from _kinds(below)


def test_an_option_takes_a_value_in_all_commands_or_in_none():
    pytest.importorskip("pyarrow")
    from shinglefold.cli.spark import spark

    found: dict[str, dict[str, list[str]]] = {}
    for name, kind, where in (*_kinds(cli), *_kinds(spark)):
        found.setdefault(name, {}).setdefault(kind, []).append(where)
    differing = {name: kinds for name, kinds in found.items() if len(kinds) > 1}
    # How many passages are shown, or that they are shown or stored; ids to delete, or that one is given.
    assert differing.keys() == {"--passages", "--id"}, differing


def _suggested(path: Path) -> set[str]:
    calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    return {
        call.args[0].value
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == "suggest"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }


@pytest.mark.long
def test_every_command_that_a_message_suggests_is_one():
    modules = [
        path for path in Path(shinglefold.__file__).parent.rglob("*.py") if "_template" not in path.parts
    ]
    suggested = set().union(*map(_suggested, modules))
    assert len(suggested) > 5
    assert {name.split()[0] for name in suggested} - cli.commands.keys() == set()


def _keys_of(command: str) -> set[str]:
    """Return the keys that the page has for a command, and those of all commands."""
    common, own = _PAGE.split("## JSON output")[1].split("The other keys:")
    rows, current = {}, ""
    for cell, keys in re.findall(r"^\| (.+?) \| (.+) \|$", own, re.MULTILINE):
        current = current if cell.startswith("…") else cell
        rows[current] = f"{rows.get(current, '')} {cell} {keys}"
    told = [keys for cell, keys in rows.items() if f"`{command}`" in cell]
    assert told, f"docs/cli.md has no keys of {command}"
    every = [common.split("Common keys:")[1]]
    return set(re.findall(r"`(\w+)`", " ".join([*every, *told])))


@pytest.mark.long(every=12)
@pytest.mark.parametrize(
    "words",
    [
        "demo --size 2",
        "index FILE --index other",
        "sign FILE -o signed.jsonl",
        "add new.jsonl --index other",
        "similar ru-bridge-repair-1 --size 1",
        "compare old.txt new.txt",
        "compare ru-bridge-repair-1 ru-bridge-repair-2 --index pages",
        "groups FILE",
        "groups --pairs FILE",
        "advise width --shingles 1000",
        "advise sample FILE",
        "setup other --dry-run",
        "backfill pages --checkpoint .checkpoint",
        "report FILE",
        "doctor pages",
        "doctor pages --fix",
        "stats pages",
        "delete other --dry-run",
        "info",
    ],
)
def test_every_key_of_json_is_on_the_page(run, words, examples_file, engine_folder, tmp_path):
    shutil.copytree(engine_folder, tmp_path / ".shinglefold")
    text = "The bridge is closed for repairs in May, and buses go another way, the town hall said."
    for name, given in (("old.txt", text), ("new.txt", f"{text} Bicycles may pass.")):
        Path(name).write_text(given)
    Path("new.jsonl").write_text(json.dumps({"id": "new", "title": "Bridge", "body": text}) + "\n")
    if "other" in words and not words.startswith("index"):
        assert run("setup", "other").code == 0
    ran = run(*words.replace("FILE", str(examples_file)).split(), "--json").check(0)
    answer = json.loads(ran.out.splitlines()[0]) if words.startswith("groups") else ran.json()
    command = words.split()[0]
    subject = next(
        (name for name in ("groups --pairs", "advise width", "advise sample") if name in words), command
    )
    assert set(answer) - _keys_of(subject) == set()
    for one in answer.get("indices", ()):
        assert set(one) - _keys_of(subject) == set()
