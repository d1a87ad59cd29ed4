"""Regrouping with unreadable fingerprints, other writers of an embedded index, and killed runs."""

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.hits import GENUINE, SCHEME, SEAL, fill, fingerprint_of, forgeries
from support.killed_regroup import checkpoint, killed, moments
from support.maintenance import stored as sources
from support.numbered import USUAL, led_rightly, mappings, store, stored
from support.random_pages import COUNT, SPECS

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.regroup import RegroupOptions, plan, regroup
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings

LINKAGES = pytest.mark.parametrize("linkage", ["leader", "connected"])


def _index(engine, fields, sealed=""):
    recipe = replace(default_recipe(SCHEME), groups=True, sealed=sealed)
    fill(
        engine, "pages", {f"{at}": {"_dedup": one} for at, one in enumerate(fields)}, recipe_mappings(recipe)
    )


WHOLE = GENUINE.to_field()
DAMAGED = [
    {**WHOLE, "signature": WHOLE["signature"][:16]},
    {**WHOLE, "supershingles": WHOLE["supershingles"][:-1]},
    {**WHOLE, "shingles": -1},
]
FORGED = [one.to_field() for one in forgeries()]


@LINKAGES
@pytest.mark.parametrize(
    ("genuine", "others", "seal"),
    [(SEAL.sealed(GENUINE).to_field(), FORGED, SEAL), (WHOLE, DAMAGED, None)],
    ids=["forged", "damaged"],
)
def test_unreadable_fingerprints_are_not_changed_and_counted(engine, linkage, genuine, others, seal):
    _index(engine, [genuine, *others, genuine], seal.id if seal else "")
    summary = regroup(engine, "pages", RegroupOptions(linkage), seal=seal)
    found = {int(id_): source["_dedup"].get("group") for id_, source in sources(engine, "pages").items()}
    first, *between, last = (found[at] for at in sorted(found))
    assert first is not None
    assert (first, {*between}) == (last, {None})
    counts = summary.counts
    assert (summary.settled, counts.without_fingerprint, counts.groups) == (True, len(others), 1)


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


@pytest.mark.long
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
