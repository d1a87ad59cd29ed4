"""A search holds itself against the recipe of the index."""

import pytest
from support.maintenance import FIELDS, pages

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, RecipeMismatch
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch
from shinglefold.rerank.index_fields import index_names

BODY = {"query": {"match_all": {}}, "size": 3}


@pytest.fixture
def engine(tmp_path, canonicalizer, scheme):
    with EmbeddedEngine(tmp_path / "engine", canonicalizer) as opened:
        pipeline = Pipeline.from_json(default_definition("near"), scheme, canonicalizer)
        index_documents(opened, "pages", pages(5), pipeline, properties=FIELDS, workers=1)
        yield opened


def test_a_search_in_another_field_is_refused_with_both_names(engine, scheme):
    with pytest.raises(RecipeMismatch, match="field near, not _dedup"):
        FoldedSearch(engine, scheme, on_trouble="raise").search("pages", BODY)
    assert FoldedSearch(engine, scheme, "near").search("pages", BODY)["dedup"]["groups"] >= 3


def test_a_field_that_came_with_a_later_document_is_known_at_once(engine, scheme):
    search = FoldedSearch(engine, scheme, "near")
    body = {**BODY, "ext": {"dedup": {"scope": "site"}}}
    with pytest.raises(ConfigError, match="'site'"):
        search.search("pages", body)
    new = {"_index": "pages", "_id": "new", "_source": {"site": 7}}
    assert not engine.bulk([new]).failures
    engine.refresh("pages")
    assert search.search("pages", body)["dedup"]["groups"] >= 3


@pytest.mark.parametrize(
    ("asked", "looked_at"),
    [
        (None, []),
        ("", []),
        ("pages", ["pages"]),
        ("pages,,news-*", ["pages", "news-*"]),
        # Names that leave others out mean something only together.
        ("logs-*,-logs-old", ["logs-*,-logs-old"]),
        # Another cluster tells no mappings; a date in angle brackets may have a colon.
        ("pages,remote:logs", ["pages"]),
        ("<logs-{now/d{yyyy-MM-dd|+12:00}}>", ["<logs-{now/d{yyyy-MM-dd|+12:00}}>"]),
        ("a-*,-a-old,remote:a-*", ["a-*,-a-old"]),
    ],
)
def test_mappings_are_asked_for_by_names_that_mean_something_alone(asked, looked_at):
    assert index_names(asked) == looked_at
