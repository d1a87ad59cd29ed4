"""A backfill that was cut short goes on where it was."""

from pathlib import Path

import pytest
from support.maintenance import FIELDS, adds_up, pages, store, stored, wrongly_signed
from support.taps import Tapped

from shinglefold.errors import ConfigError
from shinglefold.ingest import default_recipe, ensure_index
from shinglefold.maintenance import BackfillOptions, backfill

COUNT = 1_500


@pytest.fixture
def many(engine, scheme) -> str:
    ensure_index(engine, "pages", default_recipe(scheme), properties=FIELDS)
    store(engine, "pages", pages(COUNT))
    return "pages"


def interrupt(progress) -> None:
    if progress.read >= 100:
        raise KeyboardInterrupt


@pytest.fixture
def options(tmp_path: Path) -> BackfillOptions:
    return BackfillOptions(workers=1, checkpoint=tmp_path / "checkpoint.json")


def test_it_goes_on_where_it_was(engine, many, pipeline, options):
    first = backfill(engine, many, pipeline, options, interrupt)
    assert (first.stopped, first.counts.read, first.remaining) == ("interrupted", 100, COUNT - 100)
    tapped = Tapped(engine)
    second = backfill(tapped, many, pipeline, options)
    assert second.resumed
    assert (second.counts.read, second.counts.updated, second.remaining) == (COUNT, COUNT, 0)
    read_again = [search for search in tapped.searches if search.get("size", 0) > 1]
    assert all("search_after" in search for search in read_again[:2])
    assert not Path(options.checkpoint).exists()


def test_without_its_point_in_time_it_begins_anew_and_writes_nothing_twice(engine, many, pipeline, options):
    backfill(engine, many, pipeline, options, interrupt)
    engine._pits.clear()
    second = backfill(engine, many, pipeline, options)
    assert second.counts.earlier == second.counts.unchanged == 100
    assert (second.counts.read, second.counts.updated) == (COUNT, COUNT - 100)
    assert adds_up(second.counts)


def test_a_point_in_time_lost_on_the_way_is_replaced(engine, many, pipeline, options):
    seen = []

    def lose(progress) -> None:
        if not seen:
            engine._pits.clear()
        seen.append(progress)

    summary = backfill(engine, many, pipeline, options, lose)
    assert (summary.stopped, summary.remaining, summary.counts.read) == ("", 0, COUNT)
    assert summary.counts.earlier == summary.counts.unchanged > 0
    assert not list(wrongly_signed(stored(engine, many), pipeline.tools.fingerprinter))


def test_a_point_in_time_that_never_lasts_ends_it(engine, many, pipeline, options):
    summary = backfill(engine, many, pipeline, options, lambda _: engine._pits.clear())
    assert "lost 5 times" in summary.stopped


def test_documents_written_meanwhile_without_a_fingerprint_get_one(engine, many, pipeline, options):
    late = [{**page, "id": f"late-{page['id']}"} for page in pages(3, seed=3)]
    seen = []

    def write(_) -> None:
        if not seen:
            store(engine, many, late)
        seen.append(1)

    summary = backfill(engine, many, pipeline, options, write)
    assert (summary.counts.updated, summary.remaining) == (COUNT + 3, 0)
    assert adds_up(summary.counts)


def test_the_checkpoint_of_another_backfill_is_not_taken(engine, many, pipeline, options):
    backfill(engine, many, pipeline, options, interrupt)
    ensure_index(engine, "news", default_recipe(pipeline.scheme))
    with pytest.raises(ConfigError, match="index 'pages', not 'news'"):
        backfill(engine, "news", pipeline, options)
