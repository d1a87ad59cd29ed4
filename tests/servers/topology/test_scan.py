"""A scan meets every document once, however documents are laid out and whoever writes meanwhile."""

import random
from itertools import chain

import pytest
from support.maintenance import FIELDS, pages
from support.topologies import NAMES, Place, laid_out, ranked

from shinglefold.errors import ConfigError
from shinglefold.maintenance.scan import Scan, Slice

COUNT = 300


@pytest.fixture(autouse=True)
def short_pages(monkeypatch):
    """Many pages a scan: an order that is not total loses documents where one ends."""
    monkeypatch.setattr("shinglefold.maintenance.scan._FIRST", 7)
    monkeypatch.setattr("shinglefold.maintenance.scan._next_size", lambda _: 11)


@pytest.fixture(scope="module", params=NAMES)
def place(request, engine, server):
    with laid_out(request.param, engine, server, ranked(pages(COUNT)), {"properties": FIELDS}) as laid:
        yield laid


@pytest.fixture(params=NAMES)
def changing(request, engine, server):
    with laid_out(request.param, engine, server, ranked(pages(COUNT)), {"properties": FIELDS}) as laid:
        yield laid


def disturb(place: Place, chance: random.Random) -> None:
    """Change a document, delete one and add one, as other clients do all the time."""
    changed, deleted, like = (chance.randrange(COUNT) for _ in range(3))
    identity = place.identities[like]
    new = {"_index": identity.index, "_id": f"new{chance.random()}", "_source": place.documents[like]}
    if identity.routing:
        new["_routing"] = identity.routing
    if place.appends_only:
        new |= {"_index": place.target, "_op_type": "create"}
    else:
        place.engine.bulk([place.action(changed)])
    place.engine.bulk([place.action(deleted, _op_type="delete"), new])
    place.engine.refresh(place.target)


def test_every_document_is_met_once_while_others_write(changing):
    chance = random.Random(seed := random.randrange(10**6))
    print(f"seed {seed}")
    scan = Scan(changing.engine, changing.target)
    start = scan.start()
    met = []
    for page in scan.pages(start):
        met += map(changing.number, page.hits)
        if chance.random() < 0.3:
            disturb(changing, chance)
    assert sorted(met) == list(range(COUNT))
    assert scan.total(start) == COUNT
    scan.close(start)


def test_a_place_leads_to_the_rest(place):
    scan = Scan(place.engine, place.target)
    start = scan.start()
    met = list(scan.pages(start))
    numbers = [[place.number(hit) for hit in page.hits] for page in met]
    for number in range(0, len(met), 5):
        rest = [place.number(hit) for page in scan.pages(met[number].place) for hit in page.hits]
        assert rest == list(chain.from_iterable(numbers[number + 1 :]))
    scan.close(start)


@pytest.mark.parametrize("of", [2, 3, 7])
def test_parts_are_the_whole_without_overlap(place, of):
    shards = sum(int(place.engine.search(index, {"size": 0})["_shards"]["total"]) for index in place.indices)
    if of > shards and place.engine.can.slices == "shards":
        with pytest.raises(ConfigError, match="allows no more parts than that"):
            part(place, Slice(1, of))
        return
    met = [number for slice_ in range(1, of + 1) for number in part(place, Slice(slice_, of))]
    assert sorted(met) == list(range(COUNT))


def part(place: Place, share: Slice) -> list[int]:
    scan = Scan(place.engine, place.target, part=share)
    start = scan.start()
    try:
        met = [place.number(hit) for page in scan.pages(start) for hit in page.hits]
        assert scan.total(start) == len(met)
        return met
    finally:
        scan.close(start)
