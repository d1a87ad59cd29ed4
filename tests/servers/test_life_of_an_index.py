"""A live strict index behind an alias: set up, filled in, searched, reindexed, swapped; nothing is lost."""

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from support.maintenance import pages, store
from support.servers.admin import ask, until
from support.servers.server import add_alias

import shinglefold
from shinglefold.model.recipe import fingerprint_field

_TEXT = {"type": "text"}
_PAGE = (Path(__file__).parents[2] / "docs" / "how-to-existing-index.md").read_text("utf-8")


def _mappings(text: str) -> dict:
    """The strict mappings of an index of articles, with their text in a field of this name."""
    first, _, rest = text.partition(".")
    own = {"title": {**_TEXT, "fields": {"raw": {"type": "keyword"}}}, "id": {"type": "keyword"}}
    return {
        "dynamic": "strict",
        "_meta": {"owner": "the newspaper"},
        "properties": {**own, first: {"properties": {rest: _TEXT}} if rest else _TEXT},
    }


def _articles(text: str) -> list[dict]:
    """Thirty different articles under one rubric title, and a copy of each of the first ten."""
    first, _, rest = text.partition(".")
    texts = [page["body"] for page in pages(40, length=60) if not page["id"].endswith("9")][:30]
    return [
        {"id": f"{number}", "title": "Новости города", first: {rest: body} if rest else body}
        for number, body in enumerate([*texts, *texts[:10]])
    ]


@pytest.fixture
def run(run):
    """Run commands with one worker: processes cost more than forty documents."""

    def command(*arguments):
        return run(*arguments, *(("--workers", "1") if arguments[0] in {"backfill", "doctor"} else ()))

    return command


@pytest.fixture(params=["text", "article.text"])
def live(request, engine, server, name) -> tuple[str, str]:
    """The alias of a live index of five shards, and the field with its texts."""
    engine.create_index(
        f"{name}-1", _mappings(request.param), {"number_of_shards": 5, "number_of_replicas": 0}
    )
    store(engine, f"{name}-1", _articles(request.param))
    add_alias(server, name, f"{name}-1")
    return name, request.param


def _run_printed(run, text: str) -> None:
    """Run the commands that a message prints last."""
    printed = re.findall(r"shinglefold (?:setup|backfill) .*", text)[-1]
    for command in printed.split(" && "):
        code, _, err = run(*shlex.split(command)[1:])
        assert (code, err) == (0, ""), command


def _page(run, alias: str) -> list[list[str]]:
    """The groups of a search, each as the sorted ids of its members."""
    code, out, err = run("search", "Новости", "--index", alias, "--size", "40", "--json", "--members", "5")
    assert code == 0, err
    hits = json.loads(out)["hits"]["hits"]
    inner = [hit["inner_hits"]["duplicates"]["hits"]["hits"] for hit in hits]
    return sorted(sorted(one["_id"] for one in some) for some in inner)


def _has(server, module: str) -> bool:
    """Whether the distribution of a server has a module."""
    nodes = ask(server.url, "GET", "/_nodes/plugins")["nodes"].values()
    return any(module in one["name"] for node in nodes for one in node["modules"])


def _printed(start: str, name: str) -> tuple[str, str, Any]:
    """The request of the page that starts so, with another name for its indices: method, path, body."""
    (found,) = re.findall(rf"`({re.escape(start)}[^`]*)`", _PAGE)
    method, path, body = found.replace("news", name).split(" ", 2)
    return method, f"/{path}", json.loads(body)


