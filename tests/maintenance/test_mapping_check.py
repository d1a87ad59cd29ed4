import copy
from dataclasses import replace

import pytest

from shinglefold.ingest import default_recipe, mappings
from shinglefold.maintenance.preconditions import compare_mappings


@pytest.mark.parametrize("field", ["dedup", "meta.print"])
def test_the_mappings_of_a_new_index_lack_nothing(scheme, field):
    found = compare_mappings(mappings(scheme, field), default_recipe(scheme, field))
    assert (dict(found.missing), found.wrong) == ({}, ())
    assert found.stored["id"] == scheme.id


def test_an_index_without_fingerprints_lacks_all_fields_and_can_be_mended(scheme):
    found = compare_mappings({"properties": {"body": {"type": "text"}}}, default_recipe(scheme))
    assert len(found.missing) == 6
    assert (found.wrong, found.stored) == ((), None)


@pytest.mark.parametrize(
    ("name", "definition", "said"),
    [
        ("signature", {"type": "binary"}, "dedup.signature is mapped without doc_values"),
        ("signature", {"type": "text"}, "dedup.signature is mapped as text, binary is needed"),
        ("digest", {"type": "keyword", "doc_values": False}, "dedup.digest is mapped without doc_values"),
        ("supershingles", {"type": "keyword", "index": False}, "dedup.supershingles is mapped without index"),
        ("scheme", {"type": "text", "fields": {}}, "dedup.scheme is mapped as text, keyword is needed"),
        ("shingles", {"properties": {}}, "dedup.shingles is mapped as object, integer is needed"),
    ],
)
def test_what_can_not_be_mended_in_place_is_told(scheme, name, definition, said):
    made = copy.deepcopy(mappings(scheme))
    made["properties"]["dedup"]["properties"][name] = definition
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
    made["properties"]["dedup"]["properties"][name] = definition
    assert compare_mappings(made, default_recipe(scheme)).wrong == ()


def test_an_index_that_is_to_number_groups_lacks_their_fields(scheme):
    made = mappings(scheme)
    assert compare_mappings(made, default_recipe(scheme)).missing == {}
    lacking = compare_mappings(made, replace(default_recipe(scheme), groups=True)).missing
    assert lacking == {"dedup.group": {"type": "long"}, "dedup.leader": {"type": "boolean"}}


def test_numbers_of_groups_that_are_mapped_otherwise_are_told(scheme):
    made = mappings(scheme)
    made["properties"]["dedup"]["properties"]["group"] = {"type": "keyword"}
    assert compare_mappings(made, replace(default_recipe(scheme), groups=True)).wrong == (
        "dedup.group is mapped as keyword, long is needed",
    )
    assert compare_mappings(made, default_recipe(scheme)).wrong == ()
