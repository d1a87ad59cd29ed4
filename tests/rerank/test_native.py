"""The engine's own collapse, and the plugin's answers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.hits import SCHEME, fingerprint_of, split
from support.random_pages import SPECS, components

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import (
    AuthenticationFailed,
    ConfigError,
    EngineError,
    EngineUnavailable,
    UnsupportedQuery,
)
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.model.scheme import Scheme
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates
from shinglefold.rerank.index_knowledge import IndexFacts
from shinglefold.rerank.page.collapse_request import ResultSizes, obstacles
from shinglefold.rerank.page.server import ServerFolding
from shinglefold.rerank.request.arguments import InnerHits

COUNT = len(SPECS)
HOSTS = ("a.org", "b.org")


def action(index: str, number: int, *, grouped: bool = True) -> dict[str, Any]:
    stored: dict[str, Any] = fingerprint_of(replace(SPECS[number], scheme=SCHEME.id)).to_field()
    if grouped:
        stored["group"] = 2**40 + components()[number]
    source = {"rank": number, "title": "page", "_dedup": stored, "host": HOSTS[number % 2]}
    source["published"] = (SPECS[number].published or 0) * 1000
    return {"_index": index, "_id": f"p{number}", "_source": source}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("native"), split) as engine:
        made = recipe_mappings(replace(default_recipe(SCHEME), groups=True))
        made["properties"] |= {"rank": {"type": "integer"}, "title": {"type": "text"}}
        made["properties"] |= {"host": {"type": "keyword"}, "published": {"type": "date"}}
        for index in ("grouped", "copy", "partly", "empty"):
            engine.create_index(index, made, {})
        for index in ("grouped", "copy"):
            engine.bulk(action(index, number) for number in range(COUNT))
        engine.bulk(action("partly", number, grouped=number % 9 > 0) for number in range(COUNT))
        for index in ("grouped", "copy", "partly"):
            engine.refresh(index)
        yield engine


def asked(**more: Any) -> dict[str, Any]:
    return {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 10, **more}


def native(engine, body, index="grouped", **options) -> dict[str, Any]:
    return FoldedSearch(engine, SCHEME).search(index, body, FoldOptions(mode="native", **options))


def test_each_group_is_shown_once_where_its_best_member_stands(engine):
    seen = []
    for start in range(0, COUNT, 37):
        seen += native(engine, asked(**{"from": start, "size": 37}))["hits"]["hits"]
    firsts = list(dict.fromkeys(components()))
    assert [hit["_id"] for hit in seen] == [f"p{components().index(group)}" for group in firsts]


@pytest.mark.parametrize("members", [0, 1, 5])
def test_members_are_counted_and_attached_as_by_a_window(engine, members):
    page = native(engine, asked(size=40), members=members)["hits"]["hits"]
    for hit in page:
        own = [number for number in range(COUNT) if components()[number] == components()[int(hit["_id"][1:])]]
        told = hit["inner_hits"]["duplicates"]["hits"]
        assert told["total"] == {"value": len(own), "relation": "eq"}
        assert [one["_id"] for one in told["hits"]] == [f"p{number}" for number in own[: members + 1]]
        assert len(duplicates(hit)) == min(members, len(own) - 1)


def test_the_answer_has_the_shape_of_a_window(engine):
    window = FoldedSearch(engine, SCHEME).search("grouped", asked(size=3, _source=["rank"]))
    told = native(engine, asked(size=3, _source=["rank"]))
    assert told.keys() == window.keys()
    assert told["dedup"].keys() == window["dedup"].keys()
    assert told["hits"].keys() == window["hits"].keys()
    for one, other in zip(told["hits"]["hits"], window["hits"]["hits"], strict=True):
        assert one.keys() == other.keys()
        members = [hit["inner_hits"]["duplicates"]["hits"] for hit in (one, other)]
        assert members[0].keys() == members[1].keys()
        shown = [[(hit.keys(), hit["_source"].keys()) for hit in several["hits"]] for several in members]
        assert shown[0] == shown[1]
    assert (told["dedup"]["mode"], window["dedup"]["mode"]) == ("native", "window")


def test_totals_say_how_exact_they_are(engine):
    true = len(set(components()))
    first = native(engine, asked(size=5))["dedup"]["groups_total"]
    assert abs(first["value"] - true) <= 0.05 * true
    assert (first["relation"], first["precision_threshold"]) == ("estimate", 3000)
    uncounted = native(engine, asked(size=5, track_total_hits=False))["dedup"]["groups_total"]
    assert uncounted == {"value": 5, "relation": "gte"}
    whole = native(engine, asked(size=COUNT))["dedup"]
    assert whole["groups_total"] == {"value": true, "relation": "eq"}
    assert whole["folded"] == COUNT - true
    assert whole["stopped_by"] == "end_of_results"


@pytest.mark.parametrize("most", [10, 2000])
@pytest.mark.parametrize("guessed", ["few", "many"])
def test_counts_are_the_same_for_few_and_many_results_however_they_were_guessed(
    engine, monkeypatch, most, guessed
):
    monkeypatch.setattr("shinglefold.rerank.page.collapse_request.SAMPLE_SIZE", most)
    monkeypatch.setattr(ResultSizes, "few", lambda _self, _index: guessed == "few")
    told = native(engine, asked(size=12), members=0)
    for hit in told["hits"]["hits"]:
        total = hit["inner_hits"]["duplicates"]["hits"]["total"]["value"]
        assert total == components().count(components()[int(hit["_id"][1:])])
    found = told["dedup"]["groups_total"]
    assert found["relation"] == ("estimate" if most == 10 else "eq")
    assert abs(found["value"] - len(set(components()))) <= (
        0.05 * len(set(components())) if most == 10 else 0
    )


def test_what_was_guessed_follows_the_results_there_were():
    sizes, guesses = ResultSizes(), []
    for few in (False, True, False, False, False, True, True, True, True):
        guesses.append(sizes.few("a"))
        sizes.note("a", few=few)
    assert guesses == [True, False, True, False, False, False, False, False, True]
    assert sizes.few("b")


#: The members of a group in an index that lacks it.
NONE = {"duplicates": {"hits": {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []}}}


class MovingAlias:
    """An alias that moves to another index while a search runs: members are searched after the hits."""

    def __init__(self, engine: EmbeddedEngine, times: int, to: str) -> None:
        self.times, self._searched, self._to = times, engine.search, to

    def search(self, index: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._searched(index, body)
        if "collapse" not in body or not self.times:
            return answer
        self.times -= 1
        moved = {_group(hit): hit for hit in self._searched(self._to, body)["hits"]["hits"]}
        for hit in answer["hits"]["hits"]:
            hit["inner_hits"] = moved[_group(hit)]["inner_hits"] if _group(hit) in moved else NONE
        return answer

    def msearch(self, searches: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        return [self.search(index, body) for index, body in searches]


def _group(hit: dict[str, Any]) -> int:
    number: int = hit["fields"]["_dedup.group"][0]
    return number


@pytest.fixture
def moving(engine, monkeypatch):
    def move(times: int, to: str = "copy") -> MovingAlias:
        alias = MovingAlias(engine, times, to)
        monkeypatch.setattr(engine, "search", alias.search)
        monkeypatch.setattr(engine, "msearch", alias.msearch)
        return alias

    return move


@pytest.mark.parametrize("members", [1, 500])
def test_a_page_is_asked_for_again_when_its_alias_moved_meanwhile(engine, moving, members):
    alias = moving(2)
    page = native(engine, asked(size=40), members=members)
    assert alias.times == 0
    assert page["dedup"]["mode"] == "native"
    listed = [hit["inner_hits"]["duplicates"]["hits"]["hits"] for hit in page["hits"]["hits"]]
    assert {one["_index"] for hits in listed for one in hits} == {"grouped"}


@pytest.mark.parametrize("more", [{}, {"representative": "longest"}])
@pytest.mark.parametrize("sort", [[{"rank": "asc"}], ["_score"]])
def test_an_alias_may_move_to_an_index_without_these_groups(engine, moving, sort, more):
    alias = moving(1, "empty")
    body = asked(size=40, sort=sort, ext={"dedup": more})
    page = native(engine, body, members=3)
    assert (alias.times, page["dedup"]["mode"]) == (0, "native")
    for hit in page["hits"]["hits"]:
        assert hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] > 0


@pytest.mark.parametrize("members", [1, 500])
def test_under_an_alias_that_moves_at_each_search_groups_are_folded_by_window(engine, moving, members):
    moving(1000)
    options = FoldOptions(mode="auto", members=members)
    page = FoldedSearch(engine, SCHEME).search("grouped", asked(size=10), options)
    assert page["dedup"]["mode"] == "window"
    reason = "in each of 3 searches of 'grouped' the engine's members of a group lacked its hit"
    assert reason in page["dedup"]["mode_reason"]
    with pytest.raises(EngineError, match=rf"{reason}.*; search again"):
        native(engine, asked(), members=members, on_trouble="raise")
    counted = FoldOptions(facets="groups", members=members, on_trouble="raise", mode="auto")
    with pytest.raises(EngineError, match=rf"{reason}.*; search again"):
        FoldedSearch(engine, SCHEME).search("grouped", asked(), counted)
    page = native(engine, asked(), members=members)
    assert page["dedup"]["mode"] == "unfolded"
    assert reason in page["dedup"]["mode_reason"]


@pytest.mark.parametrize(
    ("policy", "best"),
    [
        ("newest:published", lambda number: (-(SPECS[number].published or 0), number)),
        ("oldest:published", lambda number: (SPECS[number].published or 0, number)),
        ("longest", lambda number: (-SPECS[number].shingles, number)),
        ("rank", lambda number: number),
    ],
)
@pytest.mark.parametrize("members", [0, 2])
def test_a_policy_that_is_an_order_chooses_whom_to_show(engine, policy, best, members):
    body = asked(size=30, ext={"dedup": {"representative": policy}})
    page = native(engine, body, members=members)["hits"]["hits"]
    for hit, group in zip(page, list(dict.fromkeys(components()))[:30], strict=True):
        own = [number for number in range(COUNT) if components()[number] == group]
        assert hit["_id"] == f"p{min(own, key=best)}"
        assert hit["sort"] == [int(hit["_id"][1:])]
        listed = hit["inner_hits"]["duplicates"]["hits"]
        assert listed["hits"][0]["_id"] == hit["_id"]
        assert listed["total"]["value"] == len(own)


def test_buckets_of_terms_count_groups_on_request(engine):
    body = asked(
        size=1, aggs={"hosts": {"terms": {"field": "host"}}, "ranks": {"cardinality": {"field": "rank"}}}
    )
    found = native(engine, body, facets="groups")["aggregations"]
    buckets = found["hosts"]["buckets"]
    for place, bucket in enumerate(sorted(buckets, key=lambda one: one["key"])):
        own = {components()[number] for number in range(COUNT) if number % 2 == place}
        assert bucket["doc_count"] == COUNT // 2
        assert abs(bucket["groups"]["value"] - len(own)) <= 0.05 * len(own) + 1
    plain = native(engine, body)["aggregations"]
    assert (plain.keys(), plain["ranks"]) == ({"hosts", "ranks"}, found["ranks"])
    assert "groups" not in plain["hosts"]["buckets"][0]


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        ({}, {"min_resemblance": 0.8}, "min_resemblance was applied"),
        ({"ext": {"dedup": {"scope": "host"}}}, {}, "scope was applied"),
        ({"ext": {"dedup": {"representative": "prefer:host=a.org"}}}, {}, "'prefer' can't be expressed"),
        ({"ext": {"dedup": {"cursor": True}}}, {}, "from and size"),
        ({}, {"explain": True}, "explain compares"),
        ({"search_after": [3]}, {}, "search_after"),
        ({"ext": {"dedup": {"representative": "newest:host"}}}, {}, "'host' is a keyword"),
    ],
)
def test_what_an_engine_cannot_collapse_is_refused_with_the_reason_or_done_by_a_window(
    engine, body, options, said
):
    with pytest.raises(ConfigError, match=said):
        native(engine, asked(**body), **options)
    auto = FoldedSearch(engine, SCHEME).search("grouped", asked(**body), FoldOptions(mode="auto", **options))
    assert auto["dedup"]["mode"] == "window"
    assert said in auto["dedup"]["mode_reason"]


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        ({}, {"verify": "text"}, "texts are compared"),
        ({}, {"inner_hits": (InnerHits(),)}, "'duplicates' is taken"),
        ({"query": {"hybrid": {}}}, {}, "nearest neighbours"),
        ({"suggest": {"a": {"completion": {}}}}, {}, "completion suggestions"),
        ({"pit": {"id": "a"}}, {}, "a point in time"),
    ],
)
def test_what_servers_alone_can_search_is_not_collapsed_natively(body, options, said):
    (told,) = obstacles(body, FoldOptions(**options))
    assert said in told


def test_auto_collapses_natively_where_all_documents_have_a_group(engine):
    told = FoldedSearch(engine, SCHEME).search("grouped", asked(ext={"dedup": {"mode": "auto"}}))["dedup"]
    assert told["mode"] == "native"
    assert "mode_reason" not in told


def test_documents_without_a_group_stay_separate(engine):
    lacking = len([number for number in range(COUNT) if number % 9 == 0])
    with pytest.raises(ConfigError, match=f"{lacking} documents of .partly. have no group.*regroup partly"):
        native(engine, asked(), index="partly")
    search = FoldedSearch(engine, SCHEME)
    auto = search.search("partly", asked(), FoldOptions(mode="auto"))
    window = search.search("partly", asked())
    assert auto["hits"]["hits"] == window["hits"]["hits"]
    assert "no group" in auto["dedup"]["mode_reason"]


def test_documents_written_without_a_group_later_are_noticed_by_the_page_that_finds_them(engine):
    search = FoldedSearch(engine, SCHEME)
    body = asked(query={"range": {"rank": {"gte": 1000}}})
    options = FoldOptions(mode="auto")
    assert search.search("grouped", body, options)["dedup"]["mode"] == "native"
    late = [action("grouped", number, grouped=False) | {"_id": f"late{number}"} for number in range(COUNT)][
        :6
    ]
    for one in late:
        one["_source"]["rank"] += 1000
    try:
        assert not engine.bulk(late).failures
        engine.refresh("grouped")
        others = asked(query={"range": {"rank": {"lt": 1000}}}, **{"from": 2})
        assert search.search("grouped", others, options)["dedup"]["mode"] == "native"
        for start in (0, 2):
            told = search.search("grouped", {**body, "from": start}, options)
            assert told["dedup"]["mode"] == "window"
            assert "no group" in told["dedup"]["mode_reason"]
    finally:
        engine.bulk({"_op_type": "delete", "_index": "grouped", "_id": one["_id"]} for one in late)
        engine.refresh("grouped")


def test_an_index_without_numbers_of_groups_says_so(library):
    with pytest.raises(ConfigError, match="no group numbers"):
        FoldedSearch(library.engine, SCHEME).search("pages", library.body(1), FoldOptions(mode="native"))


def test_visitors_choose_neither_mode_nor_facets_nor_members_from_the_index():
    for given in ({"mode": "native"}, {"facets": "groups"}, {"members": {"from": "index"}}):
        with pytest.raises(ConfigError, match="for the application"):
            FoldOptions.untrusted(given)
    base = FoldOptions(mode="auto", members_from="index")
    assert FoldOptions.untrusted({"members": {"size": 1}}, base).mode == "auto"


STRICT = Scheme().with_options(min_resemblance=0.83)
ABSENT = UnsupportedQuery(
    "x_content_parse_exception: [1:34] unable to parse SearchExtBuilder with name [dedup]: parser not found"
)
#: Of a server without any plugin that reads ``ext``.
NO_SECTIONS = UnsupportedQuery(
    "x_content_parse_exception: unknown named object category [org.opensearch.search.SearchExtBuilder]"
)


def steps_of(folding, mode="auto"):
    return folding.page("pages", {}, FoldOptions(mode=mode), IndexFacts(STRICT, "_dedup"), sealed=False)


def end_of(send):
    with pytest.raises(StopIteration) as end:
        send()
    return end.value.value


def result_of(mode="auto", **told):
    steps = steps_of(ServerFolding(possible=True), mode)
    asked = next(steps).arguments[1]["ext"]["dedup"]
    answer = {"mode": "server", "scheme": STRICT.id, "stopped_by": "page_full", "window": 200, **told}
    return asked, end_of(lambda: steps.send({"dedup": answer}))


def test_the_thresholds_of_the_search_decide_and_its_scheme():
    asked, page = result_of()
    assert (asked["min_resemblance"], asked["min_shared"]) == (0.83, 0)
    assert page["dedup"]["mode"] == "server"
    assert "sf9-0" in result_of(scheme="sf9-0")[1]


def test_a_page_that_a_small_window_cut_is_read_on_here():
    capped = {"stopped_by": "window_cap", "window": 49}
    assert "reads 49 hits" in result_of(**capped)[1]
    assert result_of("server", **capped)[1]["dedup"]["window"] == 49
    assert result_of(stopped_by="window_cap", window=1000)[1]["dedup"]["window"] == 1000


ERRORS = {
    "an error of the server": EngineError("null_pointer_exception (500)"),
    "a circuit breaker": EngineUnavailable("circuit_breaking_exception: [parent] Data too large (429)"),
    "no answer": EngineUnavailable("localhost does not answer: timed out"),
    "a malformed request": UnsupportedQuery("parsing_exception: unknown query [dedup] (400)"),
    "a field of our name": UnsupportedQuery("No mapping found for [dedup] in order to sort on (400)"),
    "another section": UnsupportedQuery(str(ABSENT).replace("[dedup]", "[dedup2]")),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_after_an_error_the_page_is_folded_here_and_the_plugin_is_asked_again(error):
    folding = ServerFolding(possible=True)
    for _ in range(2):
        steps = steps_of(folding)
        next(steps)
        assert end_of(lambda steps=steps: steps.throw(error)) == str(error)
    steps = steps_of(folding, "server")
    next(steps)
    with pytest.raises(type(error)):
        steps.throw(error)


@pytest.mark.parametrize("said", [ABSENT, NO_SECTIONS], ids=["others read ext", "none reads ext"])
def test_a_cluster_without_the_plugin_is_asked_no_more_for_a_minute(said):
    folding = ServerFolding(possible=True)
    steps = steps_of(folding)
    next(steps)
    assert "no plugin" in end_of(lambda: steps.throw(said))
    assert "no plugin" in end_of(lambda: next(steps_of(folding)))
    steps = steps_of(folding, "server")
    next(steps)
    with pytest.raises(ConfigError, match="no plugin"):
        steps.throw(said)


def test_wrong_credentials_are_told_at_once():
    steps = steps_of(ServerFolding(possible=True))
    next(steps)
    with pytest.raises(AuthenticationFailed):
        steps.throw(AuthenticationFailed("401"))
