"""What several shards, indices and routings do to single searches, and to cursors."""

import pytest
from support.hits import SCHEME, Spec, fingerprint_of
from support.servers.admin import ask, left_open, open_contexts
from support.topologies import laid_out

from shinglefold.errors import ConfigError, EngineError, UnsupportedQuery
from shinglefold.ingest import mappings
from shinglefold.maintenance.scan import Scan
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates

COUNT = 60


def documents(texts=20, count=COUNT):
    stored = [fingerprint_of(Spec(original=number)).to_field() for number in range(texts)]
    return [{"number": number, "_dedup": stored[number % texts]} for number in range(count)]


def properties(**more):
    made = mappings(SCHEME)
    made["properties"] |= {"number": {"type": "integer"}, **more}
    return made


@pytest.fixture
def folded(engine):
    return FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())


@pytest.mark.parametrize("options", [{}, {"explain": True}, {"min_shared": 1}, {"cursor": True}])
@pytest.mark.parametrize("topology", ["three_indices", "equal_ids_under_routing"])
def test_equal_ids_are_different_documents(engine, server, folded, topology, options):
    with laid_out(topology, engine, server, documents(), properties()) as place:
        body = {"size": 20, "sort": [{"number": "asc"}], "ext": {"dedup": options}}
        answer = folded.search(place.target, body)
        assert answer["dedup"]["vanished"] == 0
        found = [sorted(map(place.number, [hit, *duplicates(hit)])) for hit in answer["hits"]["hits"]]
        assert found == [[number, number + 20, number + 40] for number in range(20)]


@pytest.mark.parametrize("topology", ["one_shard", "three_indices"])
def test_hits_may_be_asked_for_without_ids(engine, server, folded, topology):
    with laid_out(topology, engine, server, documents(), properties()) as place:
        for more in ({}, {"explain": True}):
            body = {"size": 20, "stored_fields": "_none_", "_source": False, "ext": {"dedup": more}}
            answer = folded.search(place.target, body)
            assert (len(answer["hits"]["hits"]), answer["dedup"]["vanished"]) == (20, 0)
            assert not any("_id" in hit for hit in answer["hits"]["hits"])
            assert [len(duplicates(hit)) for hit in answer["hits"]["hits"]] == [2] * 20


def test_a_hundred_visitors_hold_no_context(engine, server, folded):
    with laid_out("five_shards", engine, server, documents(), properties()) as place:
        before = open_contexts(server.url)
        for _ in range(100):
            first = folded.search(place.target, {"size": 5}, FoldOptions(cursor=True))
            assert first["dedup"]["cursor"]
        folded.search(place.target, {"size": 5, "from": 15}, FoldOptions(window=5))
        assert left_open(server.url, before) <= 0


def hold_all(engine, index, held):
    """Open points in time until the server gives no more."""
    for _ in range(400):
        try:
            held.append(engine.open_pit(index))
        except EngineError:
            return
    pytest.skip("this server gives any number of points in time")


def test_where_no_context_can_be_had_longer_windows_are_read(engine, server, folded):
    with laid_out("one_shard", engine, server, documents(), properties()) as place:
        expected = folded.search(place.target, {"size": 5, "from": 15}, FoldOptions(window=5))
        held = []
        try:
            hold_all(engine, place.target, held)
            answer = folded.search(place.target, {"size": 5, "from": 15}, FoldOptions(window=5))
        finally:
            for pit in held:
                engine.close_pit(pit)
        assert answer["hits"]["hits"] == expected["hits"]["hits"]


def test_an_answer_without_some_shards_says_so(engine, server, folded, new_index):
    with laid_out("five_shards", engine, server, documents(), properties()) as place:
        other = new_index(properties(extra={"type": "integer"}), {"number_of_shards": 1})
        body = {"size": 30, "sort": [{"extra": "asc"}]}
        engine.bulk([{"_index": other, "_id": "x", "_source": {**documents()[0], "extra": 1}}])
        engine.refresh(other)
        for options in (FoldOptions(), FoldOptions(cursor=True)):
            answer = folded.search(f"{place.target},{other}", body, options)
            assert answer["_shards"]["failed"] == 5
            told = answer["dedup"]
            assert told["partial"] == {"failed_shards": 5}
            assert told["stopped_by"] == "partial_answer"
            assert told["groups_total"]["relation"] != "eq"
            relations = {
                hit["inner_hits"]["duplicates"]["hits"]["total"]["relation"] for hit in answer["hits"]["hits"]
            }
            assert relations == {"gte"}


