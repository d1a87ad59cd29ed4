"""Passages found in an index: everything that comparing with each document finds, best first, paged."""

import asyncio

import pytest
from support.copied import FIELD, find_matches, make, pipeline_of, recipe_of

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, InputError, UnknownLanguage
from shinglefold.ingest import mappings
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.registry import make_scheme
from shinglefold.rerank.matching import AsyncMatchSearch, MatchOptions, MatchSearch

CANONICALIZER = Canonicalizer.of(make_scheme())


def fill(engine, index, documents) -> None:
    given = [{"_id": id_, "title": "", "body": body} for id_, body in documents.items()]
    actions = [
        {"_index": index, "_id": made.document.pop("_id"), "_source": made.document}
        for made in process_block(pipeline_of(), given).outcomes
    ]
    assert not engine.bulk(actions).failures
    engine.refresh(index)


@pytest.fixture(scope="module", params=[False, True], ids=["words", "chinese"])
def copied(request):
    return make(chinese=request.param)


@pytest.fixture(scope="module")
def engine(copied, tmp_path_factory):
    with EmbeddedEngine(tmp_path_factory.mktemp("matching"), CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        fill(engine, "site", copied.documents)
        engine.create_index("plain", mappings(make_scheme()), {})
        yield engine


@pytest.mark.parametrize("least", [0.05, 0.2])
def test_all_that_have_enough_of_a_text_are_found_and_nobody_else(engine, copied, least):
    search = MatchSearch(engine, CANONICALIZER)
    options = MatchOptions(min_share=least, size=100)
    for number, source in enumerate(copied.sources):
        page = search.find("site", source, options)
        assert {one.id for one in page.matches} == copied.wanted(number, least)
        assert (page.exact, page.total, page.next) == (True, len(page.matches), None)
        assert [one.share for one in page.matches] == sorted(
            (one.share for one in page.matches), reverse=True
        )
        for one in page.matches:
            assert one.share == pytest.approx(copied.shares[number][one.id])
    assert len(copied.wanted(0, 0.05)) > 5


def test_passages_are_true_in_both_texts(engine, copied):
    for one in find_matches(engine, "site", copied.sources[1], size=100).matches:
        assert one.passages
        for passage in one.passages:
            ours, theirs = passage["text"], passage["document"]
            assert ours["text"] == copied.sources[1][ours["start"] : ours["end"]]
            assert theirs["text"] == copied.documents[one.id][theirs["start"] : theirs["end"]]
            assert theirs["field"] == "body"


def test_a_document_changed_without_its_elements_is_counted(copied, tmp_path):
    with EmbeddedEngine(tmp_path, CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        fill(engine, "site", copied.documents)
        first, *rest = sorted(copied.wanted(1, 0.05))
        source = {**engine.get("site", first)["_source"], "body": "nothing of it is left here"}
        engine.bulk([{"_index": "site", "_id": first, "_source": source}])
        engine.refresh("site")
        page = find_matches(engine, "site", copied.sources[1], size=100)
        assert sorted(one.id for one in page.matches) == rest
        assert page.unreadable == 1


@pytest.mark.parametrize(("size", "window"), [(1, 2), (3, 4), (4, 100)])
def test_pages_have_each_document_once(engine, copied, size, window):
    search = MatchSearch(engine, CANONICALIZER)
    pages = list(
        search.pages("site", copied.sources[2], MatchOptions(size=size, window=window, max_window=8))
    )
    found = [one.id for page in pages for one in page.matches]
    assert sorted(found) == sorted(copied.wanted(2, 0.05))
    assert all(len(page.matches) <= size for page in pages)


def test_a_place_of_another_search_is_refused(engine, copied):
    search = MatchSearch(engine, CANONICALIZER)
    place = search.find("site", copied.sources[0], MatchOptions(size=1)).next
    assert place is not None
    with pytest.raises(ConfigError, match="first page"):
        search.find("site", copied.sources[1], MatchOptions(size=1), place=place)
    with pytest.raises(ConfigError, match="first page"):
        search.find("site", copied.sources[0], MatchOptions(size=1, min_share=0.1), place=place)


def test_what_was_deleted_is_never_found_and_what_was_changed_is_found_as_it_is(copied, tmp_path):
    with EmbeddedEngine(tmp_path, CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        fill(engine, "site", copied.documents)
        wanted = sorted(copied.wanted(0, 0.05))
        for gone in wanted[:3]:
            engine.bulk([{"_op_type": "delete", "_index": "site", "_id": gone}])
            engine.refresh("site")
            assert gone not in {one.id for one in find_matches(engine, "site", copied.sources[0]).matches}
        fill(engine, "site", {wanted[3]: copied.sources[0]})
        (first, *_) = find_matches(engine, "site", copied.sources[0]).matches
        assert (first.id, first.share, first.of_document) == (wanted[3], 1, 1)


def test_filters_and_sources_are_as_asked(engine, copied):
    one = next(iter(sorted(copied.wanted(0, 0.05))))
    options = {"filters": ({"ids": {"values": [one]}},), "source": ["title"]}
    (match,) = find_matches(engine, "site", copied.sources[0], **options).matches
    assert (match.id, match.source) == (one, {"title": ""})
    assert find_matches(engine, "site", copied.sources[0]).matches[0].source is None


@pytest.mark.parametrize("text", ["", "two words", "<p></p>", "!!! …"])
def test_a_text_without_an_element_finds_nothing_and_says_so(engine, text):
    page = find_matches(engine, "site", text)
    assert (page.matches, page.stopped_by) == ((), "nothing_to_compare")


def test_a_text_of_a_thousand_times_the_words_is_asked_for_by_a_sample(engine, copied):
    text = " ".join([*copied.sources * 10, *copied.documents.values()])
    page = find_matches(engine, "site", text, min_share=0.001, size=100)
    assert {one.id for one in page.matches} >= set().union(*(copied.wanted(n, 0.3) for n in range(6)))


def test_the_end_of_a_text_of_millions_of_characters_counts_as_its_beginning_does(tmp_path):
    strangers = " ".join(["filler"] * 160_000)
    passage = " ".join(f"word{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh")
    with EmbeddedEngine(tmp_path, CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        fill(engine, "site", {"long": f"{strangers} {passage}", "other": strangers})
        (match,) = find_matches(engine, "site", passage).matches
        assert (match.id, match.share) == ("long", 1)
        assert match.passages[0]["document"]["start"] == len(strangers) + 1


def test_an_index_without_elements_is_refused_with_the_commands_that_make_them(engine):
    with pytest.raises(
        ConfigError, match=r"`shinglefold setup plain --passages` && `shinglefold backfill plain`"
    ):
        find_matches(engine, "plain", "some text of more than five words")


@pytest.mark.parametrize(
    "option", [{"min_share": 0}, {"min_share": 1.1}, {"min_share": True}, {"size": 0}, {"window": 10_000}]
)
def test_an_option_that_is_not_valid_is_refused(engine, option):
    with pytest.raises(ConfigError, match=next(iter(option))):
        find_matches(engine, "site", "x", **option)


def test_what_is_no_text_and_what_is_no_language_is_refused(engine):
    with pytest.raises(InputError, match="expected a text"):
        find_matches(engine, "site", 5)
    with pytest.raises(UnknownLanguage):
        MatchSearch(engine, CANONICALIZER, language="xx").find("site", "x")


def test_other_endings_and_other_apostrophes_match(tmp_path):
    stored = "Робітники п'ятого цеху зняли старий асфальт на великому мосту через річку біля об'їзду"
    asked = "робітник п’ятого цеху зняв старий асфальт на великих мосту через річки біля об`їзду"
    with EmbeddedEngine(tmp_path, CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        fill(engine, "site", {"one": stored})
        (match,) = find_matches(engine, "site", asked).matches
        assert match.share > 0.5


def test_a_document_whose_text_is_not_stored_is_counted(tmp_path):
    text = " ".join(f"word{n}" for n in range(40))
    with EmbeddedEngine(tmp_path, CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        (made,) = process_block(pipeline_of(), [{"_id": "x", "body": text}]).outcomes
        engine.bulk([{"_index": "site", "_id": "x", "_source": {FIELD: made.document[FIELD]}}])
        engine.refresh("site")
        page = find_matches(engine, "site", text)
        assert (page.matches, page.unreadable) == ((), 1)


def test_an_awaited_engine_answers_the_same(engine, copied, tmp_path):
    from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine

    awaited = AsyncEmbeddedEngine(tmp_path, CANONICALIZER)
    awaited.blocking.create_index("site", recipe_mappings(recipe_of()), {})
    fill(awaited.blocking, "site", copied.documents)

    page = asyncio.run(AsyncMatchSearch(awaited).find("site", copied.sources[0]))
    assert page == find_matches(engine, "site", copied.sources[0])
