"""Regroup an index with forged and damaged fingerprints: they get no group."""

from dataclasses import replace

import pytest
from support.forgeries import GENUINE, SEAL, forgeries
from support.hits import SCHEME

from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.ingest import default_recipe
from shinglefold.ingest.index_mapping import recipe_mappings

LINKAGES = pytest.mark.parametrize("linkage", ["leader", "connected"])


def _index(engine, fields, sealed=""):
    engine.create_index(
        "pages", recipe_mappings(replace(default_recipe(SCHEME), groups=True, sealed=sealed)), {}
    )
    actions = [
        {"_index": "pages", "_id": str(at), "_source": {"dedup": one}} for at, one in enumerate(fields)
    ]
    assert not engine.bulk(actions).failures
    engine.refresh("pages")


def _groups(engine):
    engine.refresh("pages")
    hits = engine.search("pages", {"size": 100})["hits"]["hits"]
    found = {int(hit["_id"]): hit["_source"]["dedup"].get("group") for hit in hits}
    return [found[at] for at in sorted(found)]


@LINKAGES
def test_forged_fingerprints_are_not_changed_and_counted(engine, linkage):
    genuine = SEAL.sealed(GENUINE)
    _index(engine, [one.to_field() for one in (genuine, *forgeries(), genuine)], SEAL.id)
    summary = regroup(engine, "pages", RegroupOptions(linkage), seal=SEAL)
    first, *between, last = _groups(engine)
    assert first is not None
    assert (first, {*between}) == (last, {None})
    assert (summary.settled, summary.counts.left, summary.counts.groups) == (True, len(forgeries()), 1)


@LINKAGES
def test_damaged_fingerprints_are_not_changed_and_counted(engine, linkage):
    whole = GENUINE.to_field()
    damaged = [
        {**whole, "signature": whole["signature"][:16]},
        {**whole, "supershingles": whole["supershingles"][:-1]},
        {**whole, "shingles": -1},
    ]
    _index(engine, [whole, *damaged, whole])
    summary = regroup(engine, "pages", RegroupOptions(linkage))
    first, *between, last = _groups(engine)
    assert first is not None
    assert (first, {*between}) == (last, {None})
    assert (summary.settled, summary.counts.left, summary.counts.groups) == (True, len(damaged), 1)
