"""Passages found wherever documents lie: shards, several indices, routing, aliases, documents of before."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.copied import make, pipeline_of, recipe_of
from support.servers.server import add_alias
from support.topologies import NAMES, Place, laid_out

from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.registry import make_scheme
from shinglefold.rerank.matching import MatchOptions, MatchSearch

COPIED = make()
IDS = list(COPIED.documents)
ALL = MatchOptions(size=100)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    """The documents with their elements, in the order of ``IDS``."""
    given = [{"body": text, "even": at % 2 == 0} for at, text in enumerate(COPIED.documents.values())]
    return [outcome.document for outcome in process_block(pipeline_of(), given).outcomes]


@pytest.fixture(scope="module")
def mapped() -> dict[str, Any]:
    body = recipe_mappings(recipe_of())
    body["properties"] |= {"body": {"type": "text"}, "even": {"type": "boolean"}}
    return body


#: An older generation has those that stand for all others.
LAYOUTS = [
    pytest.param(name, marks=() if name in ("three_indices", "filtered_alias") else pytest.mark.newest)
    for name in NAMES
    if name != "replicas"
]


@pytest.fixture(scope="module", params=LAYOUTS)
def place(request, engine, server, documents, mapped) -> Iterator[Place]:
    with laid_out(request.param, engine, server, documents, mapped) as found:
        yield found


@pytest.fixture(params=LAYOUTS)
def changing(request, engine, server, documents, mapped) -> Iterator[Place]:
    with laid_out(request.param, engine, server, documents, mapped) as found:
        yield found


@pytest.fixture
def search(engine) -> MatchSearch:
    return MatchSearch(engine)


def numbers(place: Place, matches) -> list[int]:
    """The numbers of the documents found; what the target does not show fails."""
    return [
        place.number({"_index": one.index, "_id": one.id, "_routing": one.routing or ""}) for one in matches
    ]


def wanted(source: int, least: float = 0.05) -> list[int]:
    return sorted(IDS.index(id_) for id_ in COPIED.wanted(source, least))


def test_each_document_with_enough_of_a_text_is_found_once(place, search):
    for number, source in enumerate(COPIED.sources):
        page = search.find(place.target, source, ALL)
        assert sorted(numbers(place, page.matches)) == wanted(number)
        assert (page.exact, page.unreadable) == (True, 0)
        shares = [one.share for one in page.matches]
        assert shares == sorted(shares, reverse=True)


def test_pages_neither_repeat_nor_skip(place, search):
    for size, window in ((1, 5), (4, 9)):
        pages = search.pages(place.target, COPIED.sources[3], MatchOptions(size=size, window=window))
        found = numbers(place, [one for page in pages for one in page.matches])
        assert sorted(found) == wanted(3)


def test_a_filter_and_a_least_share_are_kept(place, search):
    options = MatchOptions(size=100, min_share=0.2, filters=({"term": {"even": True}},))
    found = numbers(place, search.find(place.target, COPIED.sources[1], options).matches)
    assert sorted(found) == [at for at in wanted(1, 0.2) if at % 2 == 0]


def test_what_is_deleted_or_written_anew_is_told_as_it_is_now(changing, search):
    if changing.appends_only:
        pytest.skip("a data stream takes new documents alone")
    gone, changed, *rest = wanted(0)
    action = changing.action(gone, _op_type="delete")
    action.pop("_source", None)
    # Its elements are those of before, as a writer without the pipeline leaves them.
    source = {**changing.documents[changed], "body": "not a word of it is left"}
    assert not changing.engine.bulk([action, {**changing.action(changed), "_source": source}]).failures
    for index in changing.indices:
        changing.engine.refresh(index)
    page = search.find(changing.target, COPIED.sources[0], ALL)
    assert sorted(numbers(changing, page.matches)) == rest
    assert page.unreadable == 1


def test_documents_of_before_are_no_matter_to_the_others(engine, server, search, documents, mapped):
    older = {at: {**one, "_dedup": {**one["_dedup"]}} for at, one in enumerate(documents) if at % 2}
    for one in older.values():
        del one["_dedup"]["passages"]
    mixed = [older.get(at, one) for at, one in enumerate(documents)]
    with laid_out("three_indices", engine, server, mixed, mapped) as place:
        page = search.find(place.target, COPIED.sources[2], ALL)
        assert sorted(numbers(place, page.matches)) == [at for at in wanted(2) if at % 2 == 0]


@pytest.mark.newest
@pytest.mark.parametrize("how", ["alias", "commas", "star"])
def test_an_index_of_before_among_several_is_refused_with_its_remedy(
    engine, server, search, documents, mapped, new_index, how
):
    with laid_out("three_indices", engine, server, documents, mapped) as place:
        plain = new_index(mappings(make_scheme()), {"number_of_shards": 1, "number_of_replicas": 0})
        target = f"{place.target},{plain}"
        if how != "commas":
            alias = f"{place.target}-{how}"
            add_alias(server, alias, *place.indices, plain)
            target = alias if how == "alias" else f"{alias}*"
        with pytest.raises(ConfigError, match=f"setup {plain} --passages.*backfill {plain}"):
            search.find(target, COPIED.sources[0])


@pytest.mark.newest
@pytest.mark.parametrize("how", ["alias", "commas", "star"])
def test_each_index_is_read_by_its_own_recipe(engine, server, search, new_index, how):
    source, stranger = COPIED.sources[0], COPIED.sources[5]
    some = " ".join(source.split()[:100])
    texts = {("body",): {"body": some, "notes": source}, ("notes",): {"body": source, "notes": some}}
    made = []
    for fields, text in texts.items():
        body = recipe_mappings(recipe_of(fields))
        body["properties"] |= {"body": {"type": "text"}, "notes": {"type": "text"}}
        made.append(new_index(body, {"number_of_shards": 2, "number_of_replicas": 0}))
        given = [text, {"body": stranger, "notes": stranger}]
        outcomes = process_block(pipeline_of(fields), given).outcomes
        actions = [{"_index": made[-1], "_source": one.document} for one in outcomes]
        assert not engine.bulk(actions).failures
        engine.refresh(made[-1])
    target = ",".join(made)
    if how != "commas":
        alias = f"{made[0]}-{how}"
        add_alias(server, alias, *made)
        target = alias if how == "alias" else f"{alias}*"
    found = search.find(target, source, ALL).matches
    assert sorted((one.index, one.share) for one in found) == sorted((name, 0.25) for name in made)
    fields = {one.index: {part["document"]["field"] for part in one.passages} for one in found}
    assert fields == {made[0]: {"body"}, made[1]: {"notes"}}
