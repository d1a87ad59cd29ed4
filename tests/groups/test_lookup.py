"""What is looked up for a batch in one request."""

from shinglefold.groups.deciding import likeness_of
from shinglefold.groups.lookup import Lookup
from shinglefold.groups.rules import Rules
from shinglefold.groups.values import Values


def test_a_number_that_many_documents_have_hides_no_other(engine, pipeline):
    recipe = pipeline.recipe()
    groups = [5] * 150 + [7] + [11] * 150
    engine.bulk(
        {"_index": "texts", "_id": f"{at}", "_source": {"dedup": {"group": group}}}
        for at, group in enumerate(groups)
    )
    engine.refresh("texts")
    likeness = likeness_of(recipe, Rules(), None, Values.of_all(engine, "texts", ()))
    lookup = Lookup(engine, "texts", likeness)
    assert lookup.find([], (), "dedup.group", [5, 7, 9, 11]) == ([], {5, 7, 11})