def _reindex(engine, server, name: str, one: str, other: str) -> None:
    """Copy an index as the page says, or as the server would where its distribution lacks the module."""
    if _has(server, "reindex"):
        method, path, body = _printed("POST _reindex", name)
        assert body == {"source": {"index": f"{name}-1"}, "dest": {"index": f"{name}-2"}}
        task = ask(server.url, method, path, {"source": {"index": one}, "dest": {"index": other}})["task"]
        until(lambda: ask(server.url, "GET", f"/_tasks/{task}")["completed"])
        copied = ask(server.url, "GET", f"/_tasks/{task}")["response"]
        assert (copied["created"], copied["failures"]) == (copied["total"], [])
        ask(server.url, "POST", f"/{other}/_refresh")
        return
    hits = engine.search(one, {"query": {"match_all": {}}, "size": 100})["hits"]["hits"]
    same = [{"_index": other, "_id": hit["_id"], "_source": hit["_source"]} for hit in hits]
    assert not engine.bulk(same).failures
    engine.refresh(other)


def _swap(server, alias: str, one: str, other: str) -> None:
    method, path, body = _printed("POST _aliases", alias)
    actions = json.dumps(body).replace(f"{alias}-1", "one").replace(f"{alias}-2", "other")
    named = actions.replace('"one"', f'"{alias}-{one}"').replace('"other"', f'"{alias}-{other}"')
    ask(server.url, method, path, json.loads(named))


@pytest.mark.newest
def test_a_new_user_sets_up_searches_reindexes_swaps_and_removes(run, engine, server, live, caplog):
    alias, text = live
    asked, _, err = run("setup", alias)
    assert (asked, f"most of the text is in {text}" in err) == (2, True)
    assert fingerprint_field(engine.mappings(alias)) == ""
    _run_printed(run, err)
    assert run("doctor", alias)[1].splitlines()[-1] == "all is well"
    page = _page(run, alias)
    assert page == sorted(sorted({f"{n}", f"{n + 30}"} if n < 10 else {f"{n}"}) for n in range(30))

    # Somebody replaces _meta; what is printed restores the recipe, and writes no fingerprint over.
    noted = engine.mappings(f"{alias}-1")["_meta"]["shinglefold"]
    engine.put_mappings(f"{alias}-1", {"_meta": {"owner": "the newspaper"}})
    lost, _, err = run("backfill", alias)
    assert lost == 2
    restored, _, told = run("setup", *shlex.split(re.findall(r"shinglefold setup (.*)", err)[0]))
    assert (restored, "40 of 40 documents looked at show" in told) == (0, True)
    assert engine.mappings(f"{alias}-1")["_meta"] == {"owner": "the newspaper", "shinglefold": noted}
    assert "0 updated, 40 right already" in run("backfill", alias)[1]

    # Documents are copied into an index that nobody set up: the application gets the server's own pages.
    body = {"query": {"match": {"title": "Новости"}}, "size": 40}
    engine.create_index(f"{alias}-bare", {}, {"number_of_shards": 1, "number_of_replicas": 0})
    _reindex(engine, server, alias, f"{alias}-1", f"{alias}-bare")
    with shinglefold.open(server.url, alias) as application:
        assert len(application.search(body)["hits"]["hits"]) == 30
        _swap(server, alias, "1", "bare")
        plain = application.search(body)
        assert (len(plain["hits"]["hits"]), plain["dedup"]["mode"]) == (40, "unfolded")
        assert "setup" in plain["dedup"]["mode_reason"]
        assert plain["dedup"]["mode_reason"][:80] in caplog.text
        _swap(server, alias, "bare", "1")
        assert len(application.search(body)["hits"]["hits"]) == 30

    # A new index with the mappings of the site, set up before documents come, takes the old one's place.
    engine.create_index(f"{alias}-2", _mappings(text), {"number_of_shards": 3, "number_of_replicas": 0})
    assert run("setup", f"{alias}-2", "--field", "title", "--field", text)[0] == 0
    _reindex(engine, server, alias, f"{alias}-1", f"{alias}-2")
    _swap(server, alias, "1", "2")
    assert _page(run, alias) == page
    assert run("doctor", alias)[1].splitlines()[-1] == "all is well"
    assert "0 updated, 40 right already" in run("backfill", alias)[1]

    # Everything is taken out again, and documents and mappings are those of the site.
    assert "fingerprints taken from 40 documents; done" in run("setup", alias, "--remove")[1]
    found = engine.search(f"{alias}-2", {"size": 100, "query": {"match_all": {}}})["hits"]["hits"]
    assert {hit["_id"]: hit["_source"] for hit in found} == {one["id"]: one for one in _articles(text)}
    assert engine.mappings(f"{alias}-2")["_meta"] == {"owner": "the newspaper"}
    code, _, err = run("doctor", alias)
    assert (code, f"shinglefold setup {alias}" in err) == (2, True)


