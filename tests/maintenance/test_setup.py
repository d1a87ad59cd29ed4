from dataclasses import replace

import pytest
from support.maintenance import FIELDS, pages, store

from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import default_recipe
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.maintenance.preconditions import differences
from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan


def test_a_missing_index_is_made_and_a_second_run_changes_nothing(engine, scheme):
    request = SetupRequest(default_recipe(scheme), indices=("pages",))
    (change,) = make_plan(engine, request).changes
    assert (change.kind, change.name, change.new) == ("new index", "pages", True)
    carry_out(engine, make_plan(engine, request))
    assert engine.mappings("pages")["_meta"]["shinglefold"]["id"] == scheme.id
    assert make_plan(engine, request).changes == ()


def test_a_plan_changes_nothing_by_itself(engine, scheme):
    engine.create_index("pages", {"properties": FIELDS}, {})
    before = engine.mappings("pages")
    assert make_plan(engine, SetupRequest(default_recipe(scheme), indices=("pages", "news"))).changes
    assert engine.mappings("pages") == before
    assert not engine.index_exists("news")


def test_an_index_in_use_is_upgraded_in_place_and_the_documents_to_backfill_are_counted(
    engine, scheme, pipeline
):
    half = {"_meta": {"owner": "us"}, "properties": {**FIELDS, "_dedup": {"properties": {}}}}
    half["properties"]["_dedup"]["properties"]["scheme"] = {"type": "keyword"}
    engine.create_index("pages", half, {})
    store(engine, "pages", pages(12))
    request = SetupRequest(default_recipe(scheme), indices=("pages",))
    plan = make_plan(engine, request)
    (change,) = plan.changes
    assert "+ _dedup.signature: binary" in change.lines
    assert not any("_dedup.scheme" in line for line in change.lines)
    assert plan.backfills == {"pages": 12}
    carry_out(engine, plan)
    made = engine.mappings("pages")
    assert made["_meta"]["owner"] == "us"
    assert made["properties"]["_dedup"] == mappings(scheme)["properties"]["_dedup"]
    backfill(engine, "pages", pipeline, BackfillOptions(workers=1))
    assert make_plan(engine, request) == type(plan)()


def test_another_scheme_is_shown_by_what_differs(engine, scheme):
    carry_out(engine, make_plan(engine, SetupRequest(default_recipe(scheme), indices=("pages",))))
    newer = scheme.with_options(values=168)
    (change,) = make_plan(engine, SetupRequest(default_recipe(newer), indices=("pages",))).changes
    assert change.lines == (
        f'~ _meta.shinglefold.id: "{scheme.id}" → "{newer.id}"',
        "~ _meta.shinglefold.sketch.values: 336 → 168",
    )


def test_another_decision_is_noted_without_a_backfill(engine, scheme, pipeline):
    carry_out(engine, make_plan(engine, SetupRequest(default_recipe(scheme), indices=("pages",))))
    store(engine, "pages", pages(3))
    backfill(engine, "pages", pipeline, BackfillOptions(workers=1))
    plan = make_plan(
        engine, SetupRequest(default_recipe(scheme.with_options(min_resemblance=0.7)), indices=("pages",))
    )
    assert [change.lines for change in plan.changes] == [
        (
            "~ _meta.shinglefold.decision.min_resemblance: 0.61 → 0.7",
            '~ _meta.shinglefold.decision.verify: "text" → "signature"',
        )
    ]
    assert plan.backfills == {}


def test_what_cannot_be_changed_is_reported_and_not_touched(engine, scheme):
    engine.create_index("pages", {"properties": {"_dedup": {"type": "keyword"}}}, {})
    engine.create_index("news", {}, {})
    request = SetupRequest(default_recipe(scheme), indices=("pages",))
    plan = make_plan(engine, request)
    ((name, (told,)),) = plan.problems.items()
    assert name == "pages"
    assert "[_dedup] is mapped as keyword" in told
    assert "shinglefold setup pages --dedup-field _copies" in told
    assert plan.changes == ()
    both = make_plan(engine, replace(request, indices=("pages", "news")))
    assert {change.name for change in both.changes} == {"news"}


def test_an_engine_without_templates_says_so(engine, scheme):
    with pytest.raises(ConfigError, match="no templates"):
        make_plan(engine, SetupRequest(default_recipe(scheme), patterns=("news-*",)))


def test_a_wish_for_nothing_is_refused(scheme):
    with pytest.raises(ConfigError, match="nothing to set up"):
        SetupRequest(default_recipe(scheme))


def test_only_what_is_wanted_is_compared():
    assert list(differences({"a": 1, "b": {"c": [2], "x": 0}, "y": 0}, {"a": 1, "b": {"c": [2]}})) == []
    assert list(differences({"a": 1}, {"a": 2, "b": {"c": True}})) == ["~ a: 1 → 2", '+ b: {"c": true}']
