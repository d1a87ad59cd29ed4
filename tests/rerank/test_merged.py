"""Hits merged from several searches and several indices, and hits ranked by anything but one score."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, fingerprint_of, hits_of, leader_groups, specs, split
from support.servers.choose import examples

from shinglefold.contracts.engine import Capabilities
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
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
        made = mappings(SCHEME)
        made["properties"] |= {"title": {"type": "text"}, "rank": {"type": "integer"}}
        rng = random.Random(3)
        for index in ("news", "archive"):
            engine.create_index(index, made, {})
            numbers = rng.sample(range(20), 20)
            engine.bulk(
                {
                    "_index": index,
                    "_id": str(place),
                    "_source": {
                        "title": f"story {number}",
                        "rank": number,
                        "_dedup": fingerprint_of(Spec(original=number)).to_field(),
                    },
                }
                for place, number in enumerate(numbers)
            )
            engine.refresh(index)
        yield engine


class Merged:
    """Searches each index of a list with commas and merges the answers by rank, as the servers do."""

    can = Capabilities()

    def __init__(self, engine):
        self.engine = engine

    def all_mappings(self, index):
        return self.engine.all_mappings(index)

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
