"""Backfills: fingerprints of all documents, resumed runs, duplicate fingerprints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.maintenance import FIELDS, adds_up, pages, store, stored, wrongly_signed
from support.taps import Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, EngineUnavailable, SchemeMismatch
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.index_mapping import default_recipe, ensure_index
from shinglefold.maintenance import BackfillOptions, backfill, diagnose
from shinglefold.maintenance.scan import Slice
from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan
from shinglefold.model.scheme import Scheme
from shinglefold.runtime.backoff import Backoff

ALONE = BackfillOptions(workers=1)


def test_every_document_gets_the_fingerprint_it_would_have_been_indexed_with(engine, unsigned, pipeline):
    summary = backfill(engine, unsigned, pipeline, ALONE)
    index_documents(engine, "fresh", pages(250), pipeline, workers=1)
    fresh = stored(engine, "fresh")
    assert {id_: source["_dedup"] for id_, source in stored(engine, unsigned).items()} == {
        id_: source["_dedup"] for id_, source in fresh.items()
    }
    assert (summary.counts.read, summary.counts.updated, summary.remaining) == (250, 250, 0)
    assert adds_up(summary.counts)


def test_worker_processes_make_the_same_fingerprints(engine, unsigned, pipeline):
    summary = backfill(engine, unsigned, pipeline, BackfillOptions(workers=2))
    assert summary.counts.updated == 250
    assert not list(wrongly_signed(stored(engine, unsigned), pipeline.tools.fingerprinter))


def test_nothing_but_the_fingerprint_is_written(engine, unsigned, pipeline):
    before = stored(engine, unsigned)
    backfill(engine, unsigned, pipeline, ALONE)
    after = stored(engine, unsigned)
    assert {id_: {**source, "_dedup": after[id_]["_dedup"]} for id_, source in before.items()} == after


def test_markup_is_stripped_for_the_fingerprint_and_kept_in_the_document(engine, scheme, pipeline):
    ensure_index(engine, "html", default_recipe(scheme), properties=FIELDS)
    text = pages(1)[0]
    store(engine, "html", [{**text, "body": f"<p>{text['body']}</p><script>x()</script>", "format": "html"}])
    backfill(engine, "html", pipeline, ALONE)
    (source,) = stored(engine, "html").values()
    assert source["body"].startswith("<p>")
    assert not list(wrongly_signed({"1": {**source, "body": text["body"]}}, pipeline.tools.fingerprinter))


def test_a_second_backfill_writes_nothing(engine, unsigned, pipeline):
    backfill(engine, unsigned, pipeline, ALONE)
    tapped = Tapped(engine)
    summary = backfill(tapped, unsigned, pipeline, ALONE)
    assert (summary.counts.unchanged, summary.counts.updated) == (250, 0)
    assert "bulk" not in tapped.names


def test_only_missing_reads_only_what_has_no_fingerprint(engine, unsigned, pipeline):
    backfill(engine, unsigned, pipeline, ALONE)
    store(engine, unsigned, [{**page, "id": f"new-{page['id']}"} for page in pages(7, seed=2)])
    summary = backfill(engine, unsigned, pipeline, BackfillOptions(workers=1, only_missing=True))
    assert (summary.counts.read, summary.counts.updated, summary.remaining) == (7, 7, 0)


def test_a_new_scheme_replaces_the_old_one_in_every_document(engine, unsigned, scheme: Scheme, pipeline):
    backfill(engine, unsigned, pipeline, ALONE)
    newer = scheme.with_options(values=84, bits=8, groups=14, group_size=6)
    other = Pipeline((*pipeline.steps,), pipeline.tools)
    with pytest.raises(SchemeMismatch, match="Change it first"):
        backfill(engine, unsigned, make(newer, pipeline), ALONE)
    carry_out(engine, make_plan(engine, SetupRequest(default_recipe(newer), indices=(unsigned,))))
    summary = backfill(engine, unsigned, make(newer, pipeline), ALONE)
    assert summary.counts.updated == 250
    assert {source["_dedup"]["scheme"] for source in stored(engine, unsigned).values()} == {newer.id}
    assert not list(wrongly_signed(stored(engine, unsigned), make(newer, pipeline).tools.fingerprinter))
    with pytest.raises(SchemeMismatch):
        backfill(engine, unsigned, other, ALONE)


def test_an_index_not_set_up_is_refused(engine, pipeline):
    engine.create_index("bare", {"properties": FIELDS}, {})
    with pytest.raises(ConfigError, match="set it up first"):
        backfill(engine, "bare", pipeline, ALONE)


def test_documents_the_pipeline_fails_on_are_counted_once_and_named(engine, unsigned, pipeline):
    store(engine, unsigned, [{**page, "body": 5, "id": f"bad-{page['id']}"} for page in pages(3)])
    summary = backfill(engine, unsigned, pipeline, ALONE)
    assert (summary.counts.updated, summary.counts.failed, summary.remaining) == (250, 3, 3)
    assert sorted(summary.counts.failures) == ["bad-page-0", "bad-page-1", "bad-page-2"]
    assert list(summary.counts.reasons) == ["supershingle: field [body] is a number, expected text"]
    assert adds_up(summary.counts)


def test_documents_the_pipeline_drops_stay_as_they_are(engine, scheme, pipeline):
    definition = {
        "processors": [
            {"drop": {"if": "ctx.title == 'Страница 7'"}},
            {"supershingle": {"fields": ["title", "body"], "language_field": "lang"}},
        ]
    }
    dropping = Pipeline.from_json(definition, scheme)
    ensure_index(engine, "pages", dropping.recipe(), properties=FIELDS)
    store(engine, "pages", pages(250))
    summary = backfill(engine, "pages", dropping, ALONE)
    assert (summary.counts.updated, summary.counts.dropped) == (249, 1)
    assert "_dedup" not in stored(engine, "pages")["page-7"]


def test_the_field_may_be_inside_another(engine, scheme, pipeline):
    definition = {
        "processors": [{"supershingle": {"fields": ["title", "body"], "target_field": "meta.print"}}]
    }
    deep = Pipeline.from_json(definition, scheme)
    ensure_index(engine, "deep", deep.recipe(), properties=FIELDS)
    store(engine, "deep", [{**page, "meta": {"kept": True}} for page in pages(5)])
    assert backfill(engine, "deep", deep, BackfillOptions(field="meta.print", workers=1)).counts.updated == 5
    assert all(source["meta"].keys() == {"kept", "print"} for source in stored(engine, "deep").values())


def test_the_embedded_engine_can_not_be_scanned_in_parts(engine, unsigned, pipeline):
    with pytest.raises(ConfigError, match="whole"):
        backfill(engine, unsigned, pipeline, BackfillOptions(part=Slice(1, 2)))


class Failing:
    """A real engine that does not answer some requests, by their number."""

    def __init__(self, engine: EmbeddedEngine, method: str, *failing: int, error: Exception) -> None:
        self._engine, self._method, self._failing, self._error = engine, method, failing, error
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return (
            self._failing_call(getattr(self._engine, name))
            if name == self._method
            else getattr(self._engine, name)
        )

    def _failing_call(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            self._asked += 1
            if self._asked in self._failing:
                raise self._error
            return call(*arguments)

        return ask


@pytest.mark.long(every=4)
@pytest.mark.parametrize("method", ["search", "bulk", "refresh", "open_pit"])
def test_an_engine_that_is_away_for_a_while_is_waited_for(engine, unsigned, pipeline, method):
    away = Failing(engine, method, 1, 3, error=EngineUnavailable("restarting; wait"))
    summary = backfill(away, unsigned, pipeline, BackfillOptions(workers=1, backoff=Backoff(3, 0.01)))
    assert (summary.stopped, summary.counts.updated) == ("", 250)


def test_an_engine_that_stays_away_stops_it_with_counts_that_add_up(engine, unsigned, pipeline):
    away = Failing(engine, "bulk", *range(2, 50), error=EngineUnavailable("gone; start it"))
    summary = backfill(away, unsigned, pipeline, BackfillOptions(workers=1, backoff=Backoff(2, 0.01)))
    assert summary.stopped == "gone; start it"
    assert summary.counts.updated == summary.counts.read == 100
    assert summary.remaining == 150


def make(scheme: Scheme, pipeline: Pipeline) -> Pipeline:
    from shinglefold.ingest import default_definition

    return Pipeline.from_json(default_definition(), scheme)


def test_it_is_found_by_the_doctor_and_healed_by_a_backfill(engine, pipeline, scheme, tmp_path):
    ensure_index(engine, "pages", default_recipe(scheme), properties=FIELDS)
    store(engine, "pages", pages(5))
    options = BackfillOptions(workers=1, checkpoint=tmp_path / "checkpoint.json")
    backfill(engine, "pages", pipeline, options)
    assert diagnose(engine, "pages", pipeline).findings == {"sound": 5}
    one, other = list(stored(engine, "pages"))[:2]
    sources = stored(engine, "pages")
    forged = {**sources[one], "_dedup.digest": sources[other]["_dedup"]["digest"]}
    engine.bulk([{"_index": "pages", "_id": one, "_source": forged}])
    engine.refresh("pages")
    found = diagnose(engine, "pages", pipeline)
    assert (found.findings, found.healthy) == ({"sound": 4, "damaged": 1}, False)
    assert backfill(engine, "pages", pipeline, options).counts.updated == 1
    assert diagnose(engine, "pages", pipeline).findings == {"sound": 5}
    assert not list(wrongly_signed(stored(engine, "pages"), pipeline.tools.fingerprinter))
    assert all("_dedup.digest" not in source for source in stored(engine, "pages").values())


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


def test_a_backfill_resumes_at_its_checkpoint(engine, many, pipeline, options):
    first = backfill(engine, many, pipeline, options, interrupt)
    assert (first.stopped, first.counts.read, first.remaining) == ("interrupted", 100, COUNT - 100)
    tapped = Tapped(engine)
    second = backfill(tapped, many, pipeline, options)
    assert second.resumed
    assert (second.counts.read, second.counts.updated, second.remaining) == (COUNT, COUNT, 0)
    read_again = [search for search in tapped.searches if search.get("size", 0) > 1]
    assert all("search_after" in search for search in read_again[:2])
    assert not Path(options.checkpoint).exists()


def test_documents_that_an_earlier_run_skipped_are_counted_once(engine, scheme, pipeline, options):
    definition = {
        "processors": [
            {"drop": {"if": "ctx.title.startsWith('Страница 1')"}},
            {"supershingle": {"fields": ["title", "body"], "language_field": "lang"}},
        ]
    }
    dropping = Pipeline.from_json(definition, scheme)
    ensure_index(engine, "pages", dropping.recipe(), properties=FIELDS)
    bad = [{**page, "body": 5, "title": "x", "id": f"bad-{page['id']}"} for page in pages(3)]
    store(engine, "pages", [*bad, *pages(200)])
    first = backfill(engine, "pages", dropping, options, interrupt)
    assert (first.counts.failed, first.counts.dropped > 0) == (3, True)
    counts = backfill(engine, "pages", dropping, options).counts
    assert (counts.read, counts.dropped, counts.failed, counts.updated) == (203, 111, 3, 89)
    assert (sorted(counts.failures), sum(counts.reasons.values())) == (sorted(one["id"] for one in bad), 3)
    assert adds_up(counts)


@pytest.mark.long
def test_without_its_point_in_time_it_restarts_and_writes_nothing_twice(engine, many, pipeline, options):
    backfill(engine, many, pipeline, options, interrupt)
    engine._pits.clear()
    second = backfill(engine, many, pipeline, options)
    assert second.counts.earlier == second.counts.unchanged == 100
    assert (second.counts.read, second.counts.updated) == (COUNT, COUNT - 100)
    assert adds_up(second.counts)


@pytest.mark.long
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
