"""Statistics and deletion on real servers: counted as they are there, and gone when it says so."""

import json

import pytest
from support.maintenance import pages
from support.servers.server import blocked

from shinglefold.errors import ConfigError
from shinglefold.ingest import index_documents
from shinglefold.maintenance.deletion import delete, plan_deletion
from shinglefold.maintenance.statistics import statistics

pytestmark = pytest.mark.newest


@pytest.fixture
def filled(engine, name, pipeline) -> str:
    short = {"_id": "short", "title": "Да", "body": "нет"}
    assert index_documents(engine, name, [*pages(20), short], pipeline, workers=1).indexed == 21
    return name


def test_documents_signed_ones_languages_and_bytes_are_counted(engine, filled, scheme):
    (found,) = statistics(engine, filled)
    hits = engine.search(filled, {"size": 100})["hits"]["hits"]
    signed = [hit for hit in hits if hit["_source"]["_dedup"].get("signature")]
    assert 10 < len(signed) < len(hits) == 21
    assert (found.documents, found.fingerprints, found.signed) == (21, 21, len(signed))
    assert sum(found.languages.values()) == 21
    assert found.scheme == scheme.id
    assert found.info.size
    assert found.problem == ""


def test_an_index_without_fingerprints_is_counted_too(engine, filled):
    plain = f"{filled}-plain"
    engine.create_index(plain, {"properties": {"host": {"type": "keyword"}}}, {})
    found = {one.info.name: one for one in statistics(engine, f"{filled}*")}
    assert found[plain].documents == 0
    assert (found[plain].recipe, found[plain].problem) == (None, "")


def test_documents_go_by_id_and_by_query_and_the_index_by_its_alias(engine, filled):
    plan = plan_deletion(engine, filled, ["short", "nowhere"])
    assert (plan.documents, plan.missing) == (1, ("nowhere",))
    assert delete(engine, plan).indexed == 1
    found = plan_deletion(engine, filled, query={"match_all": {}})
    assert found.documents == 20
    assert len(found.ids) == 10
    engine.replace_index(f"{filled}-alias", filled)
    whole = plan_deletion(engine, f"{filled}-alias")
    assert (whole.index, whole.aliases, whole.documents) == (filled, (f"{filled}-alias",), 20)
    with pytest.raises(ConfigError, match="name the one"):
        plan_deletion(engine, f"{filled}*")
    delete(engine, whole)
    assert not engine.index_exists(filled)


def _unreadable(server, index: str, how: str) -> str:
    if how == "closed":
        server.ask("POST", f"/{index}/_close")
    elif how == "not to be read":
        server.ask("PUT", f"/{index}/_settings", {"index.blocks.read": True})
    else:
        index = f"{index}-lost"
        nowhere = {"settings": {"index.routing.allocation.require._name": "nowhere"}}
        server.ask("PUT", f"/{index}?wait_for_active_shards=0", nowhere)
    return index


@pytest.mark.parametrize("how", ["closed", "not to be read", "on no node"])
def test_an_index_that_can_not_be_read_goes_as_a_whole(run, engine, server, filled, how):
    index = _unreadable(server, filled, how)
    code, _, err = run("delete", index)
    assert (code, "with an unknown number of documents, as it can't be read" in err) == (2, True)
    assert run("delete", index, "--id", "page-1", "--yes")[0] == 1
    assert engine.index_exists(index)
    code, out, _ = run("delete", index, "--yes", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["whole_index"], told["documents"], told["deleted"]) == (True, None, None)
    assert not engine.index_exists(index)


def test_an_index_that_takes_no_deletion_says_what_keeps_it(run, engine, server, filled):
    with blocked(server, filled, "read_only"):
        code, _, err = run("delete", filled, "--yes")
    assert (code, "Lift the block: set index.blocks" in err) == (1, True)
    assert engine.index_exists(filled)
