"""Hits merged from several searches, partial answers, and clients of a native collapse."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, fill, fingerprint_of, hits_of, ids, leader_groups, specs, split
from support.programs import run_node
from support.servers.choose import examples
from support.serving import answering, as_json
from support.taps import Changed

from shinglefold.contracts.engine import Capabilities
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldedSearch, FoldOptions, collapse, duplicates

LINKAGES = ["leader", "connected"]


def members(folded):
    return [list(group.members) for group in folded.groups]


@given(specs, st.data(), st.sampled_from(LINKAGES))
@settings(max_examples=examples(100), deadline=None)
def test_a_document_found_by_several_searches_counts_once_where_it_ranks_best(made, data, linkage):
    hits = hits_of(made)
    again = data.draw(st.lists(st.sampled_from(hits), max_size=10)) if hits else []
    merged = list(hits)
    for hit in again:
        after = merged.index(hit) + 1
        merged.insert(data.draw(st.integers(after, len(merged))), {**hit, "_score": None})
    places = [merged.index(hit) for hit in hits]
    options = FoldOptions(linkage=linkage)
    whole, plain = collapse(merged, SCHEME, options), collapse(hits, SCHEME, options)
    assert members(whole) == [[places[place] for place in group] for group in members(plain)]
    assert whole.counts.repeated == len(again)
    assert plain.counts.repeated == 0


@pytest.mark.parametrize("linkage", LINKAGES)
def test_equal_ids_of_different_indices_are_different_documents(linkage):
    hits = hits_of([Spec(original=0), Spec(original=1), Spec(original=0)])
    named = [{**hit, "_index": index, "_id": "1"} for hit, index in zip(hits, "abc", strict=True)]
    assert members(collapse(named, SCHEME, FoldOptions(linkage=linkage))) == [[0, 2], [1]]


@pytest.mark.parametrize("linkage", LINKAGES)
def test_hits_without_a_name_are_never_taken_for_one_another(linkage):
    hits = [{"fields": hit["fields"]} for hit in hits_of([Spec(signed=False), Spec(signed=False)])]
    assert len(collapse(hits, SCHEME, FoldOptions(linkage=linkage)).groups) == 2


def test_a_repeated_document_is_known_again_in_a_later_block():
    hits = hits_of([Spec(original=number, signed=False) for number in range(1500)])
    folded = collapse([*hits, hits[3], hits[1400]], SCHEME)
    assert (len(folded.groups), folded.folded, folded.counts.repeated) == (1500, 0, 2)


@given(specs, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_any_order_of_the_hits_is_folded_in_that_order(made, order):
    """Rescored, nearest by vector, hybrid, fused: whoever ranked them, hits are folded as they stand."""
    hits = hits_of(made)
    places = list(range(len(made)))
    order.shuffle(places)
    shuffled = [{**hits[place], "_score": order.choice([None, 0.0, 17.5])} for place in places]
    assert members(collapse(shuffled, SCHEME)) == leader_groups([made[place] for place in places])


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two indices with equal ids: every text of the first stands in the second too, under another id."""
    with EmbeddedEngine(tmp_path_factory.mktemp("two"), split) as engine:
        rng = random.Random(3)
        for index in ("news", "archive"):
            sources = [
                {
                    "title": f"story {number}",
                    "rank": number,
                    "_dedup": fingerprint_of(Spec(number)).to_field(),
                }
                for number in rng.sample(range(20), 20)
            ]
            fill(
                engine, index, {f"{at}": one for at, one in enumerate(sources)}, title="text", rank="integer"
            )
        yield engine


class Merged(Changed):
    """Searches each index of a list with commas and merges the answers by rank, as the servers do."""

    can = Capabilities()

    def search(self, index, body):
        answers = [self.engine.search(name, body) for name in index.split(",")]
        hits = [hit for answer in answers for hit in answer["hits"]["hits"]]
        if "sort" in body:
            hits.sort(key=lambda hit: hit["sort"])
        total = {"value": sum(len(one["hits"]["hits"]) for one in answers), "relation": "eq"}
        return {"hits": {"total": total, "max_score": None, "hits": hits[: body["size"]]}}


def test_a_search_over_several_indices_attaches_the_right_documents(two):
    body = {"query": {"match": {"title": "story"}}, "sort": [{"rank": "asc"}], "size": 20}
    answer = FoldedSearch(Merged(two), SCHEME, tiebreaker=None).search("news,archive", body)
    assert [hit["_source"]["rank"] for hit in answer["hits"]["hits"]] == list(range(20))
    for hit in answer["hits"]["hits"]:
        (other,) = duplicates(hit)
        assert other["_source"]["rank"] == hit["_source"]["rank"]
        assert {hit["_index"], other["_index"]} == {"news", "archive"}
    assert answer["dedup"]["folded"] == 20
    assert answer["dedup"]["vanished"] == 0


