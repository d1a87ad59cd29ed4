"""What is printed for people to type is complete: each option in force is in it, quoted for the shell."""

import json
from pathlib import Path

import click
import pytest
from support.hints import hints, lines, opened, run_hints

from shinglefold.cli.commands.indexing.index import _report
from shinglefold.cli.main import cli
from shinglefold.cli.shared.command import Invocation
from shinglefold.cli.shared.next_commands import Hints
from shinglefold.ingest.index_mapping import default_recipe
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.model.recipe import Recipe
from shinglefold.registry import make_scheme

#: The commands whose argument is an index; each other command that works on one has ``--index``.
_ABOUT_INDICES = ("setup", "backfill", "regroup", "report", "doctor", "stats", "delete", "serve")


def test_every_hint_has_the_options_in_force(run):
    Path("my settings.toml").write_text('data_dir = "elsewhere"\n')
    where = ("--engine", "a folder", "--config", "my settings.toml")
    bad = lines(20) + json.dumps({"id": "bad", "body": 5}) + "\n"
    ran = run("index", "-", *where, "--dead-letters", "fail it.jsonl", stdin=bad).check(3)
    (hint,) = hints(ran.out)
    assert hint == ["index", "fail it.jsonl", "--index", "pages", "--replay", *where]
    letters = Path("fail it.jsonl")
    letters.write_text(letters.read_text().replace('"body": 5', '"body": "мост"'))
    run_hints(run, ran.out)
    with opened("a folder") as engine:
        assert not engine.bulk(
            {"_op_type": "update", "_index": "pages", "_id": f"page-{n}", "doc": {"_dedup": None}}
            for n in range(3)
        ).failures
    ill = run("doctor", "pages", *where)
    assert hints(ill.out) == [["backfill", "pages", *where]]
    planned = run("setup", "pages", *where)
    assert hints(planned.out) == [["backfill", "pages", *where]]
    run_hints(run, ill.out)
    run_hints(run, run("backfill", "pages", *where, "--preset", "classic").err)
    missing = run("compare", "page-1", "nobody", "--index", "pages", *where)
    assert hints(missing.err) == [["search", "WORDS", "--index", "pages", "--json", "--no-fold", *where]]
    run_hints(run, missing.err)
    first = run("search", "Страница", *where, "--size", 2, "--cursor", "new")
    run_hints(run, first.out)


_WHERE = ("--engine", "a folder", "--config", "my settings.toml")


@pytest.fixture
def elsewhere(run) -> str:
    """An index in a folder and with a settings file that each command must name."""
    Path("my settings.toml").write_text('data_dir = "wrong"\n')
    assert run("index", "-", *_WHERE, "--index", "it's", stdin=lines(20)).code == 0
    return "it's"


@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    "command",
    [
        ["regroup", "it's"],
        ["report", "it's"],
        ["add", "-", "--index", "it's", "--policy", "tag"],
        ["search", "Страница", "--index", "it's", "--mode", "native"],
    ],
    ids=lambda command: command[0],
)
def test_hints_of_the_library_have_the_options_in_force_too(run, elsewhere, command):
    ran = run(*command, *_WHERE, stdin=lines(1))
    assert ran.code in (1, 2), ran
    for _ in range(2):
        told = hints(ran.err)
        assert told
        assert all(one[-4:] == list(_WHERE) for one in told)
        assert "`" not in ran.err
        run_hints(run, ran.err)
        ran = run(*command, *_WHERE, stdin=lines(1))
        if not ran.code:
            break
    assert ran.code == 0, ran


@pytest.mark.parametrize("command", ["backfill", "setup", "doctor"])
def test_a_field_of_somebody_else_is_told_with_a_command_that_goes_round_it(run, command):
    Path("my settings.toml").write_text("")
    with opened("a folder") as engine:
        theirs = {"_dedup": {"type": "keyword"}, "_copies": {"type": "keyword"}, "body": {"type": "text"}}
        mapped = default_recipe(make_scheme()).to_json()
        engine.create_index("theirs", {"properties": theirs, "_meta": {"shinglefold": mapped}}, {})
    ran = run(command, "theirs", *_WHERE)
    assert ran.code in (2, 3), ran
    assert hints(ran.out + ran.err)[0] == ["setup", "theirs", "--dedup-field", "_copies2", *_WHERE]
    (done,) = run_hints(run, ran.out + ran.err)[:1]
    assert "`" not in done.out


