"""Counters that a reader can add up: results, folded hits, and whatever else is named make the hits read."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from support.doubtful_texts import doubtful_texts
from support.hits import split

from shinglefold.cli.shared.hits import counters_line
from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.model.scheme import Scheme
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates
from shinglefold.rerank.page.response import METHOD_BY_TEXT

SCHEME: Scheme = make_scheme(codes=["ru", "any"])
#: Copies in doubt, equal texts, and one word alone, which has no signature.
TEXTS = [*doubtful_texts(), *doubtful_texts()[:4], "мост", "мост", ""]


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoldedSearch]:
    pages = [{"id": str(at), "rank": at, "body": body} for at, body in enumerate(TEXTS)]
    with EmbeddedEngine(tmp_path_factory.mktemp("counters"), split) as engine:
        made = recipe_mappings(replace(default_recipe(SCHEME), groups=True))
        made["properties"] |= {"body": {"type": "text"}, "rank": {"type": "integer"}}
        engine.create_index("pages", made, {})
        stored = [one.document or {} for one in Pipeline.from_json(default_definition(), SCHEME).run(pages)]
        for at, one in enumerate(stored):
            one.setdefault("_dedup", {"scheme": SCHEME.id})["group"] = 2**40 + at % 7
        made_of = ({"_index": "pages", "_id": one["id"], "_source": one} for one in stored)
        assert not engine.bulk(made_of).failures
        engine.refresh("pages")
        yield FoldedSearch(engine, SCHEME, tiebreaker=engine.tiebreaker())


def _body(**more: Any) -> JSON:
    return {"query": {"match_all": {}}, "sort": [{"rank": "asc"}], "track_total_hits": True, **more}


def check(answer: JSON) -> None:
    """Check that the counters add up, in JSON and in the line that the command line prints."""
    told, shown = answer["dedup"], answer["hits"]["hits"]
    members = [hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] for hit in shown]
    under = sum(members) - len(members)
    if told["window"] is None:
        read = answer["hits"]["total"]["value"]
        assert (told["groups"], told["folded"]) == (len(shown), under)
    else:
        read = told["window"]
        assert told["groups"] + told["folded"] + told["repeated"] == read
        assert told["groups"] >= len(shown)
        assert told["folded"] >= under
    assert told["groups_total"]["value"] >= len(shown)
    # What is on the page is told as it is on the page.
    line = counters_line(answer)
    first = line.split(";")[0]
    results, _, rest = first.partition(" from ")
    hits, _, parts = rest.partition(":")
    if not answer["hits"]["total"]["value"]:
        return
    numbers = [int(number) for number in re.findall(r"(\d+) (?:folded|read|deleted|not on)", parts)]
    assert int(results.split()[0]) + sum(numbers) == int(hits.split()[0]) == read, line
    assert ("none folded" in line) == (not under), line
    assert all(duplicates(hit) == [] for hit, count in zip(shown, members, strict=True) if count == 1)


@pytest.mark.parametrize("verify", ["signature", "text"])
@pytest.mark.parametrize("linkage", ["leader", "connected"])
@pytest.mark.parametrize("window", [1, 4, 200])
def test_pages_of_any_size_add_up(search: FoldedSearch, verify: str, linkage: str, window: int):
    options = FoldOptions(verify=verify, linkage=linkage, window=window, max_window=200)
    for start, size in product((0, 1, 5, 40), (0, 1, 3, 60)):
        body = _body(**{"from": start, "size": size})
        answer = search.search("pages", body, options)
        if size:
            check(answer)
            (again,) = search.msearch([("pages", body)], options)
            assert again["dedup"] == answer["dedup"]


@pytest.mark.parametrize("verify", ["signature", "text"])
@pytest.mark.parametrize("window", [1, 4, 200])
@pytest.mark.parametrize("size", [1, 3, 60])
def test_the_pages_of_a_cursor_add_up_and_the_last_one_knows_how_many_were_shown(
    search: FoldedSearch, verify: str, window: int, size: int
):
    pages = list(search.pages("pages", _body(size=size), FoldOptions(verify=verify, window=window)))
    for page in pages:
        check(page)
    shown = sum(len(page["hits"]["hits"]) for page in pages)
    assert pages[-1]["dedup"]["groups_total"] == {"value": shown, "relation": "eq"}
    # No total before the end is called exact that the later pages belie.
    told = [page["dedup"]["groups_total"] for page in pages]
    assert all(one["value"] == shown for one in told if one["relation"] == "eq")
    assert all(one["value"] <= shown for one in told if one["relation"] == "gte")


@pytest.mark.parametrize(("start", "size"), [(0, 2), (0, 60), (3, 2), (5, 60)])
def test_pages_that_the_engine_collapses_add_up(search: FoldedSearch, start: int, size: int):
    body = _body(**{"from": start, "size": size})
    answer = search.search("pages", body, FoldOptions(mode="native"))
    assert answer["dedup"]["mode"] == "native"
    check(answer)


def test_members_from_the_index_are_named_apart(search: FoldedSearch):
    body = _body(query={"range": {"rank": {"lte": 2}}}, size=60)
    for verify in ("signature", "text"):
        answer = search.search("pages", body, FoldOptions(members_from="index", members=50, verify=verify))
        added = answer["dedup"]["from_index"]["members"]
        assert added > 0
        assert f"; {added} more cop" in counters_line(answer)
        first, members = counters_line(answer).split(";")[0], answer["hits"]["hits"]
        assert first.startswith(f"{len(members)} result")
        assert answer["dedup"]["groups"] + answer["dedup"]["folded"] == 3


def test_a_total_by_text_is_exact_only_where_all_groups_are_on_the_page(search: FoldedSearch):
    by_text = FoldOptions(verify="text")
    whole = search.search("pages", _body(size=60), by_text)
    assert whole["dedup"]["by_text"] != {"joined": 0, "parted": 0}
    total = {"value": len(whole["hits"]["hits"]), "relation": "eq"}
    assert whole["dedup"]["groups_total"] == total
    part = search.search("pages", _body(size=1), by_text)["dedup"]["groups_total"]
    assert (part["relation"], part["method"]) == ("estimate", METHOD_BY_TEXT)
