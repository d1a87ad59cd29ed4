import copy
import random
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from support.maintenance import FIELDS, pages, store, stored

from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import default_recipe, ensure_index
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.preconditions import (
    compare_mappings,
    conflicting_templates,
    field_obstacles,
    pattern_of,
    patterns_overlap,
    source_obstacles,
    write_obstacles,
)
from shinglefold.maintenance.reconcile import unrecognized_content
from shinglefold.model.recipe import with_passages

ALONE = BackfillOptions(workers=1)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"enabled": False}, "_source is off"),
        ({"excludes": ["body"]}, r"excludes: body\), and an update would remove them from the index"),
        ({"excludes": ["_dedup"]}, "excludes: _dedup"),
        ({"includes": ["title"]}, "includes: title"),
        ({"mode": "synthetic"}, "rebuilt from the fields"),
        ({"mode": "disabled"}, "_source is off"),
    ],
)
def test_an_incomplete_source_prevents_updates(source, said):
    (told,) = source_obstacles({"_source": source}, {})
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(told)


@pytest.mark.parametrize(
    "settings",
    [
        {"index.mode": "logsdb"},
        {"index.mode": "time_series"},
        {"index.mapping.source.mode": "synthetic"},
        {"index.derived_source.enabled": "true"},
    ],
)
def test_a_source_that_settings_have_rebuilt_does_so_too(settings):
    (told,) = source_obstacles({}, settings)
    assert "rebuilt" in told


@pytest.mark.parametrize("source", [None, {}, {"enabled": True}, {"includes": ["*"]}, {"excludes": []}])
def test_a_complete_source_allows_updates(source):
    assert not list(source_obstacles({"_source": source}, {"index.mode": "standard"}))
    assert not list(source_obstacles({}, {"index.mode": "logsdb", "index.mapping.source.mode": "stored"}))


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"type": "keyword"}, "is mapped as keyword"),
        ({"type": "nested", "properties": {}}, "is mapped as nested"),
        ({"type": "flattened"}, "is mapped as flattened"),
        ({"type": "object", "enabled": False}, "is not indexed"),
        ({"properties": {"of": {"type": "keyword"}, "scheme": {"type": "keyword"}}}, "holds of, which"),
    ],
)
def test_foreign_fields_are_reported_with_a_remedy(definition, said):
    (told,) = field_obstacles("shop", {"properties": {"_dedup": definition}}, "_dedup")
    assert said in told
    assert told.endswith("`shinglefold setup shop --dedup-field _copies`")


def test_names_that_only_searches_know_are_no_text_fields():
    title = {"type": "text", "fields": {"exact": {"type": "keyword"}}}
    found = {
        "properties": {
            "title": title,
            "o": {"properties": {"t": title}},
            "head": {"type": "alias", "path": "title"},
        }
    }
    told = list(
        field_obstacles("shop", found, "_dedup", ["title", "o.t", "none", "head", "title.exact", "o.t.exact"])
    )
    assert [one[one.index("name [") :] for one in told] == [
        "name [title] instead",
        "name [title] instead",
        "name [o.t] instead",
    ]


def test_a_strict_mapping_without_subobjects_is_told_with_a_remedy():
    for more in ({}, {"dynamic": "false"}, {"dynamic": "strict", "subobjects": True}):
        assert not list(field_obstacles("shop", {"subobjects": False, **more}, "_dedup"))
    (told,) = field_obstacles("shop", {"subobjects": False, "dynamic": "strict"}, "_dedup")
    assert told.endswith('PUT /shop/_mapping {"dynamic": false}')


def test_a_text_field_as_parent_is_foreign(scheme):
    found = {"properties": {"meta": {"type": "text"}}}
    (told,) = field_obstacles("shop", found, "meta.print")
    assert told.startswith("[meta] is mapped as text")
    assert not list(field_obstacles("shop", mappings(scheme, "meta.print"), "meta.print"))
    assert not list(field_obstacles("shop", {}, "meta.print"))


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"index.blocks.write": "true"}, 'PUT /shop/_settings {"index.blocks.write": false}'),
        ({"index.blocks.read_only": "true"}, 'PUT /shop/_settings {"index.blocks.read_only": false}'),
        ({"index.verified_before_close": "true"}, "POST /shop/_open"),
        ({"index.frozen": "true"}, "POST /shop/_unfreeze"),
        ({"index.store.type": "remote_snapshot"}, "restore it"),
    ],
)
def test_an_index_without_writes_is_reported_with_a_remedy(settings, remedy):
    (told,) = write_obstacles("shop", settings)
    assert remedy in told
    assert not list(write_obstacles("shop", dict.fromkeys(settings, "false")))


