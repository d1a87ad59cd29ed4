"""Several indices of which a role may read the documents, and of some the mappings."""

from dataclasses import replace

import pytest
from support.hits import SCHEME

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import PermissionDenied
from shinglefold.ingest import default_recipe
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.index_knowledge import IndexRecipes
from shinglefold.runtime.sans_io import run

MAPPINGS = recipe_mappings(replace(default_recipe(SCHEME), fields=("headline",)))


def _answer(call):
    """Answer a call as a server does where the role may not look at the mappings of ``secret``."""
    (name,) = call.arguments
    if name == "secret":
        raise PermissionDenied("403")
    return MAPPINGS if call.method == "mappings" else {name: MAPPINGS}


@pytest.mark.parametrize("names", ["secret,open", "open,secret"])
def test_copies_are_looked_for_by_the_mappings_that_may_be_read(names):
    known = run(IndexRecipes(SCHEME, None, None).read(names), _answer)
    assert known.fields_by_index == {"open": ("headline",)}


@pytest.mark.parametrize("names", ["secret,open", "open,secret"])
def test_texts_decide_by_the_fields_of_the_mappings_that_may_be_read(tmp_path, names):
    options = FoldOptions(verify="text")
    with EmbeddedEngine(tmp_path, str.split) as engine:
        search = FoldedSearch(engine, SCHEME)
        run(search._knowledge.check(names, options), _answer)
        stage = run(search._stage(names, options), _answer)
    assert stage.fields == ("headline",)
