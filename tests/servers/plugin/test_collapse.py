"""The cases of docs/collapse.md: the plugin answers as ``FoldedSearch`` does, or refuses by name."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.collapse_cases import (
    BODIES,
    DESCENDING,
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
from support.plugin_trials import comparable

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, EngineError
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions

_TITLE: JSON = {"match": {"title": "water"}}
_SCRIPT = {"script_score": {"query": {"match_all": {}}, "script": {"source": "doc['price'].value"}}}
TAKEN: dict[str, tuple[JSON, JSON]] = {
    **{name: (body, {}) for name, body in BODIES.items()},
    **{f"by {name}": ({"query": _TITLE, "sort": DESCENDING}, url) for name, url in PARAMETERS.items()},
    "highlights": ({"query": _TITLE, "highlight": {"fields": {"title": {}}}}, {}),
    "script scores": ({"query": _SCRIPT, "size": 4}, {}),
    "several functions": (
        {"query": {"function_score": {"functions": [{"filter": _TITLE, "weight": 3}], "query": PRICED}}},
        {},
    ),
    "a field alias": ({"sort": [{"cost": "desc"}], "docvalue_fields": ["cost"]}, {}),
    "script fields": ({"script_fields": {"twice": {"script": "doc['price'].value * 2"}}}, {}),
    "members": ({"sort": DESCENDING, "ext": {"dedup": {"members": 1000}}}, {}),
    "no members": ({"sort": DESCENDING, "ext": {"dedup": {"members": 0}}}, {}),
    "another one is shown": ({"ext": {"dedup": {"representative": "prefer:tag=B"}}}, {}),
    "the same city": ({"sort": DESCENDING, "ext": {"dedup": {"scope": "city"}}}, {}),
}
REFUSED: dict[str, tuple[JSON, str]] = {
    **{
        f"inner hits with {name}": ({"ext": {"dedup": {"inner_hits": inner}}}, "inner_hits")
        for name, inner in INNER.items()
    },
    "search_after": ({"sort": [{"group": "asc"}], "search_after": [3]}, "search_after"),
    "rescoring": ({"query": PRICED, "rescore": {"query": {"rescore_query": PLACED}}}, "rescore"),
    "a cursor": ({"ext": {"dedup": {"cursor": True}}}, "cursor"),
}


@pytest.fixture(scope="module", params=[1, 3], ids=["one shard", "two indices of three"])
def collapsed(request, engine, scheme, canonicalizer) -> Iterator[str]:
    index = f"shinglefold-collapse-plugin-{request.param}"
    made = mappings(scheme)
    made["properties"] |= {**PROPERTIES, "cost": {"type": "alias", "path": "price"}}
    prints = Fingerprinter(scheme, canonicalizer).fingerprint([text_of(group) for group in range(GROUPS)])
    stored = [{**one, "_dedup": prints[one["group"]].to_field()} for one in documents()]
    # Documents without a text fold with none.
    stored += [{"price": number, "place": number + 5, "title": "water"} for number in range(4)]
    for name in (index, f"{index}-more"):
        engine.create_index(name, made, {"number_of_shards": request.param, "number_of_replicas": 0})
        some = stored[: 9 if name.endswith("more") else None]
        put(engine, name, {str(at): one for at, one in enumerate(some)})
    yield index if request.param == 1 else f"{index},{index}-more"
    engine.delete_index(index)
    engine.delete_index(f"{index}-more")


@pytest.fixture
def folded(engine, scheme) -> FoldedSearch:
    return FoldedSearch(engine, scheme)


def outcome(folded: FoldedSearch, target: str, mode: Any, body: JSON, url: JSON) -> JSON:
    """Return a page, or the error; a page of no hits is the engine's own."""
    try:
        page = folded.search(target, body, FoldOptions(mode=mode), params=url)
    except EngineError as error:
        return {"error": type(error).__name__}
    if "dedup" not in page:
        return {**page, "took": 0}
    assert page["dedup"]["mode"] == mode
    return comparable(page)


@pytest.mark.parametrize("case", TAKEN)
def test_what_the_plugin_takes_is_answered_as_by_a_window(folded, collapsed, case):
    body, url = TAKEN[case]
    expected = outcome(folded, collapsed, "window", body, url)
    assert outcome(folded, collapsed, "server", body, url) == expected
    assert "error" not in expected


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_plugin_does_not_take_is_refused_by_name(folded, collapsed, case):
    body, name = REFUSED[case]
    with pytest.raises(ConfigError, match=f"the plugin does not take {name}"):
        folded.search(collapsed, body, FoldOptions(mode="server"))
    auto, expected = (folded.search(collapsed, body, FoldOptions(mode=mode)) for mode in ("auto", "window"))
    if name == "cursor":
        assert all(page["dedup"].pop("cursor") for page in (auto, expected))
    assert comparable(auto) == comparable(expected)
    assert f"does not take {name}" in auto["dedup"]["mode_reason"]


def test_points_in_time_scrolls_and_collapses_are_refused(engine, folded, collapsed):
    pit = engine.open_pit(collapsed, "1m")
    with pytest.raises(ConfigError, match="a point in time is read by the client"):
        folded.search(None, {"pit": {"id": pit}}, FoldOptions(mode="server"))
    engine.close_pit(pit)
    with pytest.raises(ConfigError, match="cursor"):
        folded.search(collapsed, {}, FoldOptions(mode="server"), scroll="1m")
    with pytest.raises(ConfigError, match="collapse"):
        folded.search(collapsed, {"collapse": {"field": "group"}}, FoldOptions(mode="server"))
