"""Our plugin inside OpenSearch answers as ``FoldedSearch`` does, hit by hit, or refuses by name."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from support.hits import SCHEME, fingerprint_of
from support.plugin_trials import SHOWN, by_plugin, comparable, documents, indexed, properties, request_of
from support.random_pages import spec_of
from support.servers.local import LocalServer
from support.topologies import laid_out

import shinglefold
from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError
from shinglefold.examples import articles
from shinglefold.model.recipe import Recipe
from shinglefold.rerank import FoldedSearch, FoldOptions

TRIALS = 70
INDEX = "shinglefold-test-plugin"
_FACTORIES = "cluster.search.enabled_system_generated_factories"
_LAYOUTS = ("one_shard", "five_shards", "three_indices", "equal_ids_under_routing", "filtered_alias")


def refused(server: LocalServer, index: str, body: JSON) -> str:
    with pytest.raises(HTTPError) as error:
        by_plugin(server.url, index, body)
    assert error.value.code == 400, error.value
    return str(error.value)


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_random_pages_are_those_of_folded_search(server, engine, layout):
    met = set()
    with laid_out(layout, engine, server, documents(), properties()) as place:
        folded = FoldedSearch(engine, SCHEME)
        for seed in range(TRIALS):
            body = request_of(seed)
            expected = folded.search(place.target, body)
            found = by_plugin(server.url, place.target, body)
            assert found["dedup"]["mode"] == "server"
            assert comparable(found) == comparable(expected), (seed, body)
            told = found["dedup"]
            met.add(told["stopped_by"])
            met |= {name for name in ("unsigned", "unreadable", "other_schemes", "folded") if told[name]}
            met.add("grown" if told["window"] > body["ext"]["dedup"].get("window", 200) else "")
    wanted = {
        "page_full",
        "end_of_results",
        "window_cap",
        "unsigned",
        "unreadable",
        "other_schemes",
        "folded",
    }
    assert met >= wanted | {"grown"}


#: Requests, and whether one shard answers them in one search.
IN_ONE: dict[str, tuple[JSON, bool]] = {
    "a page": ({}, True),
    "by a date, with a scope and highlights": (
        {
            "sort": [{"published": "desc"}],
            "highlight": {"fields": {"body": {}}},
            "ext": {"dedup": {"scope": "host", "representative": "newest:published"}},
        },
        True,
    ),
    "a page behind the hits": ({"from": 900}, True),
    "supershingles": ({"ext": {"dedup": {"min_shared": 1}}}, True),
    "a window that grows": ({"size": 30, "ext": {"dedup": {"window": 30}}}, False),
}


@pytest.mark.parametrize("case", IN_ONE)
def test_a_page_of_one_shard_takes_one_search(server, engine, case):
    more, in_one = IN_ONE[case]
    body: JSON = {"query": {"match": {"body": "a"}}, "size": 4, "ext": {"dedup": {}}, **more}

    def searches() -> int:
        stats = server.ask("GET", f"/{place.target}/_stats/search")
        total: int = stats["_all"]["total"]["search"]["query_total"]
        return total

    with laid_out("one_shard", engine, server, documents(), properties()) as place:
        before = searches()
        found = by_plugin(server.url, place.target, body)
        assert (searches() - before == 1) == in_one
        assert comparable(found) == comparable(FoldedSearch(engine, SCHEME).search(place.target, body))


def test_only_the_plugin_tells_a_shard_to_fold(server, index):
    assert "only the plugin writes it" in refused(server, index, {"ext": {"dedup_shard": {}}})


REFUSED: dict[str, tuple[JSON, str]] = {
    "explain": ({"ext": {"dedup": {"explain": True}}}, "explain [true]"),
    "cursor": ({"ext": {"dedup": {"cursor": True}}}, "cursor [true]"),
    "texts decide": ({"ext": {"dedup": {"verify": "text"}}}, "verify [text]"),
    "chains": ({"ext": {"dedup": {"linkage": "connected"}}}, "linkage [connected]"),
    "group numbers": ({"ext": {"dedup": {"mode": "native"}}}, "mode [native]"),
    "copies of the index": ({"ext": {"dedup": {"members": {"from": "index"}}}}, "[from] of members"),
    "sources of members": ({"ext": {"dedup": {"members": {"_source": ["a"]}}}}, "[_source] of members"),
    "named members": ({"ext": {"dedup": {"inner_hits": {"name": "a"}}}}, "inner_hits"),
    "long windows": ({"ext": {"dedup": {"max_window": 5000}}}, "max_window above 1000"),
    "errors": ({"ext": {"dedup": {"on_trouble": "raise"}}}, "on_trouble [raise]"),
    "a policy of a plugin": ({"ext": {"dedup": {"representative": "own:number"}}}, "got [own]"),
    "an unknown option": ({"ext": {"dedup": {"windows": 3}}}, "unknown option [windows]"),
    "an unknown field": ({"ext": {"dedup": {"scope": "nothing"}}}, "'nothing'; name one that is mapped"),
    "a wrong number": ({"ext": {"dedup": {"window": 0}}}, "window: expected a whole number"),
    "a wrong share": ({"ext": {"dedup": {"min_resemblance": 2}}}, "min_resemblance: expected a number"),
    "everything folds": (
        {"ext": {"dedup": {"min_resemblance": 0, "min_shared": 0}}},
        "would fold everything",
    ),
    "collapse": ({"collapse": {"field": "host"}}, "collapse"),
    "search_after": ({"sort": ["number"], "search_after": [3]}, "search_after"),
    "slice": ({"slice": {"id": 0, "max": 2}}, "slice"),
    "rescore": ({"rescore": {"query": {"rescore_query": {"match_all": {}}}}}, "rescore"),
    "random order": ({"query": {"function_score": {"random_score": {}}}}, 'the query \\"random_score\\"'),
    "a format beside highlights": (
        {
            "highlight": {"fields": {"body": {}}},
            "docvalue_fields": [{"field": "pub*", "format": "yyyy"}],
            "ext": {"dedup": {"representative": "newest:published"}},
        },
        "a format of [published]",
    ),
    "a format beside explanations": (
        {
            "explain": True,
            "fields": [{"field": "published", "format": "yyyy"}],
            "ext": {"dedup": {"scope": "published:1d"}},
        },
        "a format of [published]",
    ),
    "a format of values that hits come whole with": (
        {
            "explain": True,
            "docvalue_fields": [{"field": "ratio", "format": "#"}],
            "ext": {"dedup": {"scope": "ratio"}},
        },
        "a format of [ratio]",
    ),
    "a script of the name of a scope": (
        {"explain": True, "script_fields": {"host": {"script": "1"}}, "ext": {"dedup": {"scope": "host"}}},
        "a script field [host]",
    ),
    "order of places": ({"sort": "_doc"}, "this sort"),
    "a script that sorts": (
        {"sort": {"_script": {"type": "number", "script": "doc['number'].value"}}},
        "this sort",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_does_not_take_is_refused_by_name(server, index, case):
    body, told = REFUSED[case]
    assert told in refused(server, index, {"ext": {"dedup": {}}, **body})


FORMATTED: dict[str, JSON] = {
    "doc values": {"docvalue_fields": [{"field": "published", "format": "yyyy"}]},
    "fields": {"fields": [{"field": "published", "format": "yyyy"}]},
    "a script": {"script_fields": {"published": {"script": "1"}}},
}


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("case", FORMATTED)
def test_formats_of_shown_values_change_no_group(server, engine, case, equal):
    """Equal texts of several shards have equal digests, and some have equal sequence numbers."""
    dedup = {"representative": "newest:published", "scope": "published:1d"}
    body = {"query": {"match": {"body": "a"}}, "size": 40, **FORMATTED[case], "ext": {"dedup": dedup}}
    stored = fingerprint_of(spec_of(8)).to_field()
    made = [{**one, "_dedup": stored} if equal else one for one in documents()]
    with laid_out("five_shards", engine, server, made, properties()) as place:
        found = by_plugin(server.url, place.target, body)
        assert comparable(found) == comparable(FoldedSearch(engine, SCHEME).search(place.target, body))
        assert found["dedup"]["folded"]


@pytest.mark.parametrize("form", FORMATTED.values())
@pytest.mark.parametrize("dedup", [{"representative": "newest:published"}, {"scope": "published:1d"}])
def test_what_comes_in_another_form_leaves_a_page_unfolded(engine, index, form, dedup):
    body = {"query": {"match": {"body": "a"}}, "size": 9, "explain": True, **form}
    found = FoldedSearch(engine, SCHEME).search(index, {**body, "ext": {"dedup": {**dedup, "mode": "auto"}}})
    assert found["dedup"]["mode"] == "unfolded"
    assert "folding reads published" in found["dedup"]["mode_reason"]
    own = engine.search(index, body)["hits"]["hits"]
    assert [hit.get("fields") for hit in found["hits"]["hits"]] == [hit.get("fields") for hit in own]
    strict = FoldedSearch(engine, SCHEME, on_trouble="raise")
    with pytest.raises(ConfigError, match="folding reads published"):
        strict.search(index, {**body, "ext": {"dedup": dedup}})


@pytest.mark.parametrize("body", [{"ext": {"dedup": False}}, {"ext": {"dedup": {"fold": False}}}])
def test_a_search_that_does_not_fold_is_the_engines_own(server, engine, index, body):
    own = engine.search(index, {"size": 3})
    found = by_plugin(server.url, index, {"size": 3, **body})
    assert {**found, "took": 0} == {**own, "took": 0}
    assert "dedup" not in by_plugin(server.url, index, {"size": 0, "ext": {"dedup": {}}})


@pytest.mark.parametrize("mode", ["server", "auto"])
def test_folded_search_lets_the_plugin_fold(engine, index, mode):
    folded = FoldedSearch(engine, SCHEME)
    for seed in range(12):
        body = request_of(seed)
        options = FoldOptions(mode=mode)
        found = folded.search(index, body, options)
        assert found["dedup"]["mode"] == "server"
        assert comparable(found) == comparable(folded.search(index, body)), seed
    refused = {"ext": {"dedup": {"explain": True, "mode": mode}}}
    if mode == "server":
        with pytest.raises(ConfigError, match="explain"):
            folded.search(index, refused)
    else:
        assert folded.search(index, refused)["dedup"]["mode"] == "window"
        assert (
            folded.search(index, {"sort": "_doc", "ext": {"dedup": {"mode": "auto"}}})["dedup"]["mode"]
            == "window"
        )


def test_a_named_pipeline_folds_every_search(server, engine, index):
    pipeline = {"request_processors": [{"dedup": {"window": 20}}], "response_processors": [{"dedup": {}}]}
    server.ask("PUT", "/_search/pipeline/folds", pipeline)
    body = {"query": {"match": {"body": "a"}}, "size": 4}
    expected = FoldedSearch(engine, SCHEME).search(index, {**body, "ext": {"dedup": {"window": 20}}})
    found = server.ask("POST", f"/{index}/_search?search_pipeline=folds", body)
    assert comparable(found) == comparable(expected)
    with_options = {**body, "ext": {"dedup": {"window": 90}}}
    expected = FoldedSearch(engine, SCHEME).search(index, with_options)
    found = server.ask("POST", f"/{index}/_search?search_pipeline=folds", with_options)
    assert comparable(found) == comparable(expected)
    server.ask("DELETE", "/_search/pipeline/folds")


PROCESSORS: dict[str, JSON] = {
    "filter_query": {"request": [{"filter_query": {"query": {"term": {"list": 1}}}}]},
    "truncate_hits": {"response": [{"truncate_hits": {"target_size": 3}}]},
    "oversample": {
        "request": [{"oversample": {"sample_factor": 2}}],
        "response": [{"truncate_hits": {}}],
    },
    "collapse": {"response": [{"collapse": {"field": "rank"}}]},
    "rename_field": {"response": [{"rename_field": {"field": "number", "target_field": "moved"}}]},
    "split": {"response": [{"split": {"field": "body", "separator": " ", "target_field": "words"}}]},
}


@pytest.mark.parametrize("layout", ["one_shard", "five_shards"])
def test_other_processors_get_the_folded_page(server, engine, layout):
    with laid_out(layout, engine, server, documents(), properties()) as place:
        for name, stages in PROCESSORS.items():
            pipeline = {f"{stage}_processors": made for stage, made in stages.items()}
            server.ask("PUT", "/_search/pipeline/others", pipeline)
            body = {"query": {"match": {"body": "a"}}, "size": 12, "ext": {"dedup": {"window": 20}}}
            found = server.ask("POST", f"/{place.target}/_search?search_pipeline=others", body)
            expected = FoldedSearch(engine, SCHEME).search(
                place.target, body, params={"search_pipeline": "others"}
            )
            for answer in (found, expected):
                for hit in answer["hits"]["hits"]:
                    del hit["inner_hits"]
            assert found["hits"]["hits"] == expected["hits"]["hits"], name
            assert found["dedup"]["mode"] == "server", name
            server.ask("DELETE", "/_search/pipeline/others")


def test_a_search_that_no_processor_folds_has_no_hits(server, index):
    server.ask("PUT", "/_cluster/settings", {"persistent": {_FACTORIES: []}})
    try:
        found = by_plugin(server.url, index, {"ext": {"dedup": {}}})
        assert "no processor folds this search" in str(found["_shards"]["failures"])
        assert not found["hits"]["hits"]
    finally:
        server.ask("PUT", "/_cluster/settings", {"persistent": {_FACTORIES: None}})


def _without_recipe(made: JSON) -> JSON:
    return {**made, "_meta": {}}


def _sealed(made: JSON) -> JSON:
    recipe = made["_meta"]["shinglefold"]
    return {**made, "_meta": {"shinglefold": {**recipe, "sealed": "0123abcd"}}}


def _as_text(made: JSON) -> JSON:
    parts = made["properties"]["_dedup"]["properties"]
    field = {**made["properties"]["_dedup"], "properties": {**parts, "digest": {"type": "text"}}}
    return {**made, "properties": {**made["properties"], "_dedup": field}}


@pytest.mark.parametrize("change", [_without_recipe, _sealed, _as_text])
def test_where_nothing_can_fold_it_returns_the_engines_own_page(server, engine, change):
    made, name = change(properties()), f"{INDEX}-unfolded"
    with indexed(engine, name, documents()[:30], made, number_of_shards=1):
        body = {"query": {"match": {"body": "a"}}, "size": 4, "_source": ["number"]}
        expected: Any = FoldedSearch(engine, lambda recipe: recipe.scheme).search(name, body)
        found = by_plugin(server.url, name, {**body, "ext": {"dedup": {}}})
        assert found["dedup"]["mode"] == expected["dedup"]["mode"] == "unfolded"
        assert name in found["dedup"]["mode_reason"]
        expected["dedup"]["scheme"] = found["dedup"]["scheme"]
        assert comparable(found) == comparable(expected)


def test_of_a_partial_answer_it_folds_what_there_is(server, engine, index):
    """In a second index the query fails, as a field has another type there."""
    other = f"{INDEX}-other"
    made = properties()
    made["properties"]["list"] = {"type": "keyword"}
    with indexed(engine, other, [{**documents()[0], "body": "a"}], made, number_of_shards=1):
        script = "if (doc['list'].value instanceof String) { throw new Exception() } return true"
        query = {
            "bool": {"filter": {"script": {"script": {"source": script}}}, "must": {"match": {"body": "a"}}}
        }
        body = {"query": query, "size": 7}
        target = f"{index},{other}"
        expected = FoldedSearch(engine, SCHEME).search(target, body)
        found = by_plugin(server.url, target, {**body, "ext": {"dedup": {}}})
        assert found["dedup"]["partial"] == {"failed_shards": 1}
        for answer in (expected, found):
            del answer["_shards"]["failures"]
        assert comparable(found) == comparable(expected)


def test_equal_sequence_numbers_of_a_shrunk_index_change_no_page(server, engine):
    """Its documents keep the numbers that they had in several shards."""
    wide, narrow = f"{INDEX}-wide", f"{INDEX}-narrow"
    with indexed(engine, wide, documents(), number_of_shards=4):
        server.ask("PUT", f"/{wide}/_settings", {"index.blocks.write": True})
        settings = {"index.number_of_shards": 1, "index.blocks.write": None}
        server.ask("PUT", f"/{wide}/_shrink/{narrow}", {"settings": settings})
        engine.refresh(narrow)
        body = {"query": {"match": {"body": "a"}}, "size": 20, "ext": {"dedup": {"scope": "published:1d"}}}
        # Two indices have two shards, whose hits are fetched by their numbers.
        for target in (narrow, f"{wide},{narrow}"):
            found = by_plugin(server.url, target, body)
            assert found["dedup"]["mode"] == "server"
            assert comparable(found) == comparable(FoldedSearch(engine, SCHEME).search(target, body))
        found = by_plugin(server.url, f"{wide},{narrow}", {**body, **FORMATTED["doc values"]})
        assert found["dedup"]["mode"] == "unfolded"
        assert "sequence numbers did not identify them" in found["dedup"]["mode_reason"]
        assert "a format of [published]" in found["dedup"]["mode_reason"]
        engine.delete_index(narrow)


def test_smaller_windows_of_an_index_are_heeded(server, engine):
    with indexed(engine, f"{INDEX}-small", documents(), max_result_window=50) as name:
        found = by_plugin(server.url, name, {"from": 40, "size": 10, "ext": {"dedup": {}}})
        assert found["dedup"]["stopped_by"] == "window_cap"
        assert 40 <= found["dedup"]["window"] < 50


def test_several_searches_fold_together(server, engine, index):
    searches = [{"size": 3, "ext": {"dedup": {}}}, {"size": 2}, {"size": 1, "ext": {"dedup": {"members": 0}}}]
    answers = engine.msearch([(index, body) for body in searches])
    told = [answer.get("dedup", {}).get("mode") for answer in answers]
    assert told == ["server", None, "server"]


@pytest.mark.parametrize("mistake", [{"explain": True}, {"windows": 3}, {"window": 0}, {"scope": "nothing"}])
def test_a_mistake_of_one_search_fails_no_other(server, index, mistake):
    lines: list[JSON] = [{}, {"size": 1}, {}, {"size": 1, "ext": {"dedup": mistake}}]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    request = Request(f"{server.url}/{index}/_msearch", body, {"Content-Type": "application/x-ndjson"})
    with urlopen(request) as answer:
        plain, refused_one = json.load(answer)["responses"]
    assert plain["hits"]["hits"]
    assert refused_one["status"] == 400
    assert next(iter(mistake)) in refused_one["error"]["reason"] or "nothing" in str(refused_one["error"])


def test_of_two_recipes_that_of_the_first_name_folds(server, engine):
    names = {f"{INDEX}-a": "compact", f"{INDEX}-b": "default"}
    try:
        for name, preset in names.items():
            shinglefold.setup(server.url, name, text=["title", "body"], languages=[], preset=preset)
            with shinglefold.open(server.url, name) as site:
                site.index(articles())
        scheme = Recipe.of(engine.mappings(f"{INDEX}-a"), INDEX).scheme.id
        for target in (",".join(names), ",".join(reversed(names)), f"{INDEX}-*"):
            folded = FoldedSearch(engine, lambda recipe: recipe.scheme)
            expected = folded.search(target, {"size": 20, "sort": ["_id", "_index"]})
            found = by_plugin(
                server.url, target, {"size": 20, "sort": ["_id", "_index"], "ext": {"dedup": {}}}
            )
            assert found["dedup"]["scheme"] == expected["dedup"]["scheme"] == scheme
            assert comparable(found) == comparable(expected)
    finally:
        for name in names:
            engine.delete_index(name)


def test_trials_are_of_every_kind():
    """The requests have all parts that the tables have, so that none is left untried."""
    bodies = [request_of(seed) for seed in range(TRIALS)]
    parts = {name for body in bodies for name in body}
    assert parts >= {name for name, _ in SHOWN} | {"sort", "from"}
    options = {name for body in bodies for name in body["ext"]["dedup"]}
    assert options >= {"representative", "scope", "members", "min_shared", "min_length_ratio", "max_window"}
