"""Documents with others nested in them: each is folded once, and what only those have is no scope."""

import pytest
from support.maintenance import FIELDS, pages

from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition, index_documents, mappings
from shinglefold.rerank import FoldedSearch

NESTED = {"type": "nested", "properties": {"name": {"type": "keyword"}}}


def test_documents_with_nested_ones_fold_and_no_scope_is_of_these(engine, new_index, scheme, canonicalizer):
    made = mappings(scheme)
    made["properties"] |= {**FIELDS, "id": {"type": "keyword"}, "parts": NESTED}
    index = new_index(made, {"number_of_shards": 1, "number_of_replicas": 0})
    pipeline = Pipeline.from_json(default_definition(), scheme, canonicalizer)
    given = [{**page, "parts": [{"name": "a"}, {"name": page["id"]}]} for page in pages(8)]
    twice = [*given, *({**page, "id": f"{page['id']}-again"} for page in given)]
    assert index_documents(engine, index, twice, pipeline, workers=1).indexed == len(twice)
    search = FoldedSearch(engine, scheme)
    for page in given:
        query = {"nested": {"path": "parts", "query": {"term": {"parts.name": page["id"]}}}}
        answer = search.search(index, {"query": query, "size": 3})
        ids = [hit["_source"]["id"].removesuffix("-again") for hit in answer["hits"]["hits"]]
        assert (ids, answer["dedup"]["folded"]) == ([page["id"]], 1)
    scoped = {"query": {"match_all": {}}, "ext": {"dedup": {"scope": ["parts.name"]}}}
    with pytest.raises(ConfigError, match=r"'parts\.name' is a field of nested documents"):
        search.search(index, scoped)