@pytest.mark.parametrize("live", ["text"], indirect=True)
def test_external_versions_filtered_aliases_and_writers_are_as_the_page_says(run, engine, server, live):
    alias, text = live
    index = f"{alias}-1"
    put = f"/{index}/_doc/0?version_type=external&refresh=true&version="
    article = _articles(text)[0]
    ask(server.url, "PUT", f"{put}7", article)
    add_alias(server, f"{alias}-some", index, filter={"terms": {"id": ["0", "1", "2"]}})
    assert run("setup", index, "--field", "title", "--field", text)[0] == 0

    # Through an alias with a filter backfill and doctor read what it shows.
    assert "3 updated" in run("backfill", f"{alias}-some")[1]
    assert run("doctor", f"{alias}-some")[1].splitlines()[-1] == "all is well"
    assert run("doctor", index)[0] == 3
    assert "37 updated, 3 right already" in run("backfill", index, "--requests-per-second", "500")[1]

    # A version of the writer's own must be greater than that of the backfill.
    with pytest.raises(HTTPError) as refused:
        ask(server.url, "PUT", f"{put}8", article)
    assert refused.value.code == 409
    ask(server.url, "PUT", f"{put}9", article)
    assert "1 updated" in run("backfill", index, "--only-missing")[1]

    # Each remedy of the table of writers leaves a document without its old fingerprint.
    other = pages(60, length=60)[50]["body"]
    changes = [{"doc": {text: other, "_dedup": None}}]
    if _has(server, "painless"):
        script = f"ctx._source.{text} = params.other; ctx._source.remove('_dedup')"
        assert "`ctx._source.remove('_dedup')`" in _PAGE
        changes.append({"script": {"source": script, "params": {"other": other}}})
    for number, change in enumerate(changes):
        ask(server.url, "POST", f"/{index}/_update/{number}?refresh=true", change)
    assert f"{len(changes)} updated" in run("backfill", index, "--only-missing")[1]
    assert run("doctor", index)[1].splitlines()[-1] == "all is well"

    # The next index has the mappings of the old one, and needs no change.
    mappings = ask(server.url, "GET", f"/{index}/_mapping")[index]["mappings"]
    ask(server.url, "PUT", f"/{alias}-2", {"mappings": mappings})
    assert "nothing to change" in run("setup", f"{alias}-2", "--dry-run")[1]
    _reindex(engine, server, alias, index, f"{alias}-2")
    assert run("doctor", f"{alias}-2")[1].splitlines()[-1] == "all is well"


def test_a_text_that_is_replaced_alone_stands_alone_where_texts_decide(run, engine, live):
    alias, text = live
    assert run("setup", alias, "--field", "title", "--field", text)[0] == 0
    assert run("backfill", alias)[0] == 0
    first, _, rest = text.partition(".")
    body = pages(60, length=60)[50]["body"]
    own = {"_op_type": "update", "_index": f"{alias}-1", "_id": "30"}
    engine.bulk([{**own, "doc": {first: {rest: body} if rest else body}}])
    engine.refresh(f"{alias}-1")
    command = ("search", "Новости", "--index", alias, "--size", "40", "--json", "--verify", "text")
    answer = json.loads(run(*command)[1])
    assert (len(answer["hits"]["hits"]), answer["dedup"]["stale"]) == (31, 1)
    engine.bulk([{**own, "doc": {fingerprint_field(engine.mappings(f"{alias}-1")): None}}])
    engine.refresh(f"{alias}-1")
    answer = json.loads(run(*command)[1])
    assert (len(answer["hits"]["hits"]), answer["dedup"]["stale"]) == (31, 0)
