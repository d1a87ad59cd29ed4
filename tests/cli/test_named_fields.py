"""Names of fields and types that nothing has: told with the nearest there is, never passed over."""

import json
from pathlib import Path

import pytest

_TEXT = "The old bridge is closed until Monday because the river rises, buses take another way."


def _write(path, *documents):
    Path(path).write_text("".join(json.dumps(document) + "\n" for document in documents), "utf-8")
    return path


@pytest.fixture
def site(run):
    pages = [{"id": "a", "title": "Bridge", "body": _TEXT}, {"id": "b", "title": "River", "body": _TEXT}]
    assert run("index", _write("site.jsonl", *pages), "--workers", 1).code == 0
    return "site.jsonl"


@pytest.mark.parametrize("command", ["index", "groups"])
def test_a_named_field_that_no_document_has_is_no_success(run, site, command):
    into = ["--index", "other"] if command == "index" else []
    ran = run(command, site, "--field", "titel", "--field", "body", "--workers", 1, *into)
    assert (ran.code, "no document has the field titel" in ran.err) == (3, True)
    into = ["--index", "another"] if command == "index" else []
    assert run(command, site, "--field", "title", "--field", "body", "--workers", 1, *into).code == 0


@pytest.mark.parametrize("command", ["index", "groups"])
def test_fields_that_nobody_named_may_be_missing(run, command):
    path = _write("bodies.jsonl", {"id": "a", "body": _TEXT})
    assert run(command, path, "--workers", 1).code == 0


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
        ran = run("index", site, "--index", "shop", "--mapping", "types.json", "--workers", 1, *more)
        assert ran.code == 2
        assert "types.json" in ran.err
        assert "'flot'; did you mean 'float'?" in ran.err
    assert [one["index"] for one in run("stats", "--json").json()["indices"]] == ["pages"]


@pytest.mark.parametrize("command", ["index", "groups", "sign", "add"])
def test_a_run_that_found_no_text_at_all_is_no_success(run, site, command):
    path = _write("others.jsonl", *({"id": name, "headline": "Bridge", "content": _TEXT} for name in "xy"))
    before = ["--index", "pages"] if command in ("index", "add") else []
    for _ in range(2):
        ran = run(command, *before, path, *([] if command == "add" else ["--workers", 1]))
        assert ran.code == 3
        assert "warning: no document has the fields title, body" in ran.err
        assert "there is text in headline, content; to take it from there: shinglefold " in ran.err


def test_a_gate_tells_in_json_too_that_it_had_no_text_to_go_by(run, site):
    told = run("add", _write("others.jsonl", {"id": "x", "content": _TEXT}), "--json")
    assert told.code == 3
    assert told.json()["warnings"][0] == "no document has the fields title, body"
    assert run("add", _write("one.jsonl", {"id": "y", "body": "Short."}), "--json").json()["warnings"] == []


@pytest.mark.parametrize("command", ["groups", "sign"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_mistyped_field_of_languages_is_no_success(run, command, workers):
    pages = [{"id": str(number), "lang": "en", "body": f"{number} {_TEXT}"} for number in range(300)]
    path = _write("pages.jsonl", *pages)
    ran = run(command, path, "--language-field", "lnag", "--workers", workers)
    assert (ran.code, "no document has the field lnag, which languages are to come from" in ran.err) == (
        3,
        True,
    )
    assert run(command, path, "--language-field", "lang", "--workers", workers).code == 0
    renamed = [
        {("sprache" if name == "lang" else name): value for name, value in page.items()} for page in pages
    ]
    path = _write("renamed.jsonl", {"id": "none", "body": _TEXT}, *renamed)
    assert run(command, path, "--language-field", "sprache", "--workers", workers).code == 0


@pytest.mark.parametrize("option", [("--priority", "5"), ("--shadow-templates",)])
def test_options_of_templates_are_refused_without_a_pattern(run, site, option):
    ran = run("setup", "pages", *option)
    assert (ran.code, f"{option[0]} is of index templates: name their indices by --pattern" in ran.err) == (
        2,
        True,
    )


@pytest.mark.parametrize("command", [("index",), ("add", "--policy", "refuse")])
def test_a_routing_field_that_no_document_has_is_no_success(run, site, command):
    Path("new.jsonl").write_text(json.dumps({"id": "new", "body": "Snow fell on the hills last night."}))
    ran = run(*command, "new.jsonl", "--routing-field", "parent")
    assert (ran.code, "no document has the field parent, which routings are to come from" in ran.err) == (
        3,
        True,
    )


@pytest.mark.parametrize("form", [(), ("--pairs",), ("--csv",), ("--json",)])
def test_a_title_field_that_no_document_has_is_no_success(run, site, form):
    titles = () if form in (("--csv",), ("--json",)) else ("--titles",)
    ran = run("groups", site, *form, *titles, "--title-field", "titel", "--workers", 1)
    assert (ran.code, "none of these documents has the field titel" in ran.err) == (3, True)
    assert run("groups", site, *form, *titles, "--title-field", "id", "--workers", 1).code == 0
