"""A live strict index behind an alias: set up, filled in, searched, reindexed, swapped; nothing is lost."""

import json
import re
import shlex
import uuid
from collections.abc import Iterator

import pytest
from support.maintenance import pages, store
from support.servers.admin import ask

from shinglefold.cli.main import main
from shinglefold.model.recipe import fingerprint_field

_TEXT = {"type": "text"}


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
def run(server, capsys, monkeypatch, tmp_path):
    """Run a command on the server; return the exit code and what it wrote."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        # One worker: processes cost more than forty documents.
        workers = ("--workers", "1") if arguments[0] in {"backfill", "doctor"} else ()
        engine = () if "--engine" in arguments else ("--engine", server.url)
        code = main([*arguments, *workers, *engine])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture(params=["text", "article.text"])
def live(request, engine, server) -> Iterator[tuple[str, str]]:
    """The alias of a live index of five shards, and the field with its texts."""
    name = f"shinglefold-test-{uuid.uuid4().hex[:8]}"
    engine.create_index(
        f"{name}-1", _mappings(request.param), {"number_of_shards": 5, "number_of_replicas": 0}
    )
    store(engine, f"{name}-1", _articles(request.param))
    ask(server.url, "POST", "/_aliases", {"actions": [{"add": {"index": f"{name}-1", "alias": name}}]})
    yield name, request.param
    for info in engine.indices(f"{name}*"):
        engine.delete_index(info.name)


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


def _reindex(engine, server, one: str, other: str) -> None:
    """Copy an index by the server, or as it would where its distribution lacks the module."""
    if any(
        "reindex" in one["name"]
        for node in ask(server.url, "GET", "/_nodes/plugins")["nodes"].values()
        for one in node["modules"]
    ):
        body = {"source": {"index": one}, "dest": {"index": other}}
        copied = ask(server.url, "POST", "/_reindex?refresh=true", body)
        assert (copied["created"], copied["failures"]) == (40, [])
        return
    hits = engine.search(one, {"query": {"match_all": {}}, "size": 100})["hits"]["hits"]
    same = [{"_index": other, "_id": hit["_id"], "_source": hit["_source"]} for hit in hits]
    assert not engine.bulk(same).failures
    engine.refresh(other)


def test_a_new_user_sets_up_searches_reindexes_and_swaps(run, engine, server, live):
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

    # A new index with the mappings of the site, set up before documents come, takes the old one's place.
    engine.create_index(f"{alias}-2", _mappings(text), {"number_of_shards": 3, "number_of_replicas": 0})
    assert run("setup", f"{alias}-2", "--field", "title", "--field", text)[0] == 0
    _reindex(engine, server, f"{alias}-1", f"{alias}-2")
    swap = [
        {"remove": {"index": f"{alias}-1", "alias": alias}},
        {"add": {"index": f"{alias}-2", "alias": alias}},
    ]
    ask(server.url, "POST", "/_aliases", {"actions": swap})
    assert _page(run, alias) == page
    assert run("doctor", alias)[1].splitlines()[-1] == "all is well"
    assert "0 updated, 40 right already" in run("backfill", alias)[1]


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
