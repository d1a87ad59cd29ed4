"""Fields of ext.dedup are checked against the mappings, some of which a role may not read."""

import json
import tracemalloc
from dataclasses import replace

import pytest
from support.hits import SCHEME

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, PermissionDenied
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.index_fields import IndexRecipes, check_fields, check_scopes, knows, named_fields
from shinglefold.runtime.recent import RecentlyUsed
from shinglefold.runtime.sans_io import run

MAPPINGS = {
    "runtime": {"day": {"type": "keyword"}},
    "properties": {
        "title": {"type": "text", "fields": {"keyword": {"type": "keyword"}}},
        "host": {"type": "keyword"},
        "meta": {"properties": {"author": {"type": "keyword"}}},
        "labels": {"type": "flattened"},
        "raw": {"type": "object", "enabled": False},
        "loose": {"dynamic": "false", "properties": {"a": {"type": "keyword"}}},
    },
}


@pytest.mark.parametrize(
    "name",
    [
        "host",
        "title",
        "title.keyword",
        "meta",
        "meta.author",
        "meta.*",
        "labels.x",
        "raw.any.x",
        "loose.b",
        "day",
        "_id",
    ],
)
def test_what_a_document_may_have_is_known(name):
    assert knows(MAPPINGS, name)


@pytest.mark.parametrize("name", ["hots", "title.keywrd", "meta.autor", "host.keyword"])
def test_what_none_can_have_is_not(name):
    assert not knows(MAPPINGS, name)


def test_where_new_fields_are_stored_unmapped_any_name_is_taken():
    assert knows({"dynamic": "false", "properties": {}}, "anything")
    assert not knows({"dynamic": "strict", "properties": {}}, "anything")


def test_the_nearest_name_is_told_and_one_index_of_several_will_do():
    with pytest.raises(ConfigError, match=r"'meta.autor'; did you mean 'meta.author'"):
        check_fields([MAPPINGS], "pages", ["meta.autor"], "ext.dedup")
    check_fields(
        [MAPPINGS, {"properties": {"price": {"type": "long"}}}], "all", ["price", "host"], "ext.dedup"
    )


def test_all_options_that_name_fields_are_looked_at():
    options = FoldOptions.parse(
        {
            "scope": ["host", "date:7d"],
            "representative": ["newest:published", "shortest_url"],
            "members": {"size": 2, "_source": ["title"]},
            "explain": {"passages": True, "fields": ["body"]},
        }
    )
    assert named_fields(options) == ["host", "date", "published", "url", "title", "body"]


def test_a_scope_of_nested_documents_is_refused_as_nothing_would_fold():
    parts = {"type": "nested", "properties": {"name": {"type": "keyword"}}}
    mappings = {"properties": {"page": {"properties": {"parts": parts}}, "parts": {"properties": {}}}}
    check_scopes([MAPPINGS, mappings], "pages", ["host", "meta.author", "parts.name", "page.other"])
    with pytest.raises(ConfigError, match=r"'page\.parts\.name' is a field of nested documents"):
        check_scopes([MAPPINGS, mappings], "pages", ["host", "page.parts.name"])


READABLE = recipe_mappings(replace(default_recipe(SCHEME), fields=("headline",)))


def _answer(call):
    """Answer as a server whose role may not read the mappings of ``secret``."""
    (name,) = call.arguments
    if name == "secret":
        raise PermissionDenied("403")
    return {name: READABLE}


@pytest.mark.parametrize("names", ["secret,open", "open,secret"])
def test_copies_are_looked_for_by_the_mappings_that_may_be_read(names):
    known = run(IndexRecipes(SCHEME, None, None).read(names), _answer)
    assert known.fields_by_index == {"open": ("headline",)}


@pytest.mark.parametrize("names", ["secret,open", "open,secret"])
def test_texts_decide_by_the_fields_of_the_mappings_that_may_be_read(tmp_path, names):
    options = FoldOptions(verify="text")
    with EmbeddedEngine(tmp_path, str.split) as engine:
        search = FoldedSearch(engine, SCHEME)
        stage = search._stage(options, run(search._knowledge.facts(names, options), _answer))
    assert stage.fields == ("headline",)


def test_what_is_known_of_two_thousand_names_takes_less_than_20_mb(tmp_path):
    properties = {f"field{at}": {"type": "text", "fields": {"raw": {"type": "keyword"}}} for at in range(200)}
    text = json.dumps({**READABLE, "properties": {**READABLE["properties"], **properties}})

    def answer(call):
        (name,) = call.arguments
        return {f"{name}-{at}": json.loads(text) for at in range(2)}

    with EmbeddedEngine(tmp_path, str.split) as engine:
        search = FoldedSearch(engine, SCHEME)
        recipes = IndexRecipes(None, None, None)
        used = []
        tracemalloc.start()
        for at in range(160):
            run(search._knowledge.facts(f"alias{at}", FoldOptions()), answer)
            run(recipes.read(f"alias{at}"), answer)
            used.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    # Most is kept once; each name adds as much as the last hundred did.
    assert used[-1] + 1_840 * (used[-1] - used[-101]) / 100 < 20_000_000


def test_the_least_recently_used_entry_goes_first():
    kept: RecentlyUsed[str, int] = RecentlyUsed(2)
    for at, name in enumerate("abac"):
        kept.put(name, at)
    assert (kept.get("a"), kept.get("b"), kept.get("c"), len(kept)) == (2, None, 3, 2)
    kept.get("a")
    kept.put("d", 4)
    assert kept.get("c") is None
    kept.drop("a")
    assert len(kept) == 1
