"""What several indices behind one name have together."""

import pytest

from shinglefold.engines.http.responses import one_mapping
from shinglefold.errors import ConfigError
from shinglefold.model.recipe import Recipe, missing_recipe


def index(properties, **rest):
    return {"mappings": {"properties": properties, **rest}}


def test_objects_of_several_indices_are_joined_field_by_field():
    one = index({"meta": {"properties": {"a": {"type": "keyword"}}}})
    other = index({"meta": {"properties": {"b": {"type": "keyword"}}}, "c": {"type": "date"}})
    joined = one_mapping("all", {"one": one, "other": other}, "the server")["properties"]
    assert joined.keys() == {"meta", "c"}
    assert joined["meta"]["properties"].keys() == {"a", "b"}
    assert one["mappings"]["properties"]["meta"]["properties"].keys() == {"a"}


def test_who_noted_a_recipe_makes_no_difference_and_the_rest_does():
    def noted(id_, product):
        return index({}, _meta={"shinglefold": {"id": id_, "product": product}})

    alike = {"one": noted("sf3-1", "0.1.0"), "other": noted("sf3-1", "0.2.0")}
    assert one_mapping("all", alike, "the server")["_meta"] == {"shinglefold": {"id": "sf3-1"}}
    unlike = {"one": noted("sf3-1", "0.1.0"), "other": noted("sf3-2", "0.1.0")}
    joined = one_mapping("all", unlike, "the server")
    assert "shinglefold" not in joined["_meta"]
    with pytest.raises(ConfigError, match=f"different recipes .*{', '.join(sorted(unlike))}.*name one"):
        Recipe.of(joined, "all")
    # As of commands that name what is missing themselves.
    assert "different recipes" in missing_recipe(joined, "all")


def test_where_one_index_stores_fields_unmapped_all_may_have_any():
    found = {"one": index({}, dynamic="false"), "other": index({"a": {"type": "keyword"}})}
    assert one_mapping("all", found, "the server")["dynamic"] == "false"
