"""The recipe on real servers: kept in the mappings, read by every command, and one behind an alias."""

import json
import re
import shlex
from pathlib import Path

import pytest
from support.maintenance import pages
from support.servers.admin import ask
from support.servers.server import add_alias

from shinglefold.ingest import Pipeline, index_documents
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text("utf-8")
DEFINITIONS = [json.loads(one) for one in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) if '"proc' in one]
OWN = {"processors": [{"supershingle": {"fields": ["title", "body"], "target_field": "near"}}]}


@pytest.fixture
def run(run):
    """Run commands beside pages, and a pipeline of the test's own."""
    Path("pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages(12)))
    Path("own.json").write_text(json.dumps(OWN))
    return run


@pytest.mark.newest
@pytest.mark.parametrize("number", range(len(DEFINITIONS)))
def test_a_pipeline_of_the_page_goes_through_index_doctor_backfill_and_doctor(engine, name, scheme, number):
    pipeline = Pipeline.from_json(DEFINITIONS[number], scheme)
    both = [{**page, "article": {"html": f"<p>{page['body']}</p>"}} for page in pages(20)]
    assert index_documents(engine, name, both, pipeline, workers=1).indexed == 20
    assert diagnose(engine, name, pipeline, DoctorOptions(workers=1)).healthy
    assert backfill(engine, name, pipeline, BackfillOptions(workers=1)).counts.unchanged == 20
    assert diagnose(engine, name, pipeline, DoctorOptions(workers=1)).healthy


@pytest.mark.newest
def test_no_command_needs_a_flag_again(run, name):
    made = run("index", "pages.jsonl", "--index", name, "--pipeline", "own.json", "--preset", "classic")
    assert made[0] == 0, made
    for command in (
        ["doctor", name],
        ["backfill", name],
        ["index", "pages.jsonl", "--index", name],
        ["search", "Страница", "--index", name],
        ["compare", "page-1", "page-2", "--index", name],
        ["doctor", name],
        ["setup", name],
    ):
        code, out, err = run(*command)
        assert (code, err) == (0, ""), (command, out)


@pytest.mark.newest
def test_what_contradicts_the_index_is_refused_and_the_remedy_works(run, name):
    assert run("index", "pages.jsonl", "--index", name)[0] == 0
    code, _, err = run("backfill", name, "--pipeline", "own.json")
    assert code == 1
    for command in re.findall(r"shinglefold (?:setup|backfill) .*", err)[0].split(" && "):
        assert run(*shlex.split(command)[1:])[0] == 0
    assert run("doctor", name)[0] == 0


@pytest.mark.newest
def test_indices_behind_an_alias_must_have_one_recipe(run, server, name):
    assert run("index", "pages.jsonl", "--index", f"{name}-1")[0] == 0
    assert run("index", "pages.jsonl", "--index", f"{name}-2")[0] == 0
    add_alias(server, f"{name}-all", f"{name}-1", f"{name}-2")
    assert run("search", "Страница", "--index", f"{name}-all")[0] == 0
    assert run("doctor", f"{name}-all")[0] == 0
    assert run("setup", f"{name}-2", "--preset", "classic")[0] == 0
    for command in (["search", "Страница", "--index", f"{name}-all"], ["backfill", f"{name}-all"]):
        code, _, err = run(*command)
        assert code == 2
        assert "different recipes" in err
        assert f"{name}-1" in err
        assert "(classic)" in err


def test_an_index_to_come_gets_the_recipe_of_its_template(run, server, name):
    try:
        code, _, err = run("setup", "--pattern", f"{name}-*", "--name", name, "--pipeline", "own.json")
        assert code == 0, err
        again = run("setup", "--pattern", f"{name}-*", "--name", name, "--pipeline", "own.json")
        assert again[1].splitlines()[-1:] == ["nothing to change"], again
        assert run("index", "pages.jsonl", "--index", f"{name}-1")[0] == 0
        code, out, _ = run("doctor", f"{name}-1", "--json")
        assert (code, json.loads(out)["findings"]) == (0, {"sound": 12})
        assert run("setup", f"{name}-1", "--name", name)[1].splitlines()[-1] == "nothing to change"
    finally:
        for path in (f"/_index_template/{name}", f"/_component_template/{name}-near"):
            ask(server.url, "DELETE", path)


@pytest.mark.newest
def test_commands_that_take_an_id_look_through_an_alias_as_a_search_does(run, engine, server, name):
    text = pages(1)[0]["body"]
    for part, id_, shown in (("a", "one", True), ("b", "two", True), ("b", "hidden", False)):
        page = {
            "id": id_,
            "body": text,
            "url": "https://shown.example" if shown else "https://hidden.example",
        }
        Path("page.jsonl").write_text(json.dumps(page))
        assert run("index", "page.jsonl", "--index", f"{name}-{part}", "--workers", "1")[0] == 0
    add_alias(server, f"{name}-all", f"{name}-*", filter={"prefix": {"url": "https://shown"}})
    code, out, _ = run("similar", "one", "--index", f"{name}-all", "--json")
    assert (code, [match["_id"] for match in json.loads(out)["matches"]]) == (0, ["two"])
    assert run("compare", "one", "two", "--index", "pages", "--index", f"{name}-all")[0] == 0
    for hidden in (("similar", "hidden"), ("compare", "one", "hidden")):
        code, _, err = run(*hidden, "--index", f"{name}-all")
        assert (code, bool(re.search("no document ('hidden'|of this id)", err))) == (1, True)


@pytest.mark.newest
def test_an_index_set_up_for_groups_later_takes_tagged_documents(run, name):
    assert run("index", "pages.jsonl", "--index", name, "--workers", "1")[0] == 0
    assert run("setup", name, "--groups", "--name", name)[0] in (0, 3)
    Path("new.jsonl").write_text(json.dumps({"id": "new", "body": pages(30)[29]["body"]}))
    code, _, err = run("add", "new.jsonl", "--index", name, "--policy", "tag")
    assert (code, err) == (0, "")
    code, out, _ = run("doctor", name, "--workers", "1")
    assert (code, "12 have no number of a group" in out) == (3, True)
