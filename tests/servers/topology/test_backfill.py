"""A backfill signs every document, however documents are laid out, and keeps what others write meanwhile."""

import random
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread

import pytest
from support.maintenance import adds_up, mapped, pages, wrongly_signed
from support.topologies import NAMES, Identity, Place, laid_out, ranked

from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose

pytestmark = pytest.mark.newest

ALONE = BackfillOptions(workers=1)
COUNT = 600


@pytest.fixture(params=NAMES)
def place(request, engine, server, scheme) -> Iterator[Place]:
    with laid_out(request.param, engine, server, ranked(pages(COUNT)), mapped(scheme)) as laid:
        yield laid


def sources(place: Place) -> dict[Identity, dict]:
    place.engine.refresh(place.target)
    hits = place.engine.search(place.target, {"size": 10_000})["hits"]["hits"]
    return {Identity(hit["_index"], hit["_id"], hit.get("_routing", "")): hit["_source"] for hit in hits}


def test_every_document_is_signed_once(place, pipeline):
    summary = backfill(place.engine, place.target, pipeline, ALONE)
    assert (summary.counts.read, summary.counts.updated, summary.remaining) == (COUNT, COUNT, 0)
    assert (summary.counts.conflicts, summary.stopped) == (0, "")
    found = sources(place)
    assert found.keys() == set(place.identities)
    assert not list(wrongly_signed(found, pipeline.tools.fingerprinter))
    for number, identity in enumerate(place.identities):
        assert {**place.documents[number], "_dedup": found[identity]["_dedup"]} == found[identity]
    assert backfill(place.engine, place.target, pipeline, ALONE).counts.unchanged == COUNT
    assert diagnose(place.engine, place.target, pipeline, DoctorOptions(workers=1)).findings == {
        "sound": COUNT
    }


class Others:
    """Clients that edit and delete documents until told to stop; no two of them touch the same one."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.chance = place, random.Random(seed)
        self.edited: dict[int, str] = {}
        self.deleted: set[int] = set()
        self.failures: list[object] = []
        self.end = Event()
        self.thread = Thread(target=self._work)

    def __enter__(self) -> "Others":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.thread.join()

    def _work(self) -> None:
        bodies = [page["body"] for page in pages(COUNT, seed=2)]
        order = self.chance.sample(range(COUNT), COUNT)
        for number in order[: COUNT // 2]:
            if self.end.wait(self.chance.random() / 100):
                return
            if number % 7 == 0:
                self.deleted.add(number)
                action = self.place.action(number, _op_type="delete")
            else:
                self.edited[number] = bodies[number]
                action = self.place.action(number, _op_type="update", doc={"body": bodies[number]})
            self.failures += self._written(action)

    def _written(self, action: dict) -> list:
        """Run an action, again where the backfill wrote in between, and return what failed otherwise."""
        while True:
            failures = self.place.engine.bulk([action]).failures
            if not any(one.status == 409 for one in failures):
                return failures


def test_what_others_write_meanwhile_stays_and_is_signed(place, pipeline):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    with Others(place, seed) as others:
        summary = backfill(place.engine, place.target, pipeline, replace(ALONE, requests_per_second=300))
    assert not others.failures
    assert adds_up(summary.counts)
    assert summary.stopped == ""
    assert summary.remaining == 0
    found = sources(place)
    kept = [number for number in range(COUNT) if number not in others.deleted]
    assert found.keys() == {place.identities[number] for number in kept}
    for number in kept:
        body = others.edited.get(number, place.documents[number]["body"])
        assert found[place.identities[number]]["body"] == body
    edited = {place.identities[number] for number in others.edited}
    stale = set(wrongly_signed(found, pipeline.tools.fingerprinter))
    # Signed before they were edited: told by a check-up, mended by a second run.
    assert stale <= edited
    told = diagnose(place.engine, place.target, pipeline, DoctorOptions(workers=1))
    assert (told.findings.get("stale", 0), told.documents) == (len(stale), len(kept))
    assert backfill(place.engine, place.target, pipeline, ALONE).counts.updated == len(stale)
    assert not list(wrongly_signed(sources(place), pipeline.tools.fingerprinter))
