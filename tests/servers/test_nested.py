"""Documents with others nested in them: each is folded once; scopes and policies can't read the others."""

import pytest
from support.maintenance import mapped, pages

from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.ingest import index_documents
from shinglefold.rerank import FoldedSearch, FoldOptions

NESTED = {"type": "nested", "properties": {"name": {"type": "keyword"}}}


def test_documents_with_nested_ones_fold_and_what_these_have_decides_nothing(
    engine, new_index, scheme, pipeline
):
    index = new_index(mapped(scheme, parts=NESTED), {"number_of_shards": 1, "number_of_replicas": 0})
    given = [{**page, "parts": [{"name": "a"}, {"name": page["id"]}]} for page in pages(8)]
    twice = [*given, *({**page, "id": f"{page['id']}-again"} for page in given)]
    assert index_documents(engine, index, twice, pipeline, workers=1).indexed == len(twice)
    search = FoldedSearch(engine, scheme)
    for page in given:
        query = {"nested": {"path": "parts", "query": {"term": {"parts.name": page["id"]}}}}
        answer = search.search(index, {"query": query, "size": 3})
        ids = [hit["_source"]["id"].removesuffix("-again") for hit in answer["hits"]["hits"]]
        assert (ids, answer["dedup"]["folded"]) == ([page["id"]], 1)
    for option in ({"scope": ["parts.name"]}, {"representative": "prefer:parts.name=a"}):
        with pytest.raises(ConfigError, match=r"'parts\.name' is a field of nested documents"):
            search.search(index, {"query": {"match_all": {}}, "ext": {"dedup": option}})


ALL = {"match_all": {}}
OF_A = {"nested": {"path": "parts", "query": {"term": {"parts.name": {"value": "a", "_name": "is a"}}}}}


def named(name, **options):
    return {"nested": {**OF_A["nested"], "inner_hits": {"name": name, **options}}}


WITH_INNER_HITS = {
    "one": named("a", size=1),
    "without a name": {"nested": {**OF_A["nested"], "inner_hits": {}}},
    "two, deep in a query": {
        "bool": {
            "must": [{"constant_score": {"filter": named("a", _source=False)}}],
            "should": [{"function_score": {"query": named("b", docvalue_fields=["parts.name"])}}],
        }
    },
    "has_child": {"has_child": {"type": "comment", "query": ALL, "inner_hits": {"size": 1}}},
    "has_parent": {"has_parent": {"parent_type": "page", "query": ALL, "inner_hits": {}}},
}


@pytest.mark.parametrize("name", WITH_INNER_HITS)
def test_inner_hits_are_found_of_the_hits_shown_and_of_no_others(
    engine, new_index, scheme, pipeline, monkeypatch, name
):
    made = mapped(scheme, parts=NESTED)
    if name.startswith("has_"):
        made["properties"]["kind"] = {"type": "join", "relations": {"page": "comment"}}
    try:
        index = new_index(made, {"number_of_shards": 1, "number_of_replicas": 0})
    except UnsupportedQuery as error:
        pytest.skip(f"a distribution without joins: {error}")
    # OpenSearch 3.8 answers a has_parent with an error (500) where only the parents have nested documents.
    own = {"kind": "page"} if name.startswith("has_") else {"parts": [{"name": "a"}, {"name": "b"}]}
    given = [{**page, **own} for page in pages(9)]
    assert index_documents(engine, index, given, pipeline, workers=1).indexed == 9
    if name.startswith("has_"):
        comments = [
            {**page, "id": f"re-{page['id']}", "kind": {"name": "comment", "parent": page["id"]}}
            for page in pages(9, seed=2)
        ]
        signed = [one.document for one in pipeline.run(comments)]
        actions = [
            {"_index": index, "_id": one["id"], "routing": one["kind"]["parent"], "_source": one}
            for one in signed
        ]
        assert engine.bulk(actions).indexed == 9
        engine.refresh(index)
    search, inner_hits = engine.search, []

    def kept(*arguments):
        answer = search(*arguments)
        inner_hits.append(["inner_hits" in hit for hit in answer["hits"]["hits"]])
        return answer

    monkeypatch.setattr(engine, "search", kept)
    body = {"query": WITH_INNER_HITS[name], "size": 3, "sort": ["id"]}
    page = FoldedSearch(engine, scheme).search(index, body, FoldOptions(members=0))["hits"]["hits"]
    assert inner_hits == [[False] * 9, [True] * 3]
    for hit in page:
        del hit["inner_hits"]["duplicates"]
    assert page == search(index, body)["hits"]["hits"]