@pytest.mark.parametrize(
    "value",
    [
        {"of": "abc", "why": "same title"},
        {"scheme": "https"},
        {"digest": "0af3"},
        [{"of": "abc"}, {"scheme": "sf3-x"}],
        "0af3",
        True,
    ],
)
def test_what_is_no_fingerprint_is_known_as_such(value):
    assert "no fingerprint" in unrecognized_content({"_dedup": value}, "_dedup")


def test_names_with_points_are_taken_for_what_they_mean():
    assert "'of'" in unrecognized_content({"_dedup.of": "x", "_dedup": {"scheme": "sf3-x"}}, "_dedup")
    assert not unrecognized_content({"_dedup.digest": "x", "_dedup": {"scheme": "sf3-x"}}, "_dedup")
    assert not unrecognized_content({"dedupe.of": "x"}, "_dedup")


@pytest.mark.parametrize(
    "value", [None, {}, {"scheme": None}, {"scheme": "sf3-x", "lang": "ru", "group": None}]
)
def test_a_fingerprint_and_an_empty_field_are_not_foreign(value):
    assert not unrecognized_content({"_dedup": value}, "_dedup")
    assert not unrecognized_content({}, "_dedup")


def test_a_foreign_object_is_refused_before_anything_is_written(engine, scheme, pipeline):
    theirs = {"properties": {"of": {"type": "keyword"}}}
    made = mappings(scheme)
    made["properties"]["_dedup"]["properties"] |= theirs["properties"]
    engine.create_index("shop", {**made, "properties": {**made["properties"], **FIELDS}}, {})
    store(engine, "shop", [{**page, "_dedup": {"of": "x"}} for page in pages(20)])
    with pytest.raises(ConfigError, match="--dedup-field _copies"):
        backfill(engine, "shop", pipeline, ALONE)
    assert all(source["_dedup"] == {"of": "x"} for source in stored(engine, "shop").values())


def test_a_foreign_object_in_a_document_is_left_alone_and_counted(engine, scheme, pipeline):
    ensure_index(engine, "pages", default_recipe(scheme), properties=FIELDS)
    some = pages(20)
    some[3]["_dedup"] = {"lang": "ru"}
    some[4]["_dedup"] = {"digest": "0af3"}
    store(engine, "pages", some)
    summary = backfill(engine, "pages", pipeline, ALONE)
    assert (summary.counts.updated, summary.counts.failed) == (18, 2)
    assert all("not changed" in reason for reason in summary.counts.reasons)
    found = stored(engine, "pages")
    assert (found["page-3"]["_dedup"], found["page-4"]["_dedup"]) == (
        {"lang": "ru"},
        {"digest": "0af3"},
    )
    told = diagnose(engine, "pages", pipeline, DoctorOptions(workers=1))
    assert told.findings == {"sound": 18, "foreign": 2}
    assert not told.healthy


@pytest.mark.parametrize("field", ["_dedup", "meta.print"])
def test_the_mappings_of_a_new_index_lack_nothing(scheme, field):
    found = compare_mappings(mappings(scheme, field), default_recipe(scheme, field))
    assert (dict(found.missing), found.wrong) == ({}, ())
    assert found.stored["id"] == scheme.id


def test_an_index_without_fingerprints_lacks_all_fields_and_can_be_set_up(scheme):
    found = compare_mappings({"properties": {"body": {"type": "text"}}}, default_recipe(scheme))
    assert len(found.missing) == 6
    assert (found.wrong, found.stored) == ((), None)


@pytest.mark.parametrize(
    ("name", "definition", "said"),
    [
        ("signature", {"type": "binary"}, "_dedup.signature is mapped without doc_values"),
        ("signature", {"type": "text"}, "_dedup.signature is mapped as text, binary is needed"),
        ("digest", {"type": "keyword", "doc_values": False}, "_dedup.digest is mapped without doc_values"),
        (
            "supershingles",
            {"type": "keyword", "index": False},
            "_dedup.supershingles is mapped without index",
        ),
        ("scheme", {"type": "text", "fields": {}}, "_dedup.scheme is mapped as text, keyword is needed"),
        ("shingles", {"properties": {}}, "_dedup.shingles is mapped as object, integer is needed"),
        # As a server maps a placeholder for which it created the index.
        ("attempt", {"type": "text"}, "_dedup.attempt is mapped as text, keyword is needed"),
    ],
)
def test_what_cannot_be_changed_in_place_is_reported(scheme, name, definition, said):
    made = copy.deepcopy(mappings(scheme))
    made["properties"]["_dedup"]["properties"][name] = definition
    assert compare_mappings(made, default_recipe(scheme)).wrong == (said,)


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("shingles", {"type": "long"}),
        ("supershingles", {"type": "keyword"}),
        ("digest", {"type": "keyword", "index": False}),
    ],
)
def test_what_takes_more_or_less_room_but_works_is_left_alone(scheme, name, definition):
    made = copy.deepcopy(mappings(scheme))
    made["properties"]["_dedup"]["properties"][name] = definition
    assert compare_mappings(made, default_recipe(scheme)).wrong == ()


