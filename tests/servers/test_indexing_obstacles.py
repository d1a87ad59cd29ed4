"""What keeps documents out of an index of somebody else's making is told with its remedy."""

import json
import uuid

import pytest
from support.maintenance import FIELDS, mapped, pages
from support.servers.admin import ask
from support.servers.server import add_alias

from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition, index_documents, mappings
from shinglefold.ingest.index_mapping import recipe_mappings

pytestmark = pytest.mark.newest


@pytest.fixture
def made(scheme):
    return mapped(scheme)


def test_an_alias_without_an_index_for_new_documents_is_refused_before_the_first(
    engine, server, new_index, made, pipeline
):
    alias = f"shinglefold-alias-{uuid.uuid4().hex[:8]}"
    indices = sorted(new_index(made) for _ in range(2))
    add_alias(server, alias, *indices)
    read = []
    with pytest.raises(ConfigError, match="without a write index") as refused:
        index_documents(engine, alias, (read.append(1) or one for one in pages(3)), pipeline, workers=1)
    assert not read
    told = str(refused.value)
    ask(server.url, "POST", "/_aliases", json.loads(told[told.index('{"actions"') :]))
    assert index_documents(engine, alias, pages(3), pipeline, workers=1).indexed == 3


def test_an_alias_of_one_index_takes_documents_unless_it_says_otherwise(
    engine, server, new_index, made, pipeline
):
    alias, index = f"shinglefold-alias-{uuid.uuid4().hex[:8]}", new_index(made)
    for way, takes in (({}, True), ({"is_write_index": False}, False), ({"is_write_index": True}, True)):
        add_alias(server, alias, index, **way)
        if takes:
            assert index_documents(engine, alias, pages(2), pipeline, workers=1).indexed == 2
        else:
            with pytest.raises(ConfigError, match="without a write index"):
                index_documents(engine, alias, pages(2), pipeline, workers=1)


def test_a_strict_mapping_that_lacks_a_field_is_told_with_both_remedies(engine, new_index, scheme, pipeline):
    strict = mappings(scheme) | {"dynamic": "strict"}
    strict["properties"] |= FIELDS
    index = new_index(strict)
    summary = index_documents(engine, index, pages(2), pipeline, workers=1)
    (reason,) = summary.reasons
    assert (summary.indexed, summary.failed) == (0, 2)
    assert "strict and has no field [id]" in reason
    definition = default_definition()
    remedy = json.loads(reason[reason.index('{"remove"') : reason.rindex("}") + 1])
    without = {**definition, "processors": [*definition["processors"], remedy]}
    bare = Pipeline.from_json(without, scheme)
    other = new_index(strict | {"_meta": recipe_mappings(bare.recipe())["_meta"]})
    assert index_documents(engine, other, pages(2), bare, workers=1).indexed == 2


def test_a_page_larger_than_servers_take_at_once_is_read_in_steps(engine, new_index, made, pipeline):
    from shinglefold.rerank import FoldedSearch

    index = new_index(made)
    index_documents(engine, index, pages(30), pipeline, workers=1)
    answer = FoldedSearch(engine, pipeline.scheme).search(index, {"size": 20_000})
    assert (len(answer["hits"]["hits"]) > 20, answer["dedup"]["stopped_by"]) == (True, "end_of_results")
