"""Documents with others nested in them: each is folded once. Fields that scopes and policies can't read."""

import re

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


_KEYWORD, _TEXT = {"type": "keyword"}, {"type": "text"}
#: Fields with values in all documents, and the names by which searches return them, or do not.
OTHERS = {
    "site": (_KEYWORD, "a", {"site": True, "sit*": False}),
    "unread": ({**_KEYWORD, "doc_values": False}, "a", {"unread": False}),
    "count": ({"type": "long", "doc_values": False}, 1, {"count": False}),
    "words": ({**_TEXT, "fields": {"raw": _KEYWORD}}, "a b", {"words": False, "words.raw": True}),
    "loaded": ({**_TEXT, "fielddata": True}, "a", {"loaded": True}),
    "place": ({**_KEYWORD, "fields": {"text": _TEXT}}, "a", {"place": True, "place.text": False}),
    "completed": ({"type": "completion"}, "a", {"completed": False}),
    "bytes": ({"type": "binary"}, "AAAA", {"bytes": False}),
    "kept_bytes": ({"type": "binary", "doc_values": True}, "AAAA", {"kept_bytes": True}),
    "object": ({"properties": {"a": _KEYWORD}}, {"a": "a"}, {"object": False, "object.a": True}),
    "loose": ({"type": "object", "dynamic": False}, {"a": "a"}, {"loose": False, "loose.a": False}),
    "off": ({"type": "object", "enabled": False}, {"a": "a"}, {"off": False, "off.a": False}),
    "parts": (NESTED, [{"name": "a"}], {"parts": False, "parts.name": False}),
    "alias": ({"type": "alias", "path": "site"}, None, {"alias": True}),
    "text_alias": ({"type": "alias", "path": "words"}, None, {"text_alias": False}),
}


def test_fields_are_refused_whose_values_searches_do_not_return(engine, new_index, scheme, pipeline):
    elastic = engine.info()["distribution"] == "elasticsearch"
    flat = {"type": "flattened" if elastic else "flat_object"}, {"a": "a"}, {"flat.a": True}
    others = {**OTHERS, "flat": flat}
    made = mapped(scheme, **{name: definition for name, (definition, _, _) in others.items()})
    returned = {name: has for _, _, names in others.values() for name, has in names.items()}
    returned |= {"_index": True, "_score": False, "_dedup": False, "_dedup.digest": True}
    if elastic:
        made["runtime"] = {"words": {"type": "keyword"}}
        returned["words"] = True
    index, search = (
        new_index(made, {"number_of_shards": 1, "number_of_replicas": 0}),
        FoldedSearch(engine, scheme),
    )
    own = {name: value for name, (_, value, _) in others.items() if value is not None}
    given = [{**pages(1)[0], **own, "id": name} for name in ("first", "second")]
    assert index_documents(engine, index, given, pipeline, workers=1).indexed == 2
    for name, has in returned.items():
        try:
            (hit, _) = engine.search(index, {"docvalue_fields": [name], "_source": False})["hits"]["hits"]
            assert (name in hit.get("fields", {})) == has, name
        except UnsupportedQuery:
            assert not has, name
        for options in ({"scope": name}, {"representative": f"prefer:{name}=a"}):
            if has:
                page = search.search(index, {}, FoldOptions.parse(options))
                assert (page["dedup"]["mode"], page["dedup"]["folded"]) == ("window", 1), name
                continue
            with pytest.raises(ConfigError, match=f"{re.escape(repr(name))} is .*, so hits do not return"):
                search.search(index, {}, FoldOptions.parse(options))


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