def test_an_answer_cut_off_by_terminate_after_says_so(engine, server, folded):
    with laid_out("five_shards", engine, server, documents(), properties()) as place:
        told = folded.search(place.target, {"size": 30, "terminate_after": 1})["dedup"]
        assert told["partial"] == {"terminated_early": True}
        assert told["groups_total"]["relation"] != "eq"


def test_a_point_in_time_has_its_own_index_and_filter(engine, server, folded):
    with laid_out("filtered_alias", engine, server, documents(), properties()) as place:
        pit = engine.open_pit(place.indices[0])
        with pytest.raises(UnsupportedQuery, match="None as index"):
            folded.search(place.target, {"pit": {"id": pit}})
        engine.close_pit(pit)
        pit = engine.open_pit(place.target)
        answer = folded.search(None, {"pit": {"id": pit}, "size": 30}, FoldOptions(window=5))
        assert (len(answer["hits"]["hits"]), answer["dedup"]["window"]) == (20, COUNT)
        engine.close_pit(pit)


def test_an_answer_says_what_decides_between_equal_hits(engine, server, folded):
    rescore = {"window_size": 5, "query": {"rescore_query": {"match_all": {}}}}
    ways = {
        "a first page": ({}, FoldOptions()),
        "a deep page": ({"from": 15}, FoldOptions(window=5)),
        "one way only": ({"rescore": rescore}, None),
        "a cursor": ({}, FoldOptions(cursor=True)),
    }
    for topology, orders in (
        ("one_shard", ["engine", "engine", "engine", "_seq_no"]),
        ("five_shards", ["_seq_no", "_seq_no", "engine", "_seq_no"]),
    ):
        with laid_out(topology, engine, server, documents(), properties()) as place:
            answers = [folded.search(place.target, {"size": 5, **more}, way) for more, way in ways.values()]
            assert [answer["dedup"]["order"] for answer in answers] == orders
            pit = engine.open_pit(place.target)
            told = folded.search(None, {"pit": {"id": pit}, "size": 5})["dedup"]["order"]
            engine.close_pit(pit)
            assert told == (engine.tiebreaker() or "_seq_no")


def test_patterns_may_leave_indices_out(engine, server, folded):
    with laid_out("three_indices", engine, server, documents(), properties()) as place:
        pattern = f"{place.indices[0][:-1]}*,-{place.indices[2]}"
        for options in (FoldOptions(), FoldOptions(cursor=True)):
            answer = folded.search(pattern, {"size": 30}, options)
            found = {hit["_index"] for hit in answer["hits"]["hits"]}
            assert found <= set(place.indices[:2])
            assert answer["dedup"]["window"] == COUNT * 2 // 3


def test_an_index_that_allows_small_windows_only_is_read_in_steps(engine, server, folded):
    settings = {"max_result_window": 25}
    for topology in ("one_shard", "five_shards"):
        with laid_out(topology, engine, server, documents(), properties(), settings) as place:
            answer = folded.search(place.target, {"size": 20})
            assert (len(answer["hits"]["hits"]), answer["dedup"]["window"]) == (20, COUNT)


def test_one_index_of_several_may_allow_small_windows_only(engine, server, folded):
    with laid_out("three_indices", engine, server, documents(), properties()) as place:
        ask(server.url, "PUT", f"/{place.indices[1]}/_settings", {"index": {"max_result_window": 15}})
        body = {"size": 7, "sort": [{"number": "asc"}]}
        for options in (FoldOptions(), FoldOptions(explain=True), FoldOptions(linkage="connected")):
            answer = folded.search(place.target, {**body, "size": 20}, options)
            assert [place.number(hit) for hit in answer["hits"]["hits"]] == list(range(20))
            assert (answer["dedup"]["window"], answer["dedup"].get("partial")) == (COUNT, None)
        shown = [
            place.number(hit) for page in folded.pages(place.target, body) for hit in page["hits"]["hits"]
        ]
        assert shown == list(range(20))
        scan = Scan(engine, place.target)
        begun = scan.start()
        met = [place.number(hit) for page in scan.pages(begun) for hit in page.hits]
        scan.close(begun)
        assert sorted(met) == list(range(COUNT))


