"""An index knows what it was made with: no command is told again, and none guesses."""

import json
from pathlib import Path

import pytest
from support.hints import hints, lines, opened, run_hints
from support.maintenance import pages

import shinglefold
from shinglefold.model.profiles import PROFILES
from shinglefold.model.recipe import stored_recipe

PIPELINE = {
    "processors": [
        {"set": {"field": "text", "copy_from": "content", "description": "of no account"}},
        {"supershingle": {"fields": ["headline", "text"], "target_field": "near", "language_field": "lang"}},
    ]
}


@pytest.fixture
def own(run) -> str:
    """An index of a pipeline over other fields, whose fingerprints are in another field, too."""
    Path("own pipeline.json").write_text(json.dumps(PIPELINE))
    ran = run(
        *("index", "-", "--pipeline", "own pipeline.json", "--preset", "classic"),
        stdin=lines(title="headline", body="content"),
    )
    assert (ran.code, ran.err) == (0, "")
    Path("own pipeline.json").unlink()
    return "pages"


def test_no_command_needs_a_flag_again(run, own):
    assert run("doctor", own).out.splitlines()[-1] == "all is well"
    done = run("backfill", own, "--json").json()
    assert (done["unchanged"], done["updated"]) == (20, 0)
    more = lines(25, title="headline", body="content")
    assert run("index", "-", stdin=more).code == 0
    assert run("doctor", own, "--json").json()["findings"] == {"sound": 25}
    word = pages(1)[0]["body"].split()[0]
    assert "page-0" in [
        hit["_id"] for hit in run("search", word, "--size", 50, "--json").json()["hits"]["hits"]
    ]
    assert run("similar", "page-0", "--json").code == 0
    added = run("add", "-", "--index", own, "--json", stdin=lines(1, title="headline", body="content"))
    assert added.json()["documents"][0].get("replaced") is True, added
    told = run("compare", "page-0", "page-0", "--index", "pages", "--json").json()
    assert (told["folds"], len(told["passages"]) > 0) == (True, True)
    assert run("setup", own).out.splitlines()[-1] == "nothing to change"


@pytest.mark.long(every=6)
@pytest.mark.parametrize("name", sorted(PROFILES))
@pytest.mark.parametrize(
    "more", [[], ["--groups"], pytest.param(["--recreate"], marks=pytest.mark.long)], ids=" ".join
)
def test_a_new_index_notes_its_profile(run, name, more):
    """Searches take their defaults from it, and later commands compare theirs with it."""
    index = ["index", "-", "--index", "cards", "--profile", name]
    if more == ["--recreate"]:
        assert run(*index[:4], *index[-2:], stdin=lines(2)).code == 0
    assert run(*index, *more, stdin=lines(2)).code == 0
    with shinglefold.open(".shinglefold", "cards", profile=name) as cards:
        assert cards.recipe.profile == name
    assert run(*index, stdin=lines(3)).code == 0
    assert run("setup", "cards", "--profile", name).out.splitlines()[-1] == "nothing to change"


def test_retry_writes_where_the_index_keeps_its_fingerprints(run, own):
    letters = [{"headline": "Заголовок", "content": 5, "id": "bad"}]
    ran = run("index", "-", "--dead-letters", "my failed.jsonl", stdin=json.dumps(letters[0]) + "\n").check(1)
    file = Path("my failed.jsonl")
    file.write_text(
        file.read_text().replace('"content": 5', '"content": "мост через реку закроют на ремонт"')
    )
    (again,) = run_hints(run, ran.out)
    assert "1 indexed into pages" in again.out
    with opened() as engine:
        source = engine.get("pages", "bad")["_source"]
    assert source["near"]["lang"] == "ru"
    assert "_dedup" not in source


@pytest.mark.long(every=6)
@pytest.mark.parametrize(
    "command",
    [
        *("index", "add", "backfill", "doctor", "replay", "search", "similar", "matches", "compare"),
        *("regroup", "report"),
    ],
)
def test_a_setting_that_names_another_field_is_refused_with_both(run, own, command, monkeypatch):
    Path("letters.jsonl").write_text("")
    arguments = {
        "index": ["index", "-"],
        "replay": ["index", "--replay", "letters.jsonl"],
        "add": ["add", "-", "--index", own],
        "search": ["search", "мост"],
        "similar": ["similar", "page-1"],
        "matches": ["matches", "--text", "мост"],
        "compare": ["compare", "page-1", "page-2", "--index", "pages"],
    }
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "copies")
    run(*arguments.get(command, [command, own]), stdin=lines(1)).check(
        1,
        "index 'pages' was made with fingerprints in the field near, not copies (SHINGLEFOLD_FIELD). "
        "Leave it out, or change the index: shinglefold setup pages --dedup-field copies && "
        "shinglefold backfill pages",
    )