def test_answers_of_several_searches_are_fused_and_folded(two):
    """The way of docs/how-to-merged-hits.md: reciprocal ranks, then collapse."""
    searches = [
        two.search(index, {"query": {"match": {"title": text}}, "size": 20})["hits"]["hits"]
        for index, text in (("news", "story"), ("archive", "story"), ("news", "story 7"))
    ]
    score: dict[tuple[str, str], float] = {}
    found = {}
    for hits in searches:
        for rank, hit in enumerate(hits):
            name = hit["_index"], hit["_id"]
            score[name] = score.get(name, 0) + 1 / (60 + rank)
            found[name] = hit
    fused = [found[name] for name in sorted(found, key=lambda name: -score[name])]
    folded = collapse(fused, SCHEME)
    shown = [fused[group.representative]["_source"]["rank"] for group in folded.groups]
    assert sorted(shown) == list(range(20))
    assert shown[0] == 7
    assert all(len(group.members) == 2 for group in folded.groups)


@pytest.mark.parametrize(
    "options",
    [
        {"verify": "text"},
        {"mode": "native"},
        {"fold": False},
        {"cursor": True},
        {"members_from": "index"},
    ],
)
def test_what_only_a_search_can_heed_is_refused_by_name(options):
    hits = hits_of([Spec(original=0), Spec(original=0)])
    with pytest.raises(ConfigError, match=f"cannot heed {next(iter(options))} "):
        collapse(hits, SCHEME, FoldOptions(**options))
    heeded = FoldOptions(verify="signature", mode="auto", window=9, members=2, explain=True)
    assert members(collapse(hits, SCHEME, heeded)) == [[0, 1]]


def test_hits_that_bring_no_fingerprints_are_told(caplog):
    bare = [{"_index": "a", "_id": str(at), "_source": {"title": "мост"}} for at in range(3)]
    assert len(collapse(bare, SCHEME).groups) == 3
    assert "none of these 3 hits brings a fingerprint" in caplog.text
    assert '"_dedup.digest"' in caplog.text
    caplog.clear()
    # One alone may be a document without a text; among others with fingerprints it is counted.
    collapse(bare[:1], SCHEME)
    collapse([*hits_of([Spec(original=0)]), *bare], SCHEME)
    assert not caplog.text


_LACKS = {
    "a shard that failed": {"_shards": {"total": 1, "successful": 0, "skipped": 0, "failed": 1}},
    "too little time": {"timed_out": True},
}


class Lacking(Changed):
    """A real engine whose answers say that they lack something."""

    can = Capabilities()

    def __init__(self, engine, lacks):
        super().__init__(engine)
        self.lacks = lacks

    def search(self, index, body, *more):
        return self.engine.search(index, body, *more) | self.lacks


@pytest.mark.parametrize("lacks", _LACKS.values(), ids=_LACKS)
def test_what_ends_before_the_page_is_full_ended_with_a_partial_answer(library, lacks):
    body = library.body(3, size=60, ext={"dedup": {"cursor": True}})
    answer = FoldedSearch(Lacking(library.engine, lacks), SCHEME).search("pages", body)
    told = answer["dedup"]
    assert (told["stopped_by"], told["groups_total"]["relation"]) == ("partial_answer", "gte")
    assert told["partial"]
    assert told["cursor"] is None
    assert {
        hit["inner_hits"]["duplicates"]["hits"]["total"]["relation"] for hit in answer["hits"]["hits"]
    } == {"gte"}


@pytest.mark.parametrize("lacks", _LACKS.values(), ids=_LACKS)
def test_an_answer_with_all_the_hits_that_were_asked_for_is_read_on_from(library, lacks):
    groups = leader_groups(library.lists[3])
    folded = FoldedSearch(Lacking(library.engine, lacks), SCHEME)
    answer = folded.search("pages", library.body(3, size=len(groups) - 1), FoldOptions(window=5))
    assert ids(answer["hits"]["hits"]) == [f"3-{group[0]}" for group in groups[:-1]]
    assert answer["dedup"]["stopped_by"] == "page_full"


class LackingMembers(Lacking):
    """The same, whose searches for members alone lack something."""

    def search(self, index, body, *more):
        return self.engine.search(index, body, *more)

    def msearch(self, searches):
        return [answer | self.lacks for answer in self.engine.msearch(searches)]


@pytest.mark.parametrize("lacks", _LACKS.values(), ids=_LACKS)
def test_members_that_lack_something_are_told(library, lacks):
    body = library.body(3, size=5, ext={"dedup": {"inner_hits": {"name": "all", "size": 3}}})
    whole = FoldedSearch(library.engine, SCHEME).search("pages", body)
    answer = FoldedSearch(LackingMembers(library.engine, lacks), SCHEME).search("pages", body)
    assert ids(answer["hits"]["hits"]) == ids(whole["hits"]["hits"])
    assert "partial" not in whole["dedup"]
    assert answer["dedup"]["partial"]