@pytest.mark.long(every=4)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("command", ["groups", "advise sample"])
def test_texts_elsewhere_are_told_with_a_command_that_takes_them(run, command, workers):
    Path("my texts.jsonl").write_text(lines(20, title="headline", body="content"))
    ran = run(*command.split(), "my texts.jsonl", "--workers", workers).check(
        3, "there is text in headline, content"
    )
    (again,) = run_hints(run, ran.err)
    assert again.code == 0
    assert "there is text in" not in again.err


@pytest.mark.parametrize("command", ["groups", "groups --pairs"])
def test_copies_on_standard_input_are_found_by_the_command_that_is_told(run, command):
    given = lines(5, title="headline", body="content")
    given += given.replace("page-", "copy-")
    ran = run(*command.split(), "-", stdin=given)
    assert "there is text in headline, content" in ran.err
    (again,) = run_hints(run, ran.err, stdin=given)
    assert "copy-0" in again.out


@pytest.mark.parametrize("output", [(), ("-o", "my signed.jsonl")], ids=["standard output", "file"])
def test_what_was_signed_without_text_is_signed_anew_by_the_command_that_is_told(run, output):
    Path("my texts.jsonl").write_text(lines(20, title="headline", body="content"))
    ran = run("sign", "my texts.jsonl", *output).check(3, "there is text in headline, content")
    (again,) = run_hints(run, ran.err)
    assert again.code == 0
    assert "there is text in" not in again.err


def test_a_file_with_a_blank_in_its_name_stays_one_word(run):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    rows = [
        {key: page[key] for key in ("id", "title", "body")} for page in map(json.loads, lines().splitlines())
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "my pages.parquet")
    commands = {
        ("groups", "--pairs"): "signed.parquet",
        ("groups", "--texts"): "documents.jsonl",
        ("report",): "documents.jsonl",
        ("advise", "sample"): "documents.jsonl",
    }
    for asked, output in commands.items():
        ran = run(*asked, "my pages.parquet").check(2)
        (command,) = hints(ran.err.replace(", and give that", ""))
        assert command == ["sign", "my pages.parquet", "--output", output]
        assert run(*command, "--overwrite").code == 0
        assert run(*asked, output).code == 0


def test_letters_of_a_first_run_that_stored_nothing_are_tried_as_that_run_would_have(run):
    """No index was made, so that none knows its recipe."""
    letter = {"id": "a", "headline": 5, "price": "7"}
    Path("my types.json").write_text('{"price": {"type": "float"}}')
    options = (
        "--field",
        "headline",
        "--preset",
        "classic",
        "--groups",
        "--passages",
        "--mapping",
        "my types.json",
    )
    ran = run(
        "index", "-", "--index", "news", *options, "--dead-letters", "failed.jsonl", stdin=json.dumps(letter)
    ).check(1)
    file = Path("failed.jsonl")
    file.write_text(
        file.read_text().replace('"headline": 5', '"headline": "мост через реку закроют на ремонт"')
    )
    run_hints(run, ran.out)
    with opened() as engine:
        recipe = Recipe.of(engine.mappings("news"), "news")
        assert engine.mappings("news")["properties"]["price"]["type"] == "float"
    assert (recipe.fields, recipe.scheme.name, recipe.groups, recipe.passages) == (
        ("headline",),
        "classic",
        True,
        True,
    )


@pytest.mark.parametrize("command", ["similar", "matches"])
def test_the_next_page_is_asked_for_with_the_options_in_force(run, command):
    Path("my settings.toml").write_text('data_dir = "wrong"\n')
    text = " ".join(f"word{number}" for number in range(60))
    given = "".join(json.dumps({"id": f"{n}", "body": f"{text} {n}"}) + "\n" for n in range(3))
    assert run("index", "-", *_WHERE, "--index", "it's", "--passages", stdin=given).code == 0
    page = run(command, "--text", text, *_WHERE, "--index", "it's", "--size", 1)
    (following,) = run_hints(run, page.out)
    assert "next page: " in following.out
    assert following.out.splitlines()[0] != page.out.splitlines()[0]


