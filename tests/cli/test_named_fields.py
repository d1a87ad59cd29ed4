"""Names of fields and types that nothing has: told with the nearest there is, never passed over."""

import json
from pathlib import Path

import pytest
from support.commands import TEXT, write_lines


@pytest.fixture
def site(run):
    pages = [{"id": "a", "title": "Bridge", "body": TEXT}, {"id": "b", "title": "River", "body": TEXT}]
    assert run("index", write_lines("site.jsonl", *pages)).code == 0
    return "site.jsonl"


@pytest.mark.parametrize("command", ["index", "groups"])
def test_a_named_field_that_no_document_has_is_no_success(run, site, command):
    into = ["--index", "other"] if command == "index" else []
    run(command, site, "--field", "titel", "--field", "body", *into).check(
        3, "no document has the field titel"
    )
    into = ["--index", "another"] if command == "index" else []
    assert run(command, site, "--field", "title", "--field", "body", *into).code == 0


@pytest.mark.parametrize("command", ["index", "groups"])
def test_fields_that_nobody_named_may_be_missing(run, command):
    path = write_lines("bodies.jsonl", {"id": "a", "body": TEXT})
    assert run(command, path).code == 0


@pytest.mark.parametrize(
    ("query", "name", "nearest"),
    [
        ({"term": {"titel": "x"}}, "titel", "title"),
        ({"bool": {"must_not": [{"match": {"bodi": "x"}}]}}, "bodi", "body"),
        ({"exists": {"field": "titel"}}, "titel", "title"),
        ({"multi_match": {"query": "x", "fields": ["title^2", "bodi^3"]}}, "bodi", "body"),
        ({"constant_score": {"filter": {"range": {"_dedup.shingle": {"gte": 1}}}}}, "_dedup.shingle", ""),
        ({"query": {"terms": {"titel": ["a"], "boost": 2}}}, "titel", "title"),
    ],
)
def test_a_deletion_by_a_field_that_is_not_there_is_refused(run, site, query, name, nearest):
    for ending in ("--yes", "--dry-run"):
        ran = run("delete", "pages", "--query", json.dumps(query), ending)
        assert (ran.code, ran.out) == (2, "")
        assert f"unknown field (in --query, index 'pages') '{name}'" in ran.err
        assert f"did you mean '{nearest}" in ran.err
    assert run("stats", "pages", "--json").json()["indices"][0]["documents"] == 2


@pytest.mark.parametrize(
    "query",
    [
        {"match_all": {}},
        {"ids": {"values": ["a"]}},
        {"bool": {"filter": [{"match": {"title": "bridge"}}, {"exists": {"field": "_dedup.digest"}}]}},
        {"term": {"_id": {"value": "a"}}},
    ],
)
def test_a_deletion_by_known_fields_goes_on(run, site, query):
    assert run("delete", "pages", "--query", json.dumps(query), "--dry-run").code == 0


def test_a_mistyped_field_to_sort_by_is_misuse(run, site):
    ran = run("search", "bridge", "--sort", "_dedup.digst:desc")
    assert (ran.code, ran.out) == (2, "")
    assert "unknown field (in --sort, index 'pages') '_dedup.digst'; did you mean '_dedup.digest'?" in ran.err
    assert run("search", "bridge", "--sort", "_score", "--sort", "id:desc").code == 0


def test_a_mistyped_type_in_a_mapping_is_misuse_and_leaves_nothing(run, site):
    Path("types.json").write_text('{"price": {"type": "flot"}}')
    for more in ((), ("--recreate",)):
        run("index", site, "--index", "shop", "--mapping", "types.json", *more).check(
            2, "types.json", "'flot'; did you mean 'float'?"
        )
    assert [one["index"] for one in run("stats", "--json").json()["indices"]] == ["pages"]


