"""A backfill of an index that others write to."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.maintenance import adds_up, pages, store, stored, wrongly_signed
from support.servers.admin import ask

from shinglefold.errors import ConfigError
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.scan import Slice

pytestmark = pytest.mark.newest

ALONE = BackfillOptions(workers=1)
COUNT = 400


def once(work: Callable[[], None]) -> Callable[[object], None]:
    """Do something after the first page was settled, while the next ones are as they were."""
    done = []

    def report(_: object) -> None:
        if not done:
            done.append(1)
            work()

    return report


def test_every_document_of_every_shard_is_signed_once(engine, unsigned, pipeline):
    index = unsigned(COUNT)
    summary = backfill(engine, index, pipeline, BackfillOptions(workers=2))
    assert (summary.counts.read, summary.counts.updated, summary.remaining) == (COUNT, COUNT, 0)
    assert (summary.counts.conflicts, summary.stopped) == (0, "")
    assert not list(wrongly_signed(stored(engine, index), pipeline.tools.fingerprinter))
    again = backfill(engine, index, pipeline, ALONE)
    assert (again.counts.unchanged, again.counts.updated) == (COUNT, 0)


def test_an_alias_that_means_another_index_meanwhile_is_begun_anew_with_that(
    engine, server, unsigned, pipeline, tmp_path
):
    first, second = unsigned(COUNT), unsigned(COUNT)
    alias, options = f"{first}-now", replace(ALONE, checkpoint=tmp_path / "checkpoint")
    point = {"add": {"index": first, "alias": alias}}
    ask(server.url, "POST", "/_aliases", {"actions": [point]})

    def replaced() -> None:
        point["add"]["index"] = second
        ask(server.url, "POST", "/_aliases", {"actions": [point, {"remove_index": {"index": first}}]})

    cut = backfill(engine, alias, pipeline, options, once(replaced))
    # Where a point in time outlives its index, updates tell; else the next reading is of the other index.
    if cut.stopped:
        assert cut.anew
        assert first in cut.stopped
        assert not (tmp_path / "checkpoint").exists()
        cut = backfill(engine, alias, pipeline, options)
        assert not cut.resumed
    assert (cut.stopped, cut.remaining) == ("", 0)
    assert not list(wrongly_signed(stored(engine, second), pipeline.tools.fingerprinter))


def test_edits_made_meanwhile_stay_and_are_signed(engine, server, unsigned, pipeline):
    index = unsigned(COUNT)
    edited = {page["id"]: page["body"] for page in pages(COUNT, seed=2)}

    def edit() -> None:
        # As any other client would: a part of the document, unguarded, without the fingerprint.
        for id_, body in list(edited.items())[::4]:
            ask(server.url, "POST", f"/{index}/_update/{id_}", {"doc": {"body": body}})
        ask(server.url, "DELETE", f"/{index}/_doc/page-1")
        ask(server.url, "DELETE", f"/{index}/_doc/page-{COUNT - 3}")

    summary = backfill(engine, index, pipeline, ALONE, once(edit))
    counts = summary.counts
    assert adds_up(counts)
    # Those on the first page were signed before they were edited or deleted; the others are met as changed.
    assert set(counts.changed) <= set(list(edited)[::4])
    assert 0 < len(counts.changed) == counts.conflicts
    assert counts.gone <= 2
    found = stored(engine, index)
    assert len(found) == COUNT - 2
    assert all(found[id_]["body"] == body for id_, body in list(edited.items())[::4])
    stale = set(wrongly_signed(found, pipeline.tools.fingerprinter))
    assert stale == set(list(edited)[::4]) - set(counts.changed)
    assert summary.remaining == 0


def test_what_was_edited_after_it_was_signed_is_found_by_a_check_up_and_mended(
    engine, server, unsigned, pipeline
):
    index = unsigned(20)
    backfill(engine, index, pipeline, ALONE)
    body = pages(1, seed=2)[0]["body"]
    ask(server.url, "POST", f"/{index}/_update/page-3?refresh=true", {"doc": {"body": body}})
    ask(server.url, "POST", f"/{index}/_update/page-4?refresh=true", {"doc": {"views": 1}})
    found = diagnose(engine, index, pipeline, DoctorOptions(workers=1))
    assert (found.listed, found.findings) == ({"stale": ["page-3"]}, {"sound": 19, "stale": 1})
    assert backfill(engine, index, pipeline, ALONE).counts.updated == 1
    assert diagnose(engine, index, pipeline, DoctorOptions(workers=1)).healthy


def test_documents_added_meanwhile_are_signed_too(engine, unsigned, pipeline):
    index = unsigned(COUNT)
    late = [{**page, "id": f"late-{page['id']}"} for page in pages(10, seed=3)]
    summary = backfill(engine, index, pipeline, ALONE, once(lambda: store(engine, index, late)))
    assert (summary.counts.updated, summary.remaining) == (COUNT + 10, 0)


@pytest.mark.parametrize("of", [2, 3, 5])
def test_parts_are_the_whole_without_overlap(engine, unsigned, pipeline, of):
    index = unsigned(60)
    if of > 3 and engine.info()["distribution"] == "elasticsearch":
        with pytest.raises(ConfigError, match="has 3 shards"):
            backfill(engine, index, pipeline, replace(ALONE, part=Slice(1, of)))
        return
    parts = [
        backfill(engine, index, pipeline, replace(ALONE, part=Slice(number, of))).counts.updated
        for number in range(1, of + 1)
    ]
    assert sum(parts) == 60
    assert sum(count > 0 for count in parts) > 1
    assert not list(wrongly_signed(stored(engine, index), pipeline.tools.fingerprinter))


def test_one_that_was_cut_short_goes_on(engine, unsigned, pipeline, tmp_path):
    index = unsigned(COUNT)
    options = replace(ALONE, checkpoint=tmp_path / "checkpoint.json")

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    first = backfill(engine, index, pipeline, options, interrupt)
    assert (first.stopped, first.counts.read + first.remaining) == ("interrupted", COUNT)
    second = backfill(engine, index, pipeline, options)
    assert second.resumed
    assert (second.counts.read, second.counts.updated, second.counts.earlier) == (COUNT, COUNT, 0)
    assert second.counts.conflicts == 0


def test_documents_with_a_routing_stay_where_they_are(engine, server, unsigned, pipeline):
    index = unsigned(1)
    for number, page in enumerate(pages(20, seed=4)):
        ask(server.url, "PUT", f"/{index}/_doc/routed-{number}?routing=r{number % 5}&refresh=true", page)
    summary = backfill(engine, index, pipeline, ALONE)
    assert (summary.counts.updated, summary.remaining) == (21, 0)
    assert len(stored(engine, index)) == 21


def test_an_alias_is_scanned_over_all_its_indices(engine, server, unsigned, pipeline):
    indices = [unsigned(30), unsigned(20)]
    actions = [{"add": {"index": index, "alias": "shinglefold-test-all"}} for index in indices]
    ask(server.url, "POST", "/_aliases", {"actions": actions})
    summary = backfill(engine, "shinglefold-test-all", pipeline, ALONE)
    assert (summary.counts.updated, summary.remaining) == (50, 0)