@pytest.mark.parametrize(
    ("name", "value", "both"),
    [("PRESET", "fetterly", ("classic", "fetterly")), ("LANGUAGES", "en", ("ru", "en"))],
)
def test_a_gate_refuses_a_setting_that_contradicts_the_index(run, own, name, value, both, monkeypatch):
    monkeypatch.setenv(f"SHINGLEFOLD_{name}", value)
    refused = run("add", "-", "--index", own, stdin=lines(1, title="headline", body="content")).check(
        1, f"SHINGLEFOLD_{name}"
    )
    assert all(one in refused.err for one in both)


def test_another_field_is_what_setup_changes(run, own, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "copies")
    run_hints(run, run("doctor", own).err)
    assert run("doctor", own).code == 0
    monkeypatch.delenv("SHINGLEFOLD_FIELD")
    assert run("doctor", own).code == 0


@pytest.mark.long(every=12)
@pytest.mark.parametrize("command", ["index", "backfill", "doctor", "replay"])
@pytest.mark.parametrize("flag", ["--preset", "--pipeline"])
def test_a_flag_that_contradicts_the_index_is_refused_and_its_remedy_works(run, own, command, flag):
    Path("other.json").write_text('{"processors": [{"supershingle": {"field": "content"}}]}')
    Path("letters.jsonl").write_text("")
    value = {"--preset": "fetterly", "--pipeline": "other.json"}[flag]
    arguments = {"index": ["index", "-"], "replay": ["index", "--replay", "letters.jsonl"]}.get(
        command, [command, own]
    )
    refused = run(*arguments, flag, value, stdin=lines(1)).check(1)
    assert f"{flag} {value}" in refused.err or f"fetterly ({flag})" in refused.err
    assert "classic" in refused.err or "processors" in refused.err
    run_hints(run, refused.err)
    assert run("doctor", own).code == 0


def test_a_pipeline_that_makes_no_fingerprints_is_refused_before_the_first_document(run):
    Path("none.json").write_text('{"processors": [{"drop": {"if": "ctx.draft"}}]}')
    run("index", "-", "--pipeline", "none.json", stdin=lines(1)).check(2, "supershingle")
    assert not Path(".shinglefold").exists()


def test_a_pipeline_that_writes_elsewhere_than_the_setting_says_is_refused(run, monkeypatch):
    Path("own.json").write_text(json.dumps(PIPELINE))
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "copies")
    run("index", "-", "--pipeline", "own.json", stdin=lines(1)).check(1, "copies", "near")
    assert not Path(".shinglefold").exists()


def test_an_index_that_notes_a_scheme_alone_is_refused_with_the_way_there(run):
    assert run("index", "-", stdin=lines()).code == 0
    with opened() as engine:
        noted = dict(stored_recipe(engine.mappings("pages")) or {})
        del noted["pipeline"]
        engine.put_mappings("pages", {"_meta": {"shinglefold": noted}})
    for command in (["search", "x"], ["doctor", "pages"], ["index", "-"], ["add", "-", "--index", "pages"]):
        ran = run(*command, stdin=lines(1)).check(2)
        assert hints(ran.err) == [["setup", "pages"]]
    assert "shinglefold setup pages" in run("stats", "pages").err
    run_hints(run, ran.err)
    assert run("doctor", "pages").out.splitlines()[-1] == "all is well"


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("PRESET", "classic", "--preset classic"),
        ("FIELD", "near", "--dedup-field near"),
    ],
)
def test_what_a_variable_asked_for_is_in_the_command_that_changes_the_index(
    run, monkeypatch, name, value, option
):
    run("index", "-", stdin=lines())
    monkeypatch.setenv(f"SHINGLEFOLD_{name}", value)
    run("index", "-", stdin=lines()).check(
        1, f"shinglefold setup pages {option} && shinglefold backfill pages"
    )


