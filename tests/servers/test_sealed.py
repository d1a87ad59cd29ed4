"""A sealed index on real servers: forgeries are shown one by one and counted, whatever reads them."""

from dataclasses import replace

import pytest
from support.hits import GENUINE, OTHER, SCHEME, SEAL, forgeries
from support.maintenance import FIELDS, pages, put, store, stored

from shinglefold.errors import ConfigError, RecipeMismatch
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.maintenance import backfill, diagnose
from shinglefold.rerank import FoldedSearch

pytestmark = pytest.mark.newest

LIST = {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "size": 50}


def folded(engine, scheme=SCHEME, seal=SEAL):
    return FoldedSearch(engine, scheme, tiebreaker=engine.tiebreaker() or "rank", seal=seal)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("options", [{}, {"cursor": True}, {"explain": True}, {"window": 3}])
def test_forgeries_are_never_compared(engine, new_index, shards, options):
    made = recipe_mappings(replace(default_recipe(SCHEME), sealed=SEAL.id))
    made["properties"] |= {"rank": {"type": "integer"}}
    index = new_index(made, {"number_of_shards": shards, "number_of_replicas": 0})
    written = [SEAL.sealed(GENUINE), *forgeries(), SEAL.sealed(GENUINE)]
    put(engine, index, {f"{at}": {"rank": at, "_dedup": one.to_field()} for at, one in enumerate(written)})

    answer = folded(engine).search(index, {**LIST, "ext": {"dedup": options}})
    shown = [hit["_id"] for hit in answer["hits"]["hits"]]
    assert shown == [str(rank) for rank in range(len(written) - 1)]
    assert answer["dedup"]["unreadable"] == len(forgeries())
    for seal in (None, OTHER):
        told = folded(engine, seal=seal).search(index, {**LIST, "ext": {"dedup": options}})["dedup"]
        assert "SHINGLEFOLD_SEAL_KEY" in told["mode_reason"]
        with pytest.raises(ConfigError, match="SHINGLEFOLD_SEAL_KEY"):
            folded(engine, seal=seal).search(index, {**LIST, "ext": {"dedup": {"on_trouble": "raise"}}})


def test_doctor_finds_and_backfill_mends_what_lacks_the_seal(engine, new_index, scheme):
    pipeline = Pipeline.from_json(default_definition(), scheme, seal=SEAL)
    made = recipe_mappings(pipeline.recipe())
    made["properties"] |= FIELDS
    index = new_index(made)
    documents = pages(40)
    assert index_documents(engine, index, documents, pipeline, workers=2).indexed == len(documents)
    genuine = {id_: source["_dedup"] for id_, source in stored(engine, index).items()}
    assert diagnose(engine, index, pipeline).findings == {"sound": 40}

    # One document takes another one's signature, and one comes without fingerprint at all.
    spoilt = {**genuine["page-1"], "signature": genuine["page-2"]["signature"]}
    store(engine, index, [{**documents[1], "_dedup": spoilt}, documents[3]])
    assert diagnose(engine, index, pipeline).findings == {
        "sound": 38,
        "unsealed": 1,
        "without_fingerprint": 1,
    }
    search = folded(engine, scheme).search(index, {"query": {"match_all": {}}, "size": 40})
    assert search["dedup"]["unreadable"] == 1

    bare = Pipeline.from_json(default_definition(), scheme)
    with pytest.raises(RecipeMismatch, match="seal"):
        backfill(engine, index, bare)
    assert backfill(engine, index, pipeline).counts.updated == 2
    assert {id_: source["_dedup"] for id_, source in stored(engine, index).items()} == genuine