def test_an_index_that_is_to_number_groups_lacks_their_fields(scheme):
    made = mappings(scheme)
    assert compare_mappings(made, default_recipe(scheme)).missing == {}
    lacking = compare_mappings(made, replace(default_recipe(scheme), groups=True)).missing
    assert lacking == {"_dedup.group": {"type": "long"}, "_dedup.leader": {"type": "boolean"}}


def test_other_mappings_of_group_numbers_are_reported(scheme):
    made = mappings(scheme)
    made["properties"]["_dedup"]["properties"]["group"] = {"type": "keyword"}
    assert compare_mappings(made, replace(default_recipe(scheme), groups=True)).wrong == (
        "_dedup.group is mapped as keyword, long is needed",
    )
    assert compare_mappings(made, default_recipe(scheme)).wrong == ()


def test_other_mappings_of_passages_are_reported(scheme):
    made, recipe = mappings(scheme), default_recipe(scheme)
    made["properties"]["_dedup"]["properties"]["passages"] = {"type": "text"}
    recipe = replace(recipe, pipeline=with_passages(recipe.pipeline, recipe.field))
    assert compare_mappings(made, recipe).wrong == ("_dedup.passages is mapped as text, keyword is needed",)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("news-*", "news-2026", True),
        ("news-*", "*-2026", True),
        ("news-*", "blog-*", False),
        ("*", "x", True),
        ("", "*", True),
        ("a*c", "ab*", True),
        ("a*c", "*d", False),
    ],
)
def test_two_patterns_meet_where_a_name_fits_both(one, other, meet):
    assert patterns_overlap(one, other) is patterns_overlap(other, one) is meet


def test_patterns_that_fit_one_name_always_meet():
    chance = random.Random(3)
    met = 0
    for _ in range(3_000):
        one, other = ("".join(chance.choices("ab*", k=chance.randrange(5))) for _ in range(2))
        names = ["".join(chance.choices("ab", k=chance.randrange(6))) for _ in range(20)]
        if any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in names):
            met += 1
            assert patterns_overlap(one, other), (one, other)
    assert met > 300


class Some:
    """Templates as a server tells them."""

    def __init__(self, indices: dict, legacy: dict) -> None:
        self.indices, self.legacy = indices, legacy

    def index_templates(self) -> dict:
        return self.indices

    def legacy_templates(self) -> dict:
        return self.legacy

    def resolved_template(self, name: str) -> dict:
        return self.indices[name]["template"]


def test_what_the_next_index_would_lose_is_reported():
    settings = {"index": {"number_of_shards": "5"}}
    old = {
        "index_patterns": ["leg-*"],
        "settings": settings,
        "mappings": {"dynamic": "strict", "properties": {"title": {}, "body": {}}},
        "aliases": {"all": {}},
    }
    new = {"index_patterns": ["*-2026"], "priority": 7, "template": {"settings": settings}}
    told = conflicting_templates(Some({"years": new}, {"old": old}), ("leg-*",), "ours", "ours-dedup")
    assert "without its settings index.number_of_shards: 5" in told["index template years"][0]
    assert 'PUT /_index_template/years {"index_patterns": ["*-2026"]' in told["index template years"][0]
    assert '"composed_of": ["ours-dedup"]' in told["index template years"][0]
    (said,) = told["legacy template old"]
    for part in ("index.number_of_shards: 5", "mappings title, body", "aliases all", "dynamic"):
        assert part in said


def test_templates_that_have_the_fields_or_other_indices_lose_nothing():
    one = {"index_patterns": ["leg-*"], "composed_of": ["ours-dedup"], "template": {}}
    own = {"index_patterns": ["leg-*"], "template": {}}
    other = {"index_patterns": ["blog-*"]}
    assert (
        conflicting_templates(
            Some({"one": one, "ours": own}, {"other": other}), ("leg-*",), "ours", "ours-dedup"
        )
        == {}
    )


@pytest.mark.parametrize(
    ("index", "alias", "pattern"),
    [
        ("pages-000001", "pages", "pages-*"),
        ("pages_7", "pages", "pages_*"),
        ("pages-v3", "pages", "pages-v*"),
        ("pages-2024.01.02", "all", "pages-*"),
        ("news-2024-1", "news-2024", "news-2024-*"),
        ("pages", "all", "pages-*"),
        ("2024", "pages", "2024-*"),
    ],
)
def test_the_pattern_of_indices_to_come_is_no_wider_than_their_alias(index, alias, pattern):
    assert pattern_of(index, alias) == pattern
