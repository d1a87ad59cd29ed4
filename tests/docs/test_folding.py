"""docs/folding.md: its session runs, its JSON is understood, and it leaves no option and no key out."""

import dataclasses
import doctest
import json
import re
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank import representatives as policies
from shinglefold.rerank.request.bodies import split_request

FILE = Path(__file__).parents[2] / "docs" / "folding.md"
PAGE = FILE.read_text("utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading by the names in their first cell."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| (`.*?) \| (.*) \|$", part, re.MULTILINE)
    return {name: rest.split(" | ") for first, rest in found for name in re.findall(r"`([a-z_]+)", first)}


def test_its_session_answers_what_it_shows():
    outcome = doctest.testfile(str(FILE), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 15
    assert outcome.failed == 0


def test_it_tells_every_option_and_no_other():
    told = rows("Options")
    assert told.keys() == {field.name for field in dataclasses.fields(FoldOptions)} - {
        "member_source",
        "members_from",
        "member_filter",
        "closed",
    }


def test_the_defaults_it_tells_are_those_in_force():
    told, defaults = rows("Options"), FoldOptions()
    for name in ("members", "window", "max_window"):
        assert told[name][0] == str(getattr(defaults, name))
    for name in ("fold", "explain", "cursor", "renew"):
        assert told[name][0] == str(getattr(defaults, name)).lower()
    assert told["linkage"][0] == f"`{defaults.linkage}`"


def test_its_request_is_understood():
    (request,) = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    rest, ours = split_request(request)
    assert "ext" not in rest
    options = FoldOptions.parse(ours)
    assert len(policies.load_policies(options.representative)) == len(options.scope) == 2


def test_it_tells_every_policy():
    assert rows("Which hit a group shows").keys() == policies._BUILT_IN.keys()


@pytest.mark.parametrize("more", [{"explain": True, "cursor": True, "verify": "text"}])
def test_it_tells_every_key_of_an_answer(tmp_path, more):
    pipeline = Pipeline.from_json(default_definition())
    with EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer) as engine:
        index_documents(engine, "site", list(articles())[:5], pipeline, workers=1)
        answer = FoldedSearch(engine, pipeline.scheme).search("site", {"size": 2, "ext": {"dedup": more}})
    assert rows("The answer").keys() == answer["dedup"].keys()