def test_a_cluster_may_be_addressed_from_another(engine, server, folded):
    with laid_out("five_shards", engine, server, documents(), properties()) as place:
        node = next(iter(ask(server.url, "GET", "/_nodes/transport")["nodes"].values()))
        name = "cluster.remote.itself.seeds"
        seeds = [node["transport"]["publish_address"]]
        ask(server.url, "PUT", "/_cluster/settings", {"persistent": {name: seeds}})
        try:
            for options in (FoldOptions(), FoldOptions(cursor=True), FoldOptions(explain=True)):
                answer = folded.search(f"itself:{place.target}", {"size": 30}, options)
                assert (len(answer["hits"]["hits"]), answer["dedup"]["vanished"]) == (20, 0)
        finally:
            ask(server.url, "PUT", "/_cluster/settings", {"persistent": {name: None}})


@pytest.mark.parametrize("topology", ["five_shards", "three_indices"])
def test_among_equal_hits_of_several_shards_no_group_comes_again(engine, server, folded, topology):
    """Far down, where there is a pair of copies in every shard; of the value to sort by, some have none."""
    texts = 240
    given = [
        {**one, **({"price": 7} if at % 5 else {})} for at, one in enumerate(documents(texts, 2 * texts))
    ]
    with laid_out(topology, engine, server, given, properties(price={"type": "integer"})) as place:
        for window, policies in ((200, []), (7, []), (200, ["longest"])):
            options = FoldOptions.parse({"window": window, "representative": policies})
            body = {"size": 13, "sort": [{"price": "asc"}], "_source": False}
            shown = [
                place.number(hit)
                for page in folded.pages(place.target, body, options)
                for hit in page["hits"]["hits"]
            ]
            assert sorted(number % texts for number in shown) == list(range(texts)), (window, policies)


@pytest.mark.newest
def test_a_cursor_goes_on_under_the_address_it_was_made_under_and_no_other(engine, server, folded):
    given = documents(COUNT)
    with laid_out("equal_ids_under_routing", engine, server, given, properties()) as place:
        one, other = sorted({identity.routing for identity in place.identities})[:2]
        body = {"size": 5, "sort": [{"number": "asc"}]}
        first = folded.search(place.target, body, FoldOptions(cursor=True), routing=one)
        go_on = FoldOptions(cursor=first["dedup"]["cursor"])
        for address in ({"routing": other}, {}, {"routing": one, "preference": "_local"}):
            with pytest.raises(ConfigError, match="belongs to another search"):
                folded.search(place.target, body, go_on, **address)
        # What changes nothing about the hits may be said of one page and not of the next.
        second = folded.search(place.target, body, go_on, routing=one, request_cache=False)
        shown = [place.number(hit) for page in (first, second) for hit in page["hits"]["hits"]]
        own = [number for number, identity in enumerate(place.identities) if identity.routing == one]
        assert shown == own[:10]


@pytest.mark.newest
@pytest.mark.parametrize("more", [{}, {"explain": True}, {"min_shared": 1}])
def test_a_document_without_routing_is_not_its_namesake_with_one(engine, folded, new_index, more):
    index = new_index(properties(), {"number_of_shards": 5})
    # Among so many routings some lead to other shards than the id alone does.
    routings = [f"r{number}" for number in range(20)]
    first, *others = documents(21, 21)
    actions = [{"_index": index, "_id": "d", "_source": first}]
    actions += [
        {"_index": index, "_id": "d", "_routing": routing, "_source": source}
        for routing, source in zip(routings, others, strict=True)
    ]
    for action in reversed(actions):
        assert not engine.bulk([action]).failures
    engine.refresh(index)
    options = FoldOptions.parse(
        {"inner_hits": {"name": "own", "size": 9, "sort": [{"number": "desc"}]}, **more}
    )
    answer = folded.search(index, {"size": 50, "sort": [{"number": "asc"}]}, options)
    hits = answer["hits"]["hits"]
    assert (len(hits) > 1, answer["dedup"]["vanished"]) == (True, 0)
    assert "_routing" not in hits[0]
    for hit in hits:
        assert duplicates(hit) == []
        inner = hit["inner_hits"]["own"]["hits"]["hits"]
        assert [one["_source"]["number"] for one in inner] == [hit["_source"]["number"]]
