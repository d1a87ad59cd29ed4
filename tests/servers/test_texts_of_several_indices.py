"""Where texts decide, each index says by its own recipe which of its fields they are."""

from dataclasses import replace
from typing import Any

import pytest
from support.copied_texts import doubtful_texts
from support.hits import groups as groups_of_page
from support.maintenance import put
from support.servers.server import add_alias

from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.similar.query_document import SimilarOptions
from shinglefold.rerank.similar.search import SimilarSearch

pytestmark = pytest.mark.newest

SCHEME = make_scheme(codes=["ru", "any"])
BODY = {
    "query": {"match_all": {}},
    "sort": [{"rank": "asc"}],
    "size": 30,
    "ext": {"dedup": {"members": 30, "verify": "text"}},
}


def filled(engine, new_index, field: str, pages: list[dict[str, Any]]) -> str:
    pipeline = Pipeline.from_json(default_definition("_dedup", (field,)), SCHEME)
    made = recipe_mappings(pipeline.recipe("_dedup"))
    made["properties"] |= {"rank": {"type": "integer"}, "body": {"type": "text"}, "notes": {"type": "text"}}
    index = new_index(made, {"number_of_shards": 2, "number_of_replicas": 0})
    documents = [outcome.document for outcome in process_block(pipeline, pages).outcomes]
    put(engine, index, {str(one["rank"]): one for one in documents})
    return index


def groups(engine, index: str, **more: Any) -> list[list[str]]:
    answer = FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker()).search(index, {**BODY, **more})
    assert sum(answer["dedup"]["by_text"][what] for what in ("parted", "joined")) > 0
    return groups_of_page(answer)


def over_two(engine, server, new_index, texts: list[str], how: str) -> str:
    """Put texts into two indices by turns, each in a field of its own; return what means both."""
    # What is no text to an index says something else in each of its documents.
    pages = [
        [
            {"rank": at, field: text, other: f"заметка{at} " * 80}
            for at, text in enumerate(texts)
            if at % 2 == rest
        ]
        for rest, field, other in ((0, "body", "notes"), (1, "notes", "body"))
    ]
    made = [
        filled(engine, new_index, field, own) for field, own in zip(("body", "notes"), pages, strict=True)
    ]
    if how == "commas":
        return ",".join(made)
    alias = f"{made[0]}-both"
    add_alias(server, alias, *made)
    return alias


@pytest.mark.parametrize("how", ["commas", "alias"])
def test_a_page_over_several_indices_reads_each_by_its_own_recipe(engine, server, new_index, how):
    texts = doubtful_texts()
    alone = filled(engine, new_index, "body", [{"rank": at, "body": text} for at, text in enumerate(texts)])
    target = over_two(engine, server, new_index, texts, how)
    wanted = groups(engine, alone)
    assert groups(engine, target) == wanted
    assert groups(engine, target, _source=["rank"]) == wanted


@pytest.mark.parametrize("how", ["commas", "alias"])
def test_copies_in_several_indices_are_read_each_by_its_own_recipe(engine, server, new_index, how):
    texts = doubtful_texts()
    search = SimilarSearch(engine, scheme=SCHEME)
    everything = SimilarOptions(size=100)
    alone = filled(engine, new_index, "body", [{"rank": at, "body": text} for at, text in enumerate(texts)])
    wanted = {match.id for match in search.find(alone, "0", everything).matches}
    target = over_two(engine, server, new_index, texts, how)
    assert {match.id for match in search.find(target, "0", everything).matches} == wanted
    signed = search.find(target, "0", replace(everything, verify="signature")).matches
    assert {match.id for match in signed} < wanted
