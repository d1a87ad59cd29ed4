"""The field of group numbers is there where the recipe says so, and only there."""

from dataclasses import replace

from support.hits import SCHEME

from shinglefold.ingest import default_recipe
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.model.recipe import Recipe


def test_a_recipe_with_groups_maps_their_number_as_what_engines_collapse_by():
    made = recipe_mappings(replace(default_recipe(SCHEME, "meta.dedup"), groups=True))
    inner = made["properties"]["meta"]["properties"]["dedup"]["properties"]
    assert inner["group"] == {"type": "long"}
    assert Recipe.of(made, "site").groups


def test_a_recipe_without_groups_maps_no_number_and_says_nothing_of_groups():
    made = recipe_mappings(default_recipe(SCHEME))
    assert "group" not in made["properties"]["dedup"]["properties"]
    assert "groups" not in made["_meta"]["shinglefold"]
    assert not Recipe.of(made, "site").groups
