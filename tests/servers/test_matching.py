"""Passages found on real servers: several shards, equal ids, aliases, deleted documents."""

import pytest
from support.copied import make, pipeline_of, recipe_of
from support.servers.admin import ask

from shinglefold.canon import Canonicalizer
from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.registry import make_scheme
from shinglefold.rerank.matching import MatchOptions, MatchSearch

COPIED = make()
ALL = MatchOptions(size=100)


@pytest.fixture(scope="module")
def canonicalizer() -> Canonicalizer:
    return Canonicalizer.of(make_scheme())


@pytest.fixture
def search(engine, canonicalizer) -> MatchSearch:
    return MatchSearch(engine, canonicalizer)


def made(engine, new_index, documents) -> str:
    body = recipe_mappings(recipe_of())
    body["properties"] |= {"body": {"type": "text"}, "even": {"type": "boolean"}}
    name = new_index(body, {"number_of_shards": 3, "number_of_replicas": 0})
    given = [{"_id": id_, "body": text, "even": int(id_[1:]) % 2 == 0} for id_, text in documents.items()]
    outcomes = process_block(pipeline_of(), given).outcomes
    actions = [{"_index": name, "_id": one.document.pop("_id"), "_source": one.document} for one in outcomes]
    assert not engine.bulk(actions).failures
    engine.refresh(name)
    return name


@pytest.fixture
def index(engine, new_index) -> str:
    return made(engine, new_index, COPIED.documents)


def test_all_that_have_enough_of_a_text_are_found_over_all_shards_page_by_page(search, index):
    for number, source in enumerate(COPIED.sources):
        page = search.find(index, source, ALL)
        assert {one.id for one in page.matches} == COPIED.wanted(number, 0.05)
        assert page.exact
    for size, window in ((1, 3), (4, 7)):
        pages = search.pages(index, COPIED.sources[0], MatchOptions(size=size, window=window, max_window=10))
        found = [one.id for page in pages for one in page.matches]
        assert sorted(found) == sorted(COPIED.wanted(0, 0.05))
    assert len(COPIED.wanted(0, 0.05)) > 5


def test_equal_ids_in_several_indices_are_different_documents(engine, search, new_index, index):
    other = made(engine, new_index, COPIED.documents)
    found = search.find(f"{index},{other}", COPIED.sources[1], ALL).matches
    wanted = {(name, id_) for name in (index, other) for id_ in COPIED.wanted(1, 0.05)}
    assert {(one.index, one.id) for one in found} == wanted
    assert len(found) == len(wanted)


def test_a_filtered_alias_shows_only_its_documents(server, search, index):
    alias = f"{index}-even"
    add = {"index": index, "alias": alias, "filter": {"term": {"even": True}}}
    ask(server.url, "POST", "/_aliases", {"actions": [{"add": add}]})
    found = {one.id for one in search.find(alias, COPIED.sources[2], ALL).matches}
    assert found == {id_ for id_ in COPIED.wanted(2, 0.05) if int(id_[1:]) % 2 == 0}


def test_what_was_deleted_is_never_found(engine, search, index):
    wanted = sorted(COPIED.wanted(0, 0.05))
    engine.bulk([{"_op_type": "delete", "_index": index, "_id": id_} for id_ in wanted[:3]])
    engine.refresh(index)
    assert sorted(one.id for one in search.find(index, COPIED.sources[0], ALL).matches) == wanted[3:]


def test_an_index_without_elements_among_several_is_refused(engine, search, new_index, index):
    plain = new_index(mappings(make_scheme()), {"number_of_shards": 1, "number_of_replicas": 0})
    with pytest.raises(ConfigError, match="--passages"):
        search.find(f"{index},{plain}", COPIED.sources[0])
