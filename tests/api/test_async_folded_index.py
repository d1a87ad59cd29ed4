"""The same methods, awaited."""

import asyncio
import inspect

import pytest

import shinglefold
from shinglefold.errors import IndexMissing, RecipeMismatch, Refused
from shinglefold.examples import articles

BRIDGE = {"query": {"match": {"title": "мост"}}, "size": 3}


def awaited(work, folder, **options):
    """Open the example site and await a piece of work on it."""

    async def opened():
        async with await shinglefold.open_async(folder, "site", **options) as site:
            return await work(site)

    return asyncio.run(opened())


def test_it_has_the_methods_of_the_blocking_one():
    public = {name for name in vars(shinglefold.FoldedIndex) if not name.startswith("_")}
    below = {"scheme", "pipeline", "canonicalizer", "gate", "query_document", "stored_hit", "owns_engine"}
    assert public - below <= set(vars(shinglefold.AsyncFoldedIndex))


def test_searches_give_the_same_answers(folder, site):
    async def searches(index):
        page, (several,) = await index.search(BRIDGE), await index.msearch([BRIDGE])
        similar = await index.similar("ru-bridge-repair-1")
        text = next(iter(articles()))
        matches = await index.matches(text["body"][:200])
        copies = await index.similar({"title": text["title"], "body": text["body"]})
        pages = [page async for page in index.pages({**BRIDGE, "size": 100})]
        return page, several, similar, matches, copies, pages

    page, several, similar, matches, copies, pages = awaited(searches, folder)
    ids = [hit["_id"] for hit in page["hits"]["hits"]]
    assert ids == [hit["_id"] for hit in site.search(BRIDGE)["hits"]["hits"]]
    assert ids == [hit["_id"] for hit in several["hits"]["hits"]]
    assert similar.matches == site.similar("ru-bridge-repair-1").matches
    assert matches.matches
    assert len(copies.matches) == 5
    assert len(pages) == 1


def test_arguments_are_those_of_the_blocking_methods(folder, site):
    for given in ({"verify": "keywords"}, {"min_shared": 3}):
        for similar in (site.similar, lambda *a, **b: awaited(lambda index: index.similar(*a, **b), folder)):
            with pytest.raises(TypeError, match="unexpected keyword argument"):
                similar("ru-bridge-repair-1", **given)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        awaited(lambda index: index.matches("мост", window=3), folder)


def test_the_whole_index_is_worked_on(folder):
    async def work(index):
        return (
            await index.explain("ru-bridge-repair-1", "ru-bridge-repair-3"),
            (await index.doctor()).healthy,
            (await index.backfill()).counts.updated,
            (await index.groups()).documents,
        )

    told, healthy, updated, documents = awaited(work, folder)
    assert (told["folds"], healthy, updated, documents) == (True, True, 0, 166)


def test_documents_are_written(folder):
    async def work(index):
        with pytest.raises(Refused):
            await index.add(next(iter(articles())) | {"id": "copy"})
        fresh = [{"id": str(number), "title": f"Nummer {number} {'wort ' * number}"} for number in (101, 102)]
        verdicts = await asyncio.gather(*(index.add(one) for one in fresh))
        more = await index.index([{"id": "103", "title": "Noch eine ganz andere Seite"}])
        return (
            [verdict.status for verdict in verdicts],
            more.indexed,
            await index.delete(["101", "102", "103"]),
        )

    statuses, indexed, deleted = awaited(work, folder)
    assert set(statuses) <= {"accepted"}
    assert (indexed, deleted) == (1, 3)


def test_what_is_wrong_is_told_at_the_opening(folder):
    with pytest.raises(IndexMissing, match="To make 'news'"):
        asyncio.run(shinglefold.open_async(folder, "news"))
    with pytest.raises(RecipeMismatch):
        asyncio.run(shinglefold.open_async(folder, "site", text=["headline"]))


def test_methods_document_what_they_are():
    for name, method in vars(shinglefold.AsyncFoldedIndex).items():
        if not name.startswith("_") and callable(method):
            assert inspect.getdoc(method), name
