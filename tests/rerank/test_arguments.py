"""What callers pass by mistake: taken as it is meant, or refused with what to pass."""

import pytest
from support.hits import SCHEME

from shinglefold.errors import ConfigError
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, collapse


def test_a_whole_response_is_collapsed_as_its_hits_are(library):
    body = {"query": {"match_all": {}}, "size": 50}
    page = library.engine.search("pages", body)
    assert collapse(page, SCHEME) == collapse(page["hits"]["hits"], SCHEME)
    assert collapse(page["hits"], SCHEME) == collapse(page["hits"]["hits"], SCHEME)
    assert len(collapse(page, SCHEME).groups) > 1


@pytest.mark.parametrize("wrong", ["hits", {}, {"error": "x"}, None, ["a"], 5])
def test_what_holds_no_hits_is_refused(wrong):
    with pytest.raises(ConfigError, match="not a list of hits"):
        collapse(wrong, SCHEME)


@pytest.mark.parametrize("kind", [FoldedSearch, AsyncFoldedSearch])
@pytest.mark.parametrize("wrong", ["default", None, {}])
def test_a_name_is_no_scheme(library, kind, wrong):
    with pytest.raises(ConfigError, match=r"is no Scheme; give that of the index.*make_scheme"):
        kind(library.engine, wrong)
    with pytest.raises(ConfigError, match="is no Scheme"):
        collapse([], wrong)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([{"query": {"match_all": {}}, "size": 1, "from": 0}], "search 0 names no index"),
        ([("pages", {}), {"query": {}}], "search 1 names no index"),
        ([("pages",)], "search 0 names no index"),
        ([("pages", "bridge")], "search 0 has no body"),
        ([(None, {"query": {"match_all": {}}})], "neither an index nor a point in time"),
        ({"query": {}}, "one search instead of a list"),
        (["pages"], "search 0 names no index"),
    ],
)
def test_a_search_without_an_index_is_refused_with_what_to_give(library, wrong, told):
    with pytest.raises(ConfigError, match=told):
        FoldedSearch(library.engine, SCHEME).msearch(wrong)
