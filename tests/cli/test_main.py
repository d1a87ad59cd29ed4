"""What holds for all commands: help, version, errors, exit codes, pipes and interrupts."""

import os
import subprocess
from pathlib import Path

import pytest
from support.commands import PROGRAM

import shinglefold
from shinglefold.cli.main import asks_for_json, cli


def test_version_tells_package_and_scheme_algorithm(run):
    assert run("--version").out == f"shinglefold {shinglefold.__version__} (scheme algorithm sf3)\n"
    assert run("--json", "--version").json() == {
        "shinglefold": shinglefold.__version__,
        "scheme_algorithm": 3,
    }


def test_without_a_command_the_help_is_shown(run):
    shown = run().check(0)
    for name in cli.commands:
        assert f"  {name}" in shown.out


def test_the_help_says_in_a_line_what_each_command_is_for(run):
    commands = run("--help").out.partition("Commands:")[2]
    assert "..." not in commands
    assert len(commands.strip().splitlines()) == len(cli.commands)


@pytest.mark.parametrize("name", cli.commands)
def test_every_command_has_help_with_examples(run, name):
    long, short = run(name, "--help"), run(name, "-h")
    assert long == short
    assert long.code == 0
    assert "Examples:\n  " in long.out
    assert f"shinglefold {name}" in long.out.split("Examples:")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "told"),
    [
        (["serach"], 2, "UsageError", "serach"),
        (["search"], 2, "UsageError", "QUERY"),
        (["search", "--sise", "3", "x"], 2, "UsageError", "--size"),
        (["search", "x", "--size", "many"], 2, "UsageError", "many"),
        (["search", "x"], 1, "IndexMissing", "pages"),
        (["search", "x", "--representative", "newset:date"], 2, "ConfigError", "newest"),
        (["index", "nowhere.jsonl"], 1, "InputError", "nowhere.jsonl"),
        (["groups", "--pairs", "nowhere.jsonl"], 1, "InputError", "nowhere.jsonl"),
        (["groups", "--pairs", "-", "--preset", "clasic"], 2, "ConfigError", "classic"),
        (["compare", "a.txt", "b.txt"], 1, "InputError", "a.txt"),
        (["compare", ".", "b.txt"], 1, "InputError", "folder"),
        (["compare", "-", "-"], 2, "UsageError", "standard input"),
        (["compare", "--text", "a", "b", "--language", "rus"], 2, "UnknownLanguage", "ru"),
        (["index", "nowhere.jsonl", "--dry-run"], 1, "InputError", "nowhere.jsonl"),
        (["--config", "nowhere.toml", "info"], 2, "ConfigError", "nowhere.toml"),
        (["--config", "nowhere.toml", "demo"], 2, "ConfigError", "nowhere.toml"),
    ],
)
def test_an_error_is_one_line_an_exit_code_and_with_json_an_object(run, arguments, code, kind, told):
    plain = run(*arguments).check(code)
    if not kind:
        return
    assert plain.out == ""
    assert plain.err.startswith("error: ")
    assert plain.err.count("\n") == 1
    assert told in plain.err
    error = run(*arguments, "--json").json()["error"]
    assert (error["type"], error["exit_code"]) == (kind, code)
    assert told in error["message"]


def test_an_unexpected_error_is_one_line_too(run, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("shinglefold.registry.installed_languages", broken)
    ran = run("info").check(1)
    assert ran.err.startswith("error: unexpected ZeroDivisionError: of all things")
    monkeypatch.setenv("SHINGLEFOLD_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("info")


def test_settings_come_from_the_file_and_the_environment(run, monkeypatch):
    Path("own.toml").write_text('preset = "clasic"\n')
    assert "classic" in run("--config", "own.toml", "compare", "--text", "a b c", "a b c").err
    assert "classic" in run("compare", "--text", "a b c", "a b c", "--config", "own.toml").err
    monkeypatch.setenv("SHINGLEFOLD_PRESET", "fetterly")
    told = run("compare", "--text", "a b c", "a b c", "--config", "own.toml", "--json").json()
    assert told["decision"]["min_shared"] == 2


def test_json_is_not_looked_for_behind_the_end_of_options():
    assert asks_for_json(["search", "x", "--json"])
    assert not asks_for_json(["search", "--", "--json"])


@pytest.mark.long
def test_a_closed_pipe_ends_a_command_quietly(examples_file):
    command = subprocess.Popen(
        [*PROGRAM, "groups", "--pairs", str(examples_file), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.close()
    assert command.stderr.read() == b""
    assert command.wait() == 141
    command.stderr.close()


def test_output_without_a_terminal_has_no_colours(run):
    assert "\x1b" not in run("compare", "--text", "one two three", "one two four").out


def test_control_characters_of_documents_do_not_reach_the_terminal(run):
    shown = run(
        "compare", "--text", "\x1b[31mone two three four five six", "one two three four five six"
    ).check(0)
    assert "\x1b" not in shown.out


@pytest.mark.long(every=2)
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_output_is_no_fault_where_nothing_is_written(closed):
    done = _with_closed(closed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_closed_input_has_no_documents():
    done = _with_closed("<&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no documents found" in done.stderr
    assert "Traceback" not in done.stderr


def _with_closed(stream):
    command = ["sh", "-c", f'"$0" "$@" {stream}', *PROGRAM, "groups", "--pairs", "-"]
    given = '{"id": "1", "body": "one two three four five six"}'
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)


def test_an_index_with_its_fingerprints_in_another_field_is_not_searched_as_if_it_had_none(
    run, engine_folder
):
    run("search", "мост", "--engine", engine_folder, "--config", _settings('field = "other"')).check(
        1,
        "made with fingerprints in the field _dedup, not other (own.toml)",
        f"shinglefold setup pages --engine {engine_folder} --config own.toml && ",
    )


def _settings(text):
    Path("own.toml").write_text(text)
    return "own.toml"


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "закроют", "мост", "--explain", "--passages"],
        ["search", "мост", "--no-fold"],
        ["compare", "ru-bridge-repair-1", "ru-bridge-repair-3", "--index", "pages"],
    ],
)
def test_piped_lines_end_where_their_text_ends(run, engine_folder, arguments):
    lines = run(*arguments, "--engine", engine_folder).out.splitlines()
    assert lines
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_piped_line_is_not_folded_to_a_width(run, engine_folder):
    shown = run("search", "закроют", "мост", "--size", 1, "--engine", engine_folder).out.splitlines()
    (named,) = [line for line in shown if "near-duplicates folded" in line]
    assert len(named) > 100
    assert named.endswith("(gorod.example)")


def test_a_mistyped_index_is_told_with_the_one_that_is_meant(run):
    assert run("index", "-", "--index", "site", stdin='{"body": "one"}\n').code == 0
    for command in (("search", "one", "--index", "sit"), ("doctor", "sit"), ("delete", "sit", "--yes")):
        run(*command).check(1, "there are: site. Did you mean 'site'?")