@pytest.mark.parametrize("command", ["index", "groups", "sign", "add"])
def test_a_run_that_found_no_text_at_all_is_no_success(run, site, command):
    path = write_lines(
        "others.jsonl", *({"id": name, "headline": "Bridge", "content": TEXT} for name in "xy")
    )
    before = ["--index", "pages"] if command in ("index", "add") else []
    for _ in range(2):
        run(command, *before, path).check(
            3,
            "warning: no document has the fields title, body",
            "there is text in headline, content; to take it from there: shinglefold ",
        )


def test_a_gate_tells_in_json_too_that_it_had_no_text_to_go_by(run, site):
    told = run("add", write_lines("others.jsonl", {"id": "x", "content": TEXT}), "--json").check(3)
    assert told.json()["warnings"][0] == "no document has the fields title, body"
    assert (
        run("add", write_lines("one.jsonl", {"id": "y", "body": "Short."}), "--json").json()["warnings"] == []
    )


@pytest.mark.long(every=4)
@pytest.mark.parametrize("command", ["groups", "sign"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistyped_field_of_languages_is_no_success(run, command, workers):
    pages = [{"id": str(number), "lang": "en", "body": f"{number} {TEXT}"} for number in range(300)]
    path = write_lines("pages.jsonl", *pages)
    run(command, path, "--language-field", "lnag", "--workers", workers).check(
        3, "no document has the field lnag, which languages are to come from"
    )
    assert run(command, path, "--language-field", "lang", "--workers", workers).code == 0
    renamed = [
        {("sprache" if name == "lang" else name): value for name, value in page.items()} for page in pages
    ]
    path = write_lines("renamed.jsonl", {"id": "none", "body": TEXT}, *renamed)
    assert run(command, path, "--language-field", "sprache", "--workers", workers).code == 0


@pytest.mark.parametrize("option", [("--priority", "5"), ("--shadow-templates",)])
def test_options_of_templates_are_refused_without_a_pattern(run, site, option):
    run("setup", "pages", *option).check(
        2, f"{option[0]} is of index templates: name their indices by --pattern"
    )


@pytest.mark.parametrize("command", [("index",), ("add", "--policy", "refuse")])
def test_a_routing_field_that_no_document_has_is_no_success(run, site, command):
    Path("new.jsonl").write_text(json.dumps({"id": "new", "body": "Snow fell on the hills last night."}))
    run(*command, "new.jsonl", "--routing-field", "parent").check(
        3, "no document has the field parent, which routings are to come from"
    )


@pytest.mark.long(every=4)
@pytest.mark.parametrize("form", [(), ("--pairs",), ("--csv",), ("--json",)])
def test_a_title_field_that_no_document_has_is_no_success(run, site, form):
    titles = () if form in (("--csv",), ("--json",)) else ("--titles",)
    run("groups", site, *form, *titles, "--title-field", "titel").check(
        3, "none of these documents has the field titel"
    )
    assert run("groups", site, *form, *titles, "--title-field", "id").code == 0


_PAGES = "".join(
    json.dumps({"id": name, "title": "Bridge", "body": TEXT, "host": "a.example"}) + "\n" for name in "ab"
)


@pytest.mark.parametrize("field", ["title", "body", "_id", "a..b", ""])
@pytest.mark.parametrize("command", ["index", "sign", "setup"])
def test_a_field_that_is_something_else_is_misuse(run, monkeypatch, field, command):
    if command == "setup":
        ran = run("setup", "pages", "--dedup-field", field)
    else:
        monkeypatch.setenv("SHINGLEFOLD_FIELD", field)
        ran = run(command, "-", stdin=_PAGES)
    assert (ran.code, ran.out) == (2, "")
    monkeypatch.delenv("SHINGLEFOLD_FIELD", raising=False)
    assert run("stats", "--json").json() == {"indices": []}


@pytest.mark.parametrize("command", ["index", "sign", "add"])
def test_no_value_is_lost_to_a_field_of_the_same_name(run, monkeypatch, command):
    monkeypatch.setenv("SHINGLEFOLD_FIELD", "host")
    if command == "add":
        assert run("setup", "pages").code == 0
    ran = run(command, "-", stdin=_PAGES).check(1)
    assert "[host] is text, no fingerprint, and would be lost" in ran.out + ran.err
