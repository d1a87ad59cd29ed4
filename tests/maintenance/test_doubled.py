"""A document that somebody gave a second fingerprint beside ours: found, and healed."""

from support.maintenance import FIELDS, pages, store, stored, wrongly_signed

from shinglefold.ingest import default_recipe, ensure_index
from shinglefold.maintenance import BackfillOptions, backfill, diagnose


def test_it_is_found_by_the_doctor_and_healed_by_a_backfill(engine, pipeline, scheme, tmp_path):
    ensure_index(engine, "pages", default_recipe(scheme), properties=FIELDS)
    store(engine, "pages", pages(5))
    options = BackfillOptions(workers=1, checkpoint=tmp_path / "checkpoint.json")
    backfill(engine, "pages", pipeline, options)
    assert diagnose(engine, "pages", pipeline).findings == {"sound": 5}
    one, other = list(stored(engine, "pages"))[:2]
    sources = stored(engine, "pages")
    forged = {**sources[one], "dedup.digest": sources[other]["dedup"]["digest"]}
    engine.bulk([{"_index": "pages", "_id": one, "_source": forged}])
    engine.refresh("pages")
    found = diagnose(engine, "pages", pipeline)
    assert (found.findings, found.healthy) == ({"sound": 4, "damaged": 1}, False)
    assert backfill(engine, "pages", pipeline, options).counts.updated == 1
    assert diagnose(engine, "pages", pipeline).findings == {"sound": 5}
    assert not list(wrongly_signed(stored(engine, "pages"), pipeline.tools.fingerprinter))
    assert all("dedup.digest" not in source for source in stored(engine, "pages").values())