class Sharded(Changed):
    """A real engine whose answers say how many shards gave them; it keeps what it was asked."""

    def __init__(self, engine, shards):
        super().__init__(engine)
        self.shards, self.asked = shards, []

    def search(self, index, body, **more):
        self.asked.append(body)
        answer = self.engine.search(index, body, **more)
        return {**answer, "_shards": {"total": self.shards, "successful": self.shards}}


@pytest.mark.parametrize(("shards", "told_apart"), [(1, False), (2, True), (3, True)])
def test_hits_of_several_shards_are_asked_for_by_index_and_routing_too(library, shards, told_apart):
    engine = Sharded(library.engine, shards)
    FoldedSearch(engine, SCHEME).search("pages", library.body(0, size=5))
    read, fetched, *_ = map(json.dumps, engine.asked)
    assert "_routing" not in read
    assert '"0-0"' in fetched
    assert ("_routing" in fetched) == told_apart


JS = Path(__file__).parent / "js"


@pytest.fixture(scope="module")
def url(library) -> Iterator[str]:
    """A server that answers a search with a folded page, and anything else with who it is."""
    search = FoldedSearch(library.engine, SCHEME)

    def answer(request):
        if request.method == "POST":
            told = search.search(request.path.split("/")[1], json.loads(request.body))
            del told["dedup"]
        else:
            version = {"number": "9.2.4", "build_flavor": "default"}
            told = {"version": version, "tagline": "You Know, for Search"}
        asked = request.headers.get("Accept") or ""
        own = {"Content-Type": asked} if "vnd.elasticsearch" in asked else {}
        return as_json(told, headers={"X-Elastic-Product": "Elasticsearch", **own})

    with answering(answer) as url:
        yield url


@pytest.fixture
def body(library):
    ours = {"members": 100, "explain": True}
    return library.body(2, size=7, _source=["title"], ext={"dedup": ours}, track_total_hits=True)


@pytest.fixture
def expected(library):
    return [[f"2-{rank}" for rank in group] for group in leader_groups(library.lists[2])[:7]]


def test_the_clients_of_opensearch_read_it(url, body, expected):
    from opensearchpy import OpenSearch, Search
    from opensearchpy.helpers.response import Response

    with OpenSearch(url) as client:
        raw = client.search(index="pages", body=body)
        assert _read(raw) == expected
        _attributes(Response(Search(), raw), expected)
        # Their own query builder sends the request and wraps the answer by itself.
        built = Search(using=client, index="pages").update_from_dict(body)
        _attributes(built.execute(), expected)


def test_the_clients_of_elasticsearch_read_it(url, body, expected):
    from elastic_transport import ObjectApiResponse
    from elasticsearch import Elasticsearch
    from elasticsearch.dsl import Search
    from elasticsearch.dsl.response import Response

    with Elasticsearch(url) as client:
        answer = client.perform_request(
            "POST",
            "/pages/_search",
            body=body,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        assert isinstance(answer, ObjectApiResponse)
        assert _read(answer.body) == expected
        _attributes(Response(Search(), answer.body), expected)
        typed = client.search(index="pages", size=7, query=body["query"], sort=body["sort"])
        assert isinstance(typed, ObjectApiResponse)
        assert [hit["_id"] for hit in typed["hits"]["hits"]] == [group[0] for group in expected]


def _read(answer):
    """The ids of each group, the hit shown first, as one reads them out of a collapsed answer."""
    groups = []
    for hit in answer["hits"]["hits"]:
        inner = hit["inner_hits"]["duplicates"]["hits"]
        assert inner["total"] == {"value": len(inner["hits"]), "relation": "eq"}
        assert inner["hits"][0]["_source"] == hit["_source"]
        groups.append([member["_id"] for member in inner["hits"]])
    return groups


def _attributes(response, expected):
    """The same through the attributes of a response class."""
    assert response.success()
    assert response.hits.total.value == 60
    assert [hit.meta.id for hit in response] == [group[0] for group in expected]
    for hit, group in zip(response, expected, strict=True):
        inner = hit.meta.inner_hits.duplicates
        assert inner.hits.total.value == len(group)
        assert [member.meta.id for member in inner] == group
        assert inner[0].title == hit.title


def test_a_javascript_client_reads_it(url, library, body, expected):
    told = json.loads(run_node(JS, "read_collapse.js", url, "pages", json.dumps(body)))
    assert [hit["id"] for hit in told["read"]] == [group[0] for group in expected]
    assert [[member[1] for member in hit["members"]] for hit in told["read"]] == expected
    assert [hit["group"] for hit in told["read"]] == [len(group) for group in expected]
    assert all(hit["members"][0][2] == hit["title"] for hit in told["read"])
    assert told["total"] == {"value": 60, "relation": "eq"}
    plain = library.engine.search("pages", library.body(2))
    assert told["keys"] == sorted(plain)
