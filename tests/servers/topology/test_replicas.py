"""Shards with copies on other nodes: which copy answers makes no difference to pages, cursors and scans."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from support.maintenance import mapped, pages, wrongly_signed
from support.servers.lines import line
from support.topologies import Identity, laid_out, ranked
from support.trials import documents, properties, run_trials, specs, walk_disturbed

from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, open_engine
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.scan import Scan

TRIALS, WALKS = 60, 10
COUNT = 600
ALONE = BackfillOptions(workers=1)


@pytest.fixture
def engine(cluster) -> Iterator[Engine]:
    """An engine that asks all three nodes in turn, and so whichever copy is near."""
    cluster.wait_until_whole()
    with closing(open_engine(Connection(cluster.urls))) as engine:
        yield engine


def test_pages_and_cursors_show_what_the_complete_list_folds_to(engine, cluster, report, first):
    with laid_out("replicas", engine, cluster, documents(specs(first)), properties()) as place:
        run_trials(engine, place, first, TRIALS)
        report.append(line(TRIALS, "replicas of the cluster", first))


def test_while_others_write_and_delete_no_group_comes_twice(engine, cluster, first):
    made = specs(first)
    with laid_out("replicas", engine, cluster, documents(made), properties()) as place:
        walk_disturbed(engine, place, made, first, WALKS)


def test_a_backfill_and_a_check_up_meet_every_document_of_either_copy(engine, cluster, scheme, pipeline):
    with laid_out("replicas", engine, cluster, ranked(pages(COUNT)), mapped(scheme)) as place:
        summary = backfill(engine, place.target, pipeline, ALONE)
        assert (summary.counts.updated, summary.remaining, summary.stopped) == (COUNT, 0, "")
        assert diagnose(engine, place.target, pipeline, DoctorOptions(workers=1)).findings == {"sound": COUNT}
        for preference in ("_primary", "_replica"):
            body = {"size": COUNT, "query": {"match_all": {}}}
            hits = engine.search(place.target, body, {"preference": preference})["hits"]["hits"]
            found = {Identity(hit["_index"], hit["_id"]): hit["_source"] for hit in hits}
            assert found.keys() == set(place.identities)
            assert not list(wrongly_signed(found, pipeline.tools.fingerprinter))
        scan = Scan(engine, place.target)
        start = scan.start()
        met = [place.number(hit) for page in scan.pages(start) for hit in page.hits]
        scan.close(start)
        assert sorted(met) == list(range(COUNT))


def test_a_scan_sees_what_was_written_where_replicas_copy_segments(engine, cluster):
    """A replica takes segments over after a refresh; what must meet all documents does not ask it."""
    settings = {"index.replication.type": "SEGMENT", "index.refresh_interval": "-1"}
    with laid_out("replicas", engine, cluster, ranked(pages(5)), None, settings) as place:
        for number in range(5, 60, 5):
            made = [{"_index": place.target, "_id": f"n{number}-{at}", "_source": {}} for at in range(5)]
            assert not engine.bulk(made).failures
            engine.refresh(place.target)
            scan = Scan(engine, place.target)
            start = scan.start()
            assert (number, scan.total(start)) == (number, number + 5)
            scan.close(start)
        deleted = engine.delete_by_query(place.target, {"match_all": {}})
        assert (deleted.indexed, deleted.failures) == (60, ())