def test_an_embedded_index_gets_other_languages_by_being_built_anew(run, monkeypatch):
    Path("FILE").write_text(lines())
    command = ("index", "FILE", "--format", "jsonl")
    run(*command)
    asked_for = run("setup", "pages", "--languages", "any,en,ru")
    monkeypatch.setenv("SHINGLEFOLD_LANGUAGES", "any,en,ru")
    for refused in (asked_for, run(*command)):
        assert refused.code == 1
        assert "shinglefold index FILE --index pages --recreate" in refused.err
        assert "setup" not in refused.err
    assert run(*command, "--index", "pages", "--recreate").code == 0
    assert run(*command).code == 0


def test_doctor_finds_an_index_whose_fingerprints_are_all_of_no_text(run):
    Path("headline.json").write_text('{"processors": [{"supershingle": {"fields": ["headlin"]}}]}')
    options = ("--index", "news", "--pipeline", "headline.json")
    run("index", "-", *options, stdin=lines(title="headline", body="content"))
    ill = run("doctor", "news").check(3)
    assert "none has text in the fields the pipeline reads, so that nothing folds" in ill.out
    assert "the pipeline reads headlin; there is text in headline, content" in ill.out
    run_hints(run, ill.out)
    assert run("doctor", "news").out.splitlines()[-1] == "all is well"


def test_texts_in_other_fields_are_told_and_the_remedy_works(run):
    ran = run("index", "-", "--index", "news site", stdin="")
    ran = run("index", "-", "--index", "news", stdin=lines(title="headline", body="content")).check(
        3,
        "warning: no document has the fields title, body",
        "20 of 20 documents have too little text for a signature",
    )
    run_hints(run, ran.err)
    assert run("doctor", "news").code == 0
    assert run("index", "-", "--index", "news", stdin=lines(title="headline", body="content")).err == ""


def test_fields_can_be_named_and_one_that_no_document_has_is_told(run):
    given = lines(title="headline", body="content")
    ran = run("index", "-", "--field", "headline", "--field", "content", stdin=given)
    assert (ran.code, ran.err) == (0, "")
    assert run("doctor", "pages").code == 0
    ran = run("index", "-", "--index", "b", "--field", "headline", "--field", "contents", stdin=given)
    assert "warning: no document has the field contents" in ran.err
    assert "most of the text is in content, and only titles are read" in ran.err
    assert "to take it from there: shinglefold setup b --field headline --field content" in ran.err


def test_an_index_not_made_for_fingerprints_is_told_with_the_way_there(run):
    with opened() as engine:
        engine.create_index("plain", {"properties": {}}, {})
    for command in (["search", "x", "--index", "plain"], ["doctor", "plain"], ["backfill", "plain"]):
        ran = run(*command).check(2)
        assert hints(ran.err) == [["setup", "plain"], ["backfill", "plain"]]
    run_hints(run, ran.err)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["--field", "titel"], "title"),
        (["--scope", "hots"], "host"),
        (["--representative", "newest:dates"], "date"),
        (["--member-field", "urls"], "url"),
        (["--passage-field", "bodi"], "body"),
    ],
)
def test_a_field_that_the_index_has_not_is_told_with_the_nearest(run, engine_folder, arguments, near):
    run("search", "мост", "--engine", engine_folder, *arguments).check(2, f"did you mean {near!r}?")


def test_explain_refuses_a_field_that_the_index_has_not(run, engine_folder):
    run(
        *("compare", "ru-bridge-repair-1", "ru-bridge-repair-3", "--index", "pages"),
        *("--engine", engine_folder, "--field", "titel"),
    ).check(2, "did you mean 'title'?")


def test_a_pipeline_that_can_not_run_again_is_told_with_what_to_add(run):
    Path("once.json").write_text(
        json.dumps(
            {
                "processors": [
                    {"html_strip": {"field": "raw", "target_field": "text"}},
                    {"supershingle": {"fields": ["text", "title"]}},
                    {"remove": {"field": ["raw", "title"]}},
                ]
            }
        )
    )
    run("index", "-", "--pipeline", "once.json", stdin=lines(3, body="raw")).check(
        0,
        'add "ignore_missing": true to html_strip, or keep [raw]',
        "keep [title], or let supershingle read a field that stays",
    )
    assert "keep [title]" in run("setup", "other", "--pipeline", "once.json").err


def test_setup_tells_that_another_pipeline_wants_a_backfill(run, own):
    changed = run("setup", own, "--field", "content")
    assert "~ _meta.shinglefold.pipeline: " in changed.out
    assert (
        "documents have fingerprints that are of another pipeline; then: shinglefold backfill pages"
        in changed.out
    )
    run_hints(run, changed.out)
    assert run("doctor", own).out.splitlines()[-1] == "all is well"
