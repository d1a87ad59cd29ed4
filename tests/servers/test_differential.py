"""Where nothing folds, a folded answer is the server's own, key by key, for some 300 requests, in both modes.

The requests are data, in ``requests.json``: by the part of a search that they are about, each with its body,
URL parameters and target. A server that refuses one has it refused by a folded search, too. A sort by a date
with a format has all hits on its page: of a shorter one Elasticsearch 9.2 loses hits, one time in two.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from support.distinct import comparable, differences, index_documents_that_differ, search_plainly
from support.servers.server import add_alias

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, ShinglefoldError
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.request.bodies import narrowable
from shinglefold.rerank.request.hit_parts import completions_body

GROUPS: dict[str, dict[str, list[Any]]] = json.loads(Path(__file__).with_name("requests.json").read_text())
CASES = {f"{group}: {name}": case for group, cases in GROUPS.items() for name, case in cases.items()}
#: What a folded search refuses by name although servers take it.
REFUSED = {
    "queries: inner hits called duplicates": "the members of each group are called 'duplicates'",
    "ranking: collapse": '"collapse" and folding exclude each other',
    "address: scroll": "a folded search has no scroll context",
    "address: filter_path": "unknown search parameter 'filter_path'",
}
_EXCLUDED = ("search_after", "rescore", "min_score", "post_filter", "slice", "terminate_after")
#: What is refused natively, besides, and in which bodies it is.
NOT_NATIVE = {
    "can't be combined with a collapse": lambda body: not body.keys().isdisjoint(_EXCLUDED),
    "nearest neighbours and fused rankings": lambda body: not narrowable(body),
    "completion suggestions would": lambda body: completions_body(body) is not None,
    "the index of a point in time is unknown": lambda body: "pit" in body,
    "without the request's derived fields": lambda body: "derived" in body,
}


@dataclass(frozen=True)
class Site:
    """Indices whose documents all differ, and the names that requests have for them."""

    url: str
    names: Mapping[str, str]
    folded: FoldedSearch
    #: By the name of a case: both modes are held against one answer of the server.
    plain: dict[str, JSON | ShinglefoldError] = field(default_factory=dict)

    def named(self, part: Any) -> Any:
        text = json.dumps(part)
        for name, index in self.names.items():
            text = text.replace(name, index)
        return json.loads(text)


# An older generation has three shards: over one, only our own request is another.
@pytest.fixture(
    scope="module", params=[pytest.param(1, marks=pytest.mark.newest), 3], ids=["one shard", "three shards"]
)
def site(request, engine, server, scheme, canonicalizer) -> Iterator[Site]:
    begin = f"shinglefold-test-differ-{request.param}"
    names = {
        "INDEX": f"{begin}-a",
        "SECOND": f"{begin}-b",
        "ALIAS": f"{begin}-alias",
        "NONE": f"{begin}-none",
    }
    for first, name in ((0, names["INDEX"]), (100, names["SECOND"])):
        if engine.index_exists(name):
            engine.delete_index(name)
        index_documents_that_differ(engine, name, request.param, scheme, canonicalizer, first=first)
    add_alias(server, names["ALIAS"], names["INDEX"], filter={"range": {"number": {"gte": 6}}})
    names["PIT"] = engine.open_pit(names["INDEX"], "5m")
    yield Site(server.url, names, FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker() or "number"))
    engine.close_pit(names["PIT"])
    for name in (names["INDEX"], names["SECOND"]):
        engine.delete_index(name)


def folded_answer(
    site: Site, index: str | None, body: JSON, parameters: JSON, mode: Literal["window", "native"]
) -> JSON | ShinglefoldError:
    try:
        return site.folded.search(index, body, FoldOptions(mode=mode), params=parameters)
    except ShinglefoldError as error:
        return error


@pytest.mark.parametrize("mode", ["window", "native"])
@pytest.mark.parametrize("name", CASES)
def test_where_nothing_folds_the_answer_is_the_servers_own(site, name, mode):
    case = site.named(CASES[name])
    body, parameters, index = [*case, *({}, site.names["INDEX"])[len(case) - 1 :]]
    if name not in site.plain:
        site.plain[name] = search_plainly(site.url, index, body, parameters)
    own = site.plain[name]
    found = folded_answer(site, index, body, parameters, mode)
    if isinstance(own, ShinglefoldError):
        # What is refused before it is sent is a ConfigError.
        assert isinstance(found, ConfigError | type(own)), (own, found)
    elif name in REFUSED:
        assert isinstance(found, ConfigError)
        assert REFUSED[name] in str(found)
    elif mode == "native" and any(reason(body | parameters) for reason in NOT_NATIVE.values()):
        assert isinstance(found, ConfigError), found
        assert any(why in str(found) for why, reason in NOT_NATIVE.items() if reason(body | parameters))
    else:
        assert isinstance(found, dict), found
        assert found.get("dedup", {}).get("folded", 0) == 0
        if "pit" in body:
            # OpenSearch does not return the tiebreaker, without which search_after can't go on.
            for hit, shown in zip(own["hits"]["hits"], found["hits"]["hits"], strict=True):
                if "sort" in shown:
                    shown["sort"] = shown["sort"][: len(hit["sort"])]
        assert not differences(comparable(own), comparable(found))
