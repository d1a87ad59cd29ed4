"""Group numbers wherever documents lie: made anew, collapsed, counted, reported; and copies found."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.hits import SCHEME, fingerprint_of
from support.numbered import USUAL, mappings
from support.random_pages import SPECS
from support.random_pages import alike as alike_of
from support.servers.server import Server
from support.topologies import NAMES, Place, laid_out

from shinglefold.contracts.engine import Engine
from shinglefold.errors import InputError
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.report import make_report
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch

#: Pages of the scheme, as auto mode wants them.
PAGES = [SPECS[number] for number in USUAL]
COUNT = len(PAGES)
ALL = SimilarOptions(size=COUNT)
WHOLE = {"query": {"match_all": {}}, "sort": [{"place": "asc"}]}


def alike(one: int, other: int) -> bool:
    return alike_of(USUAL[one], USUAL[other])


def source(number: int) -> dict[str, Any]:
    spec = PAGES[number]
    made = fingerprint_of(spec).to_field()
    return {"place": number, "host": spec.host or "none", "published": spec.published, "_dedup": made}


#: An older generation has the one with equal ids in several indices.
LAYOUTS = [
    pytest.param(name, marks=() if name == "three_indices" else pytest.mark.newest)
    for name in NAMES
    if name != "replicas"
]


@contextmanager
def filled(topology: str, engine: Engine, server: Server) -> Iterator[Place]:
    made = mappings()
    made["properties"] |= {"place": {"type": "integer"}}
    with laid_out(topology, engine, server, list(map(source, range(COUNT))), made) as found:
        yield found


@pytest.fixture(params=LAYOUTS)
def place(request, engine, server) -> Iterator[Place]:
    with filled(request.param, engine, server) as found:
        yield found


@pytest.fixture(scope="module", params=LAYOUTS)
def grouped(request, engine, server) -> Iterator[Place]:
    with filled(request.param, engine, server) as found:
        assert regroup(engine, found.target, RegroupOptions("connected")).settled
        yield found


def numbers(place: Place) -> list[int]:
    place.engine.refresh(place.target)
    hits = place.engine.search(place.target, {**WHOLE, "size": COUNT})["hits"]["hits"]
    found = {place.number(hit): hit["_source"]["_dedup"]["group"] for hit in hits}
    return [found[number] for number in range(COUNT)]


def folded(place: Place) -> FoldedSearch:
    return FoldedSearch(place.engine, SCHEME, tiebreaker=place.engine.tiebreaker() or "place")


def test_regrouping_numbers_every_document_and_a_second_run_finds_nothing(place):
    before = folded(place).search(place.target, WHOLE, FoldOptions(mode="auto"))["dedup"]
    assert (before["mode"], "no group" in before["mode_reason"]) == ("window", True)
    summary = regroup(place.engine, place.target)
    assert (summary.settled, summary.counts.read, summary.counts.failed) == (True, COUNT, 0)
    groups = numbers(place)
    leads: dict[int, int] = {}
    hits = place.engine.search(place.target, {**WHOLE, "size": COUNT})["hits"]["hits"]
    for hit in hits:
        if hit["_source"]["_dedup"]["leader"]:
            assert leads.setdefault(hit["_source"]["_dedup"]["group"], place.number(hit)) == place.number(hit)
    for number, group in enumerate(groups):
        assert number == leads[group] or alike(number, leads[group])
    several = list(leads.values())
    assert not any(alike(one, other) for one in several for other in several if one < other)
    again = regroup(place.engine, place.target)
    assert (again.counts.planned, again.passes) == (0, 1)


@pytest.mark.parametrize("members", [0, 2])
def test_native_pages_show_each_group_once_with_its_documents_counted(grouped, members):
    groups, search = numbers(grouped), folded(grouped)
    firsts = list(dict.fromkeys(groups))
    shown = []
    for start in range(0, len(firsts), 40):
        body = {**WHOLE, "from": start, "size": 40, "aggs": {"hosts": {"terms": {"field": "host"}}}}
        told = search.search(grouped.target, body, FoldOptions(mode="auto", members=members, facets="groups"))
        assert told["dedup"]["mode"] == "native", told["dedup"]
        assert told["dedup"]["groups_total"]["value"] == len(firsts)
        assert told["hits"]["total"]["value"] == COUNT
        for bucket in told["aggregations"]["hosts"]["buckets"]:
            own = {groups[at] for at in range(COUNT) if (PAGES[at].host or "none") == bucket["key"]}
            assert bucket["groups"]["value"] == len(own)
        shown += told["hits"]["hits"]
    assert [groups[grouped.number(hit)] for hit in shown] == firsts
    for hit in shown:
        own = [at for at in range(COUNT) if groups[at] == groups[grouped.number(hit)]]
        listed = hit["inner_hits"]["duplicates"]["hits"]
        assert listed["total"] == {"value": len(own), "relation": "eq"}
        assert [grouped.number(one) for one in listed["hits"]] == own[: members + 1]


def test_a_document_without_a_group_sends_the_page_to_a_window(place):
    assert regroup(place.engine, place.target, RegroupOptions("connected")).settled
    groups, search = numbers(place), folded(place)
    assert search.search(place.target, WHOLE, FoldOptions(mode="auto"))["dedup"]["mode"] == "native"
    late = [number for number in range(COUNT) if groups.count(groups[number]) == 1][:4]
    if place.appends_only:
        new = {"_op_type": "create", "_index": place.target}
        actions = [{**new, "_id": f"late{at}", "_source": place.documents[at]} for at in late]
    else:
        actions = [place.action(number) for number in late]
    assert not place.engine.bulk(actions).failures
    place.engine.refresh(place.target)
    for body in (WHOLE, {**WHOLE, "from": COUNT - 40, "size": 40}):
        told = search.search(place.target, body, FoldOptions(mode="auto"))["dedup"]
        assert (told["mode"], "no group" in told["mode_reason"]) == ("window", True)


def test_copies_are_found_of_each_document_and_attached_to_pages(grouped):
    search = SimilarSearch(grouped.engine)
    rich = max(range(COUNT), key=lambda number: sum(alike(number, other) for other in range(COUNT)))
    own = {other for other in range(COUNT) if other != rich and alike(rich, other)}
    identity = grouped.identities[rich]
    if not identity.routing:
        found = search.find(grouped.target, (identity.index, identity.id), ALL)
        assert {grouped.number(one.hit) for one in found.matches} == own
        assert (found.total, found.exact) == (len(own), True)
    else:
        with pytest.raises(InputError, match="routing"):
            search.find(grouped.target, (identity.index, identity.id), ALL)
    every = search.find(grouped.target, fingerprint_of(PAGES[rich]), ALL)
    assert {grouped.number(one.hit) for one in every.matches} == own | {rich}
    for window in (1, 7):
        options = SimilarOptions(size=9, window=window, max_window=20)
        pages = search.pages(grouped.target, fingerprint_of(PAGES[rich]), options)
        found = [grouped.number(one.hit) for page in pages for one in page.matches]
        assert sorted(found) == sorted(own | {rich})
    body = {"query": {"terms": {"place": [rich]}}, "size": 5}
    options = FoldOptions(members=COUNT, members_from="index")
    (hit,) = folded(grouped).search(grouped.target, body, options)["hits"]["hits"]
    listed = hit["inner_hits"]["duplicates"]["hits"]["hits"]
    assert {grouped.number(one) for one in listed} == own | {rich}


def test_a_report_counts_what_is_shown_under_the_name(grouped):
    groups = numbers(grouped)
    made = make_report(grouped.engine, grouped.target)
    assert (made.documents, made.without_group) == (COUNT, 0)
    assert (made.groups, made.copies) == (len(set(groups)), COUNT - len(set(groups)))
    assert sum(one.documents for one in made.hosts) == COUNT
