"""Documents with one id in several indices behind one alias: each is named by index and id."""

import json
import shlex
from itertools import islice

import pytest

from shinglefold.cli.main import main
from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.ingest.mapping import recipe_mappings
from shinglefold.rerank.similar import SimilarSearch

SETTINGS = {"number_of_shards": 5, "number_of_replicas": 0}


@pytest.fixture
def alias(engine, new_index, server) -> tuple[str, list[str]]:
    """Three indices, in each two documents of one text, which is another in each."""
    pipeline = Pipeline.from_json(default_definition())
    names = [new_index(recipe_mappings(pipeline.recipe()), SETTINGS) for _ in range(3)]
    for name, article in zip(names, islice(articles(), 0, None, 40), strict=False):
        several = [{**article, "id": id_, "url": f"https://a.org/{id_}"} for id_ in ("page", "a/page")]
        assert index_documents(engine, name, several, pipeline, workers=1).indexed == 2
    alias = f"{names[0]}-all"
    server.ask("POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": alias}} for name in names]})
    return alias, names


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    return code, *capsys.readouterr()


def test_one_of_several_documents_of_an_id_is_named_by_its_index(alias, server, capsys):
    name, indices = alias
    where = ["--index", name, "--engine", server.url]
    for index in indices:
        code, out, told = shown(capsys, "similar", f"{index}/page", *where, "--json")
        assert (code, told) == (0, "")
        assert [(one["_index"], one["_id"]) for one in json.loads(out)["matches"]] == [(index, "a/page")]
        code, out, _ = shown(capsys, "similar", f"{index}/a/page", *where)
        assert code == 0
        assert f"{index}/page" in out


@pytest.mark.parametrize("command", [["similar", "page"], ["explain", "page", "a/page"]])
def test_an_id_of_several_documents_is_refused_with_a_command_for_each(alias, server, capsys, command):
    name, indices = alias
    code, _, told = shown(capsys, *command, "--index", name, "--engine", server.url)
    assert code == 1
    offered = [one.strip() for one in told.split("by its index: ")[1].split(";")]
    assert [shlex.split(one)[2] for one in offered] == sorted(f"{index}/page" for index in indices)
    if command[0] == "similar":
        for one in offered:
            assert shown(capsys, *shlex.split(one)[1:])[0] == 0


def test_a_document_that_a_filter_hides_can_not_be_named(engine, alias, server, capsys):
    _, indices = alias
    filtered = f"{indices[0]}-some"
    query = {"ids": {"values": ["a/page"]}}
    add = {"index": indices[0], "alias": filtered, "filter": query}
    server.ask("POST", "/_aliases", {"actions": [{"add": add}]})
    code, _, told = shown(
        capsys, "similar", f"{indices[0]}/page", "--index", filtered, "--engine", server.url
    )
    assert code == 1
    assert "no document of this id" in told
    assert SimilarSearch(engine).find(filtered, "a/page").matches == ()
