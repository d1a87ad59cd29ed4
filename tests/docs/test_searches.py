"""Pages about searches: their JSON is understood, and they leave no option and no key out."""

import dataclasses
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
from shinglefold.rerank.request.fold_options import VISITORS

ROOT = Path(__file__).resolve().parents[2]

FILE = ROOT / "docs" / "folding.md"
FOLDING = FILE.read_text("utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading by the names in their first cell."""
    part = FOLDING.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| (`.*?) \| (.*) \|$", part, re.MULTILINE)
    return {name: rest.split(" | ") for first, rest in found for name in re.findall(r"`([a-z_]+)", first)}


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


def test_the_request_of_the_page_of_folding_is_understood():
    (request,) = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", FOLDING, re.DOTALL)]
    rest, ours = split_request(request)
    assert "ext" not in rest
    options = FoldOptions.parse(ours)
    assert len(policies.load_policies(options.representative)) == len(options.scope) == 2


def test_it_tells_every_policy():
    assert rows("Which hit a group shows").keys() == policies.BUILT_IN.keys()


@pytest.mark.parametrize("more", [{"explain": True, "cursor": True, "verify": "text"}])
def test_it_tells_every_key_of_an_answer(tmp_path, more):
    pipeline = Pipeline.from_json(default_definition())
    with EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer) as engine:
        index_documents(engine, "site", list(articles())[:5], pipeline, workers=1)
        answer = FoldedSearch(engine, pipeline.scheme).search("site", {"size": 2, "ext": {"dedup": more}})
    assert rows("The answer").keys() == answer["dedup"].keys()


COLLAPSE = (ROOT / "docs" / "collapse.md").read_text("utf-8")


def test_the_request_of_the_page_of_collapse_is_understood():
    (example,) = re.findall(r"```json\n(.*?)```", COLLAPSE, re.DOTALL)
    options = FoldOptions.parse(split_request(json.loads(example))[1])
    assert [one.name for one in options.inner_hits] == ["cheapest", "by_city"]


MERGED = (ROOT / "docs" / "how-to-merged-hits.md").read_text("utf-8")
MERGED_ROWS = re.findall(r"^\| (\w+), .*? \| `(answer.*?)` \| `(hit.*?)` \|$", MERGED, re.MULTILINE)
#: Answers in the form of each engine, with one hit of id 1, text "law" and score 0.5.
ANSWERS = {
    "Vespa": {
        "root": {
            "id": "toplevel",
            "relevance": 1.0,
            "fields": {"totalCount": 1},
            "children": [{"id": 1, "relevance": 0.5, "source": "laws", "fields": {"body": "law"}}],
        }
    },
    "Typesense": {"found": 1, "page": 1, "hits": [{"document": {"id": 1, "body": "law"}, "text_match": 0.5}]},
    "Meilisearch": {"query": "law", "limit": 20, "hits": [{"id": 1, "body": "law", "_rankingScore": 0.5}]},
    "Qdrant": {
        "status": "ok",
        "result": {"points": [{"id": 1, "version": 3, "score": 0.5, "payload": {"body": "law"}}]},
    },
}


def test_the_table_has_a_row_for_each_engine():
    assert [engine for engine, _, _ in MERGED_ROWS] == list(ANSWERS)


@pytest.mark.parametrize(("engine", "hits", "parts"), MERGED_ROWS)
def test_a_row_reads_an_answer_of_its_engine(engine, hits, parts):
    (hit,) = eval(hits, {"answer": ANSWERS[engine]})
    assert eval(parts, {"hit": hit}) == (1, "law", 0.5)


SECURITY = ROOT / "docs" / "security.md"


def test_it_names_all_that_visitors_may_set_and_no_more():
    part = SECURITY.read_text("utf-8").split("## What visitors may set\n")[1].split("```")[0]
    first = [row.split("|")[1] for row in part.splitlines() if row.startswith("| `")]
    assert {name for cell in first for name in re.findall(r"`([a-z]+[a-z_]*)`", cell)} == set(VISITORS)
