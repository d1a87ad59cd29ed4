"""A backfill of an index that others write to."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.maintenance import adds_up, pages, store, stored, wrongly_signed
from support.servers.admin import ask
from support.servers.server import add_alias

from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose

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


def test_an_alias_that_means_another_index_meanwhile_is_begun_anew_with_that(
    engine, server, unsigned, pipeline, tmp_path
):
    first, second = unsigned(COUNT), unsigned(COUNT)
    alias, options = f"{first}-now", replace(ALONE, checkpoint=tmp_path / "checkpoint")
    add_alias(server, alias, first)

    def replaced() -> None:
        point = {"add": {"index": second, "alias": alias}}
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
