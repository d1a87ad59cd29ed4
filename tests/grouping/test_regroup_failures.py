"""Regrouping with unreadable fingerprints, other writers of an embedded index, and killed runs."""

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.forgeries import GENUINE, SEAL, forgeries
from support.hits import SCHEME, fingerprint_of
from support.killed_regroup import checkpoint, killed, moments
from support.numbered import USUAL, led_rightly, mappings, store, stored
from support.random_pages import COUNT, SPECS

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.regroup import RegroupOptions, plan, regroup
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings

LINKAGES = pytest.mark.parametrize("linkage", ["leader", "connected"])


def _index(engine, fields, sealed=""):
    engine.create_index(
        "pages", recipe_mappings(replace(default_recipe(SCHEME), groups=True, sealed=sealed)), {}
    )
    actions = [
        {"_index": "pages", "_id": str(at), "_source": {"_dedup": one}} for at, one in enumerate(fields)
    ]
    assert not engine.bulk(actions).failures
    engine.refresh("pages")


def _groups(engine):
    engine.refresh("pages")
    hits = engine.search("pages", {"size": 100})["hits"]["hits"]
    found = {int(hit["_id"]): hit["_source"]["_dedup"].get("group") for hit in hits}
    return [found[at] for at in sorted(found)]


@LINKAGES
def test_forged_fingerprints_are_not_changed_and_counted(engine, linkage):
    genuine = SEAL.sealed(GENUINE)
    _index(engine, [one.to_field() for one in (genuine, *forgeries(), genuine)], SEAL.id)
    summary = regroup(engine, "pages", RegroupOptions(linkage), seal=SEAL)
    first, *between, last = _groups(engine)
    assert first is not None
    assert (first, {*between}) == (last, {None})
    assert (summary.settled, summary.counts.without_fingerprint, summary.counts.groups) == (
        True,
        len(forgeries()),
        1,
    )


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
    assert (summary.settled, summary.counts.without_fingerprint, summary.counts.groups) == (
        True,
        len(damaged),
        1,
    )


def test_other_writers_are_locked_out_during_a_batch_only(engine, pipeline, monkeypatch):
    engine.create_index("pages", mappings(), {})
    store(engine, "pages", USUAL)
    engine.close()
    late = {"host": "late", "_dedup": fingerprint_of(SPECS[USUAL[0]]).to_field()}
    action = {"_index": "pages", "_id": f"p{USUAL[0]}", "_source": late}
    read_again, refused = plan.reread, []

    def read(*given):
        hits = list(read_again(*given))
        with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as other:
            with pytest.raises(EngineUnavailable):
                other.bulk([action])
            refused.append(len(hits))
        return hits

    monkeypatch.setattr(plan, "reread", read)
    with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as own:
        assert regroup(own, "pages").settled
        assert refused == [len(USUAL)]
        assert led_rightly(stored(own, "pages"))
        with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as other:
            assert not other.bulk([action]).failures


def opened(folder: Path) -> EmbeddedEngine:
    """Return an engine for pages without searchable text."""
    return EmbeddedEngine(folder, lambda _: [])


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_a_killed_regrouping_ends_with_the_same_result(tmp_path: Path, seed):
    for name in ("calm", "killed"):
        with closing(opened(tmp_path / name)) as engine:
            engine.create_index("pages", mappings(), {})
            store(engine, "pages", range(COUNT))
    with closing(opened(tmp_path / "calm")) as engine:
        regroup(engine, "pages")
        calm = stored(engine, "pages")
    options, resumed = checkpoint(tmp_path), 0
    for moment in moments(seed):
        assert killed(partial(opened, tmp_path / "killed"), "pages", options, moment, seed)
        resumed += (tmp_path / "kept.json").exists()
    assert resumed > 0
    with closing(opened(tmp_path / "killed")) as engine:
        summary = regroup(engine, "pages", options)
        assert (summary.settled, summary.resumed) == (True, True)
        found = stored(engine, "pages")
    assert found == calm
    assert led_rightly(found)
