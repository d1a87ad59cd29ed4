"""Regroup an embedded index, which has no versions: no other process writes between a read and a write."""

import pytest
from support.hits import fingerprint_of
from support.numbered import USUAL, led_rightly, mappings, store, stored
from support.random_pages import SPECS

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.regroup import plan, regroup


def test_other_writers_are_locked_out_during_a_batch_only(engine, pipeline, monkeypatch):
    engine.create_index("pages", mappings(), {})
    store(engine, "pages", USUAL)
    engine.close()
    late = {"host": "late", "dedup": fingerprint_of(SPECS[USUAL[0]]).to_field()}
    action = {"_index": "pages", "_id": f"p{USUAL[0]}", "_source": late}
    read_again, refused = plan.read_again, []

    def read(*given):
        hits = list(read_again(*given))
        with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as other:
            with pytest.raises(EngineUnavailable):
                other.bulk([action])
            refused.append(len(hits))
        return hits

    monkeypatch.setattr(plan, "read_again", read)
    with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as own:
        assert regroup(own, "pages").settled
        assert refused == [len(USUAL)]
        assert led_rightly(stored(own, "pages"))
        with EmbeddedEngine(engine.path, pipeline.tools.canonicalizer) as other:
            assert not other.bulk([action]).failures
