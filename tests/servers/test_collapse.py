"""The engines' own collapse cases, both ways: where a group has one text, folding answers as natively.

The cases are those of the engines' tests of collapsing, written anew; docs/collapse.md has them one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.collapse_cases import (
    BODIES,
    DESCENDING,
    DOCUMENTS,
    GROUPS,
    INNER,
    PARAMETERS,
    PLACED,
    PRICED,
    PROPERTIES,
    documents,
    text_of,
)
from support.maintenance import put

from shinglefold.contracts.engine import Engine
from shinglefold.errors import ConfigError, EngineError, UnsupportedQuery
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.request.url_parameters import read_parameters


@dataclass(frozen=True)
class Both:
    """One index, searched natively and folded."""

    engine: Engine
    index: str
    search: FoldedSearch

    def native(self, body: dict[str, Any], inner: Any = None, **parameters: Any) -> dict[str, Any]:
        collapse = {"field": "group"} | ({} if inner is None else {"inner_hits": inner})
        return self.engine.search(self.index, {**body, "collapse": collapse}, parameters or None)

    def folded(self, body: dict[str, Any], inner: Any = None, **parameters: Any) -> dict[str, Any]:
        ext = {} if inner is None else {"ext": {"dedup": {"inner_hits": inner}}}
        return self.search.search(self.index, {**body, **ext}, FoldOptions(), **parameters)


# An older generation has three shards: over one, only our own request is another.
@pytest.fixture(
    scope="module", params=[pytest.param(1, marks=pytest.mark.newest), 3], ids=["one shard", "three shards"]
)
def both(request, engine, scheme, canonicalizer) -> Iterator[Both]:
    index = f"shinglefold-collapse-{request.param}"
    if engine.index_exists(index):
        engine.delete_index(index)
    made = mappings(scheme)
    made["properties"] |= PROPERTIES
    engine.create_index(index, made, {"number_of_shards": request.param, "number_of_replicas": 0})
    prints = Fingerprinter(scheme, canonicalizer).fingerprint([text_of(group) for group in range(GROUPS)])
    stored = [{**one, "_dedup": prints[one["group"]].to_field()} for one in documents()]
    put(engine, index, {str(number): one for number, one in enumerate(stored)})
    yield Both(engine, index, FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker() or "price"))
    engine.delete_index(index)


def plain(hit: dict[str, Any]) -> dict[str, Any]:
    """A hit without its group, and without the value of the group that only a native collapse has."""
    return {name: value for name, value in hit.items() if name not in ("fields", "inner_hits")}


def alike(native: dict[str, Any], folded: dict[str, Any], *names: str) -> None:
    """Compare two answers: all that both tell, and the groups under each name."""
    ours, theirs = folded["hits"], native["hits"]
    assert {**ours, "hits": [plain(hit) for hit in ours["hits"]]} == {
        **theirs,
        "hits": [plain(hit) for hit in theirs["hits"]],
    }
    assert folded.get("aggregations") == native.get("aggregations")
    for one, other in zip(ours["hits"], theirs["hits"], strict=True):
        for name in names:
            assert one["inner_hits"][name] == other["inner_hits"][name]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_pages_are_those_of_a_native_collapse(both, body):
    alike(both.native(body), both.folded(body))


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("body", [{"sort": DESCENDING}, {"query": PRICED, "size": 4}], ids=["sort", "scores"])
def test_inner_hits_are_those_of_a_native_collapse(both, body, inner):
    names = [one["name"] for one in (inner if isinstance(inner, list) else [inner])]
    alike(both.native(body, inner), both.folded(body, inner), *names)


def test_highlights_of_inner_hits_are_those_of_a_native_collapse(both):
    body = {"query": {"match": {"title": "water"}}, "sort": DESCENDING}
    inner = {"name": "sub", "sort": [{"price": "asc"}], "highlight": {"fields": {"title": {}}}}
    native = both.native(body, inner)
    assert native["hits"]["hits"][0]["inner_hits"]["sub"]["hits"]["hits"][0]["highlight"]
    alike(native, both.folded(body, inner), "sub")


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_parameters_mean_what_they_mean_natively(both, parameters):
    body = {"query": {"match": {"title": "water"}}, "sort": DESCENDING}
    inner = {"name": "sub", "sort": [{"price": "asc"}]}
    alike(both.native(body, inner, **parameters), both.folded(body, inner, **parameters), "sub")


def test_a_missing_index_may_be_left_out(both):
    body = {"sort": DESCENDING}
    found = both.search.search(f"{both.index},shinglefold-absent", body, ignore_unavailable=True)
    assert found["hits"] == both.folded(body)["hits"]


def test_parameters_hold_under_a_point_in_time_too(both):
    body, options = {"sort": DESCENDING, "size": 9}, FoldOptions(window=5)
    native = both.native(body, routing="7")
    found = both.search.search(both.index, body, options, routing="7", search_type="query_then_fetch")
    alike(native, found)


def test_several_searches_take_parameters_together(both):
    body = {"sort": DESCENDING}
    searches = [(both.index, body, {"routing": "7"}), (both.index, body), (both.index, body, {"size": 2})]
    found = both.search.msearch(searches, preference="_local")
    for answer, parameters in zip(found, ({"routing": "7"}, {}, {"size": 2}), strict=True):
        alike(
            both.native({**body, **read_parameters(parameters).body}, **read_parameters(parameters).url),
            answer,
        )


def test_parameters_of_a_whole_request_hold_for_each_search(both):
    body = {"sort": DESCENDING, "aggs": {"tags": {"terms": {"field": "tag"}}}}
    one, other = both.search.msearch([(both.index, body)] * 2, typed_keys=True)
    assert one["aggregations"].keys() == other["aggregations"].keys() == {"sterms#tags"}


def test_a_parameter_the_server_does_not_know_is_an_error_of_its_own(both):
    with pytest.raises(UnsupportedQuery):
        both.engine.search(both.index, {}, {"no_such_parameter": 1})


def test_scroll_is_refused_on_both_ways(both):
    with pytest.raises(EngineError, match="scroll"):
        both.native({}, scroll="1m")
    with pytest.raises(ConfigError, match="cursor"):
        both.folded({}, scroll="1m")


def test_a_second_level_goes_no_deeper_on_either_way(both):
    deeper = {"name": "sub", "collapse": {"field": "city", "inner_hits": {}}}
    with pytest.raises(UnsupportedQuery):
        both.native({}, deeper)
    with pytest.raises(ConfigError, match="nothing below"):
        both.folded({}, deeper)


def test_reading_on_after_the_sort_values_of_a_group_gives_the_next_ones(both):
    """A sort by what all of a group share is the one that some servers take beside a native collapse."""
    shown, after = [], {}
    while True:
        body = {"sort": [{"group": "asc"}], "size": 2, **after}
        found = both.folded(body)
        try:
            native = both.native(body)
        except EngineError:
            assert after
        else:
            # Which of a group's equals is shown is each way's own.
            expected = [hit["sort"] for hit in native["hits"]["hits"]]
            assert [hit["sort"] for hit in found["hits"]["hits"]] == expected
        hits = found["hits"]["hits"]
        if not hits:
            break
        shown += [hit["_source"]["group"] for hit in hits]
        after = {"search_after": hits[-1]["sort"]}
    assert shown == list(range(GROUPS))


@pytest.mark.parametrize("window", [{}, {"window_size": 5}, {"window_size": 200}], ids=["10", "5", "200"])
def test_groups_stand_as_rescored(both, window):
    rescore = {"rescore_query": PLACED, "query_weight": 0, "rescore_query_weight": 1}
    body = {"query": PRICED, "size": GROUPS, "rescore": {"query": rescore, **window}}
    found = both.folded(body)["hits"]["hits"]
    everyone = both.engine.search(both.index, {**body, "size": DOCUMENTS})["hits"]["hits"]
    first: dict[int, dict[str, Any]] = {}
    for hit in everyone:
        first.setdefault(hit["_source"]["group"], hit)
    assert [(hit["_id"], hit["_score"]) for hit in found] == [
        (hit["_id"], hit["_score"]) for hit in first.values()
    ]


def test_groups_go_over_several_indices(both, new_index, scheme, canonicalizer):
    made = mappings(scheme)
    made["properties"] |= PROPERTIES
    other = new_index(made, {"number_of_replicas": 0})
    (own,) = Fingerprinter(scheme, canonicalizer).fingerprint([text_of(3)])
    source = {"group": 3, "price": 5000, "place": 5000, "title": "bridge", "_dedup": own.to_field()}
    put(both.engine, other, {"elsewhere": source})
    two = Both(both.engine, f"{both.index},{other}", both.search)
    body, inner = {"sort": DESCENDING}, {"name": "sub", "size": 20, "sort": [{"price": "asc"}]}
    native = two.native(body, inner)
    assert native["hits"]["hits"][0]["_id"] == "elsewhere"
    alike(native, two.folded(body, inner), "sub")


def test_documents_without_a_text_fold_with_none_where_natively_they_are_one_group(both, new_index, scheme):
    made = mappings(scheme)
    made["properties"] |= PROPERTIES
    index = new_index(made, {"number_of_replicas": 0})
    both.engine.bulk({"_index": index, "_id": str(n), "_source": {"price": n}} for n in range(4))
    both.engine.refresh(index)
    bare = Both(both.engine, index, both.search)
    body = {"sort": DESCENDING}
    assert len(bare.native(body)["hits"]["hits"]) == 1
    assert len(bare.folded(body)["hits"]["hits"]) == 4
