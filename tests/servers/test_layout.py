"""An index that is made, or built anew, on a server: nothing that a template or the old one says is lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from support.clients import a_client
from support.maintenance import pages

import shinglefold

ANALYSIS = {"analyzer": {"mine": {"tokenizer": "standard", "filter": ["lowercase"]}}}
TITLE = {"type": "text", "analyzer": "mine", "fields": {"raw": {"type": "keyword"}}}
COUNT = 12


@pytest.fixture
def run(run):
    Path("pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages(COUNT)))
    return run


@pytest.fixture
def name(name, server) -> Iterator[str]:
    """The beginning of the names of indices and templates, which are deleted afterwards."""
    yield name
    for path in ("_index_template", "_template"):
        if any(one.startswith(name) for one in _templates(server, path)):
            server.ask("DELETE", f"/{path}/{name}*")


def _templates(server, path):
    told = server.ask("GET", f"/{path}")
    return [one["name"] for one in told["index_templates"]] if "index_templates" in told else list(told)


def _fields(engine, index):
    return engine.mappings(index)["properties"]


def _settings(engine, index):
    (found,) = engine.templates.index_settings(index).values()
    return found


@pytest.mark.parametrize("legacy", [False, True], ids=["index template", "legacy template"])
def test_what_a_template_says_of_fields_holds(run, engine, server, name, legacy):
    made = {
        "settings": {"number_of_shards": 2, "analysis": ANALYSIS},
        "mappings": {"properties": {"title": TITLE, "host": {"type": "text"}}},
    }
    if legacy:
        server.ask("PUT", f"/_template/{name}", {"index_patterns": [f"{name}*"], **made})
    else:
        body = {"index_patterns": [f"{name}*"], "priority": 700, "template": made}
        server.ask("PUT", f"/_index_template/{name}", body)
    code, _, err = run("index", "pages.jsonl", "--index", f"{name}-1", "--workers", "1")
    assert (code, err) == (0, "")
    fields = _fields(engine, f"{name}-1")
    assert (fields["title"], fields["host"]) == (TITLE, {"type": "text"})
    # Where the template says nothing, what is usual.
    assert fields["id"] == {"type": "keyword"}
    assert _settings(engine, f"{name}-1")["index.number_of_shards"] == "2"


@pytest.fixture
def laid_out(run, engine, name):
    """An index of some shards, with an analyzer and fields that no server would guess."""
    properties = {
        "title": TITLE,
        "price": {"type": "short"},
        "author": {"properties": {"name": {"type": "keyword"}, "age": {"type": "long"}}},
        "guessed": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
    }
    mappings = {"dynamic_templates": [{"ids": {"match": "*_id", "mapping": {"type": "keyword"}}}]}
    own = {"number_of_shards": 3, "number_of_replicas": 0, "refresh_interval": "7s", "analysis": ANALYSIS}
    engine.create_index(name, {**mappings, "properties": properties}, {"index": own})
    assert run("setup", name)[0] == 0
    assert run("index", "pages.jsonl", "--index", name, "--workers", "1")[0] == 0
    return name


def test_an_index_built_anew_keeps_its_settings_and_its_fields(run, engine, laid_out):
    before, count = _settings(engine, laid_out), engine.search(laid_out, {})["hits"]["total"]["value"]
    code, _, err = run("index", "pages.jsonl", "--index", laid_out, "--recreate", "--workers", "1")
    assert (code, count) == (0, COUNT)
    engine.refresh(laid_out)
    assert engine.search(laid_out, {})["hits"]["total"]["value"] == COUNT
    after = _settings(engine, laid_out)
    own = {at for at in before if at.startswith(("index.number_of_", "index.analysis.", "index.refresh"))}
    assert len(own) == 5
    assert {at: after[at] for at in own} == {at: before[at] for at in own}
    fields = _fields(engine, laid_out)
    assert fields["title"] == TITLE
    assert fields["price"] == {"type": "short"}
    assert fields["author"]["properties"] == {"name": {"type": "keyword"}}
    assert "guessed" not in fields
    # What can't be kept is told.
    assert "dynamic_templates" in err
    # Again: the name is an alias now.
    assert run("index", "pages.jsonl", "--index", laid_out, "--recreate", "--workers", "1")[0] == 0
    assert _fields(engine, laid_out)["title"] == TITLE


def test_what_is_said_now_goes_before_what_the_old_index_said(run, engine, server, laid_out):
    template = {
        "settings": {"number_of_shards": 2},
        "mappings": {"properties": {"price": {"type": "double"}}},
    }
    body = {"index_patterns": [f"{laid_out}*"], "priority": 700, "template": template}
    server.ask("PUT", f"/_index_template/{laid_out}", body)
    Path("types.json").write_text(json.dumps({"title": {"type": "keyword"}}))
    more = ("--recreate", "--mapping", "types.json", "--workers", "1")
    assert run("index", "pages.jsonl", "--index", laid_out, *more)[0] == 0
    fields = _fields(engine, laid_out)
    assert (fields["title"], fields["price"]) == ({"type": "keyword"}, {"type": "double"})
    after = _settings(engine, laid_out)
    assert (after["index.number_of_shards"], after["index.refresh_interval"]) == ("2", "7s")


def test_an_index_without_objects_is_set_up_filled_and_folded(run, engine, server, name):
    """Where ``subobjects`` is false, the names of fields have points, and mappings no objects."""
    try:
        server.ask("PUT", f"/{name}", {"mappings": {"subobjects": False}})
    except HTTPError as error:
        pytest.skip(f"this server maps all objects ({error.code})")
    plain = [{"_index": name, "_id": page["id"], "_source": {**page, "a.b": 1}} for page in pages(COUNT)]
    assert engine.bulk(plain).indexed == COUNT
    engine.refresh(name)
    code, out, err = run("setup", name, "--groups")
    assert code == 0, (out, err)
    assert "nothing to change" in run("setup", name, "--groups")[1]
    for command in ("backfill", "regroup", "doctor", "report"):
        code, out, err = run(command, name)
        assert (code, err) == (0, ""), (command, out)
    assert run("index", "pages.jsonl", "--index", name, "--workers", "1")[0] == 0
    assert run("doctor", name)[0] == 0
    assert run("search", "Страница", "--index", name, "--mode", "native")[0] == 0


def test_a_strict_index_without_objects_is_refused_until_it_ignores_what_it_does_not_know(
    run, engine, server, name
):
    """Such a mapping refuses each document with an object, and the fingerprint is one."""
    fields = {"title": {"type": "text"}, "body": {"type": "text"}}
    made = {"subobjects": False, "dynamic": "strict", "properties": fields}
    try:
        server.ask("PUT", f"/{name}", {"mappings": made})
    except HTTPError as error:
        pytest.skip(f"this server maps all objects ({error.code})")
    code, out, err = run("setup", name)
    assert code == 3
    assert f'PUT /{name}/_mapping {{"dynamic": false}}' in out + err
    server.ask("PUT", f"/{name}/_mapping", {"dynamic": False})
    assert run("setup", name)[0] == 0
    client = a_client(engine.info()["distribution"], server.url, awaited=False)
    folded = shinglefold.fold(client)
    for id_ in ("1", "2"):
        folded.index(index=name, id=id_, body={"title": "Bridge", "body": "A bridge over the river."})
    folded.update(index=name, id="2", body={"doc": {"title": "Bridges"}}, refresh=True)
    page = folded.search(index=name, body={"query": {"match_all": {}}, "ext": {"dedup": {}}})
    assert (page["dedup"]["folded"], page["dedup"]["unsigned"]) == (1, 0)
    client.close()