def test_several_addresses_with_one_scheme_are_refused_with_the_command_that_was_meant(run):
    ran = run(
        "search", "bridge", "--index", "news", "--engine", "https://ada:hidden@one:9200,two:9200"
    ).check(2, "shinglefold search bridge --index news --engine https://one:9200,https://two:9200")
    assert "hidden" not in ran.err
    assert run("stats", "--engine", "a,b").code == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("add news new.jsonl --policy tag", "add new.jsonl --policy tag --index news"),
        ("similar news page-1 --json", "similar page-1 --json --index news"),
        ("matches --min-share 0.2 news new.jsonl", "matches --min-share 0.2 new.jsonl --index news"),
        ("compare news page-1 page-2", "compare page-1 page-2 --index news"),
        *((f"{name} --index news", f"{name} news") for name in _ABOUT_INDICES),
        ("--json report --index=news --most 3", "--json report news --most 3"),
        ("similar page-1 page-2 --index news", ""),
        ("report news other.txt", ""),
    ],
)
def test_an_index_in_the_other_place_names_the_right_command(run, typed, meant):
    """The index is the argument of commands about indices, and --index of those about anything else."""
    ran = run(*typed.split()).check(2)
    assert (f"shinglefold {meant}. See" in ran.err) if meant else ("--index" not in ran.err)


def test_every_command_takes_an_index_by_the_one_rule():
    context = click.Context(cli)
    for name in cli.list_commands(context):
        parameters = cli.get_command(context, name).params
        arguments = [one.metavar for one in parameters if isinstance(one, click.Argument)]
        has_option = any("--index" in one.opts for one in parameters)
        if name in _ABOUT_INDICES:
            assert (len(arguments), "INDEX" in arguments[0], has_option) == (1, True, False), name
        else:
            assert not any("INDEX" in (one or "") for one in arguments), name
            assert has_option == any("--engine" in one.opts for one in parameters), name


def test_the_commands_in_json_are_those_of_the_text(run, elsewhere):
    said = run("search", "Страница", "--index", elsewhere, "--mode", "auto", *_WHERE, "--json").json()
    (command,) = hints(said["dedup"]["mode_reason"])
    assert command == ["setup", elsewhere, "--groups", *_WHERE]
    assert run("setup", elsewhere, *_WHERE, "--field", "title").code == 0
    poorer = run("backfill", elsewhere, *_WHERE, "--json").json()["stopped"]
    assert poorer.count("--engine 'a folder' --config 'my settings.toml'") == 2
    assert "`" not in poorer


def test_a_run_that_the_index_ends_shows_the_whole_command(capsys):
    ended = Summary("pages", "sf3", 2, 1, 0, 0, stopped="the index is gone: `shinglefold setup pages`")
    _report(Invocation(json=True, engine="a folder"), ended, "", ())
    assert json.loads(capsys.readouterr().out)["stopped"] == (
        "the index is gone: shinglefold setup pages --engine 'a folder'"
    )


def test_a_quotation_that_is_no_command_stays_as_it_is():
    quoted = "failed to parse: '`shinglefold it's`'; `shinglefold stats`"
    told = "failed to parse: '`shinglefold it's`'; shinglefold stats --engine 'a folder'"
    assert Hints("a folder").complete_json({"notes": [quoted], "reasons": {quoted: 1}}) == {
        "notes": [told],
        "reasons": {told: 1},
    }


def test_ids_of_a_summary_stay_as_they_are_even_if_they_look_like_a_command(run):
    named = "`shinglefold stats`"
    Path("one.jsonl").write_text(json.dumps({"id": named, "body": "a bridge across the river " * 4}) + "\n")
    assert run("index", "one.jsonl").code == 0
    deleted = run("delete", "pages", "--id", named, "--dry-run", "--json")
    assert deleted.json()["ids"] == [named]
    ours = {
        "problems": {named: [named]},
        "listed": {named: [named]},
        "failures": [{"reason": named, "id": named}],
    }
    whole = "shinglefold stats --engine here"
    assert Hints("here").complete_json(ours) == {
        "problems": {named: [whole]},
        "listed": {named: [named]},
        "failures": [{"reason": whole, "id": named}],
    }
