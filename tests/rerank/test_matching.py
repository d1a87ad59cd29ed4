"""Passages found in an index, as comparing with each document finds them; and of stored hits."""

import asyncio
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.copied import FIELD, find_matches, make, pipeline_of, recipe_of
from support.hits import fill, split
from support.servers.choose import examples
from support.taps import Awaited

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, InputError, UnknownLanguage
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.ingest.index_mapping import recipe_mappings
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.explanation import matched_passages, shown_fields
from shinglefold.rerank.matching import AsyncMatchSearch, MatchOptions, MatchSearch
from shinglefold.rerank.request.fold_options import Explain

CANONICALIZER = Canonicalizer.of(make_scheme())


@contextmanager
def filled(folder, documents):
    """An engine with an index ``site`` of documents with their passages, each by its id."""
    with EmbeddedEngine(folder, CANONICALIZER) as engine:
        engine.create_index("site", recipe_mappings(recipe_of()), {})
        store(engine, documents)
        yield engine


def store(engine, documents) -> None:
    given = [{"_id": id_, "title": "", "body": body} for id_, body in documents.items()]
    actions = [
        {"_index": "site", "_id": made.document.pop("_id"), "_source": made.document}
        for made in process_block(pipeline_of(), given).outcomes
    ]
    assert not engine.bulk(actions).failures
    engine.refresh("site")


@pytest.fixture(scope="module", params=[False, True], ids=["words", "chinese"])
def copied(request):
    return make(chinese=request.param)


@pytest.fixture(scope="module")
def engine(copied, tmp_path_factory):
    with filled(tmp_path_factory.mktemp("matching"), copied.documents) as engine:
        engine.create_index("plain", mappings(make_scheme()), {})
        yield engine


@pytest.mark.long(every=16)
@pytest.mark.parametrize("least", [0.05, 0.2])
def test_all_that_have_enough_of_a_text_are_found_and_nobody_else(engine, copied, least):
    search = MatchSearch(engine)
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


@pytest.mark.long(every=2)
def test_a_document_changed_without_its_elements_is_counted(copied, tmp_path):
    with filled(tmp_path, copied.documents) as engine:
        first, *rest = sorted(copied.wanted(1, 0.05))
        source = {**engine.get("site", first)["_source"], "body": "nothing of it is left here"}
        engine.bulk([{"_index": "site", "_id": first, "_source": source}])
        engine.refresh("site")
        page = find_matches(engine, "site", copied.sources[1], size=100)
        assert sorted(one.id for one in page.matches) == rest
        assert page.unreadable == 1


@pytest.mark.parametrize(("size", "window"), [(1, 2), (3, 4), (4, 100)])
def test_pages_have_each_document_once(engine, copied, size, window):
    search = MatchSearch(engine)
    pages = list(
        search.pages("site", copied.sources[2], MatchOptions(size=size, window=window, max_window=8))
    )
    found = [one.id for page in pages for one in page.matches]
    assert sorted(found) == sorted(copied.wanted(2, 0.05))
    assert all(len(page.matches) <= size for page in pages)


def test_a_place_of_another_search_is_refused(engine, copied):
    search = MatchSearch(engine)
    place = search.find("site", copied.sources[0], MatchOptions(size=1)).next
    assert place is not None
    with pytest.raises(ConfigError, match="first page"):
        search.find("site", copied.sources[1], MatchOptions(size=1), place=place)
    with pytest.raises(ConfigError, match="first page"):
        search.find("site", copied.sources[0], MatchOptions(size=1, min_share=0.1), place=place)


@pytest.mark.long(every=2)
def test_what_was_deleted_is_never_found_and_what_was_changed_is_found_as_it_is(copied, tmp_path):
    with filled(tmp_path, copied.documents) as engine:
        wanted = sorted(copied.wanted(0, 0.05))
        for gone in wanted[:3]:
            engine.bulk([{"_op_type": "delete", "_index": "site", "_id": gone}])
            engine.refresh("site")
            assert gone not in {one.id for one in find_matches(engine, "site", copied.sources[0]).matches}
        store(engine, {wanted[3]: copied.sources[0]})
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


@pytest.mark.long
def test_a_text_of_a_thousand_times_the_words_is_asked_for_by_a_sample(engine, copied):
    text = " ".join([*copied.sources * 10, *copied.documents.values()])
    page = find_matches(engine, "site", text, min_share=0.001, size=100)
    assert {one.id for one in page.matches} >= set().union(*(copied.wanted(n, 0.3) for n in range(6)))


def test_the_end_of_a_text_of_millions_of_characters_counts_as_its_beginning_does(tmp_path):
    strangers = " ".join(["filler"] * 160_000)
    passage = " ".join(f"word{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh")
    with filled(tmp_path, {"long": f"{strangers} {passage}", "other": strangers}) as engine:
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
        MatchSearch(engine, language="xx").find("site", "x")


def test_other_endings_and_other_apostrophes_match(tmp_path):
    stored = "Робітники п'ятого цеху зняли старий асфальт на великому мосту через річку біля об'їзду"
    asked = "робітник п’ятого цеху зняв старий асфальт на великих мосту через річки біля об`їзду"
    with filled(tmp_path, {"one": stored}) as engine:
        (match,) = find_matches(engine, "site", asked).matches
        assert match.share > 0.5


def test_a_document_whose_text_is_not_stored_is_counted(tmp_path):
    text = " ".join(f"word{n}" for n in range(40))
    with filled(tmp_path, {}) as engine:
        (made,) = process_block(pipeline_of(), [{"_id": "x", "body": text}]).outcomes
        engine.bulk([{"_index": "site", "_id": "x", "_source": {FIELD: made.document[FIELD]}}])
        engine.refresh("site")
        page = find_matches(engine, "site", text)
        assert (page.matches, page.unreadable) == ((), 1)


def test_an_awaited_engine_answers_the_same(engine, copied):
    page = asyncio.run(AsyncMatchSearch(Awaited(engine)).find("site", copied.sources[0]))
    assert page == find_matches(engine, "site", copied.sources[0])


ONE = "The bridge over the river will be closed for repair on Monday at nine in the evening"
OTHER = "Read this: the bridge over the river will be closed for repair on Tuesday at nine in the evening"


def test_places_are_those_of_the_stored_field():
    (passage,) = matched_passages({"title": "Repair", "body": ONE}, {"body": OTHER}, ["title", "body"], split)
    assert passage["shown"] == {
        "field": "body",
        "start": 0,
        "end": len(ONE),
        "text": ONE,
        "differing": [{"start": ONE.index("Monday"), "end": ONE.index("Monday") + 6, "text": "Monday"}],
    }
    assert passage["member"]["start"] == OTHER.index("the bridge")
    assert [one["text"] for one in passage["member"]["differing"]] == ["Tuesday"]
    assert passage["equal_tokens"] == 16


def test_a_passage_may_stand_in_another_field_but_not_in_two():
    half = " ".join(ONE.split()[:8])
    rest = ONE.removeprefix(half).strip()
    found = matched_passages({"body": ONE}, {"title": half, "body": rest}, ["title", "body"], split)
    assert [one["member"]["field"] for one in found] == ["title", "body"]
    assert [one["shown"]["text"] for one in found] == [half, rest]


def test_fields_may_be_lists_and_lie_in_objects():
    shown, member = {"page": {"parts": ["Nothing", ONE]}}, {"page.parts": [ONE]}
    (passage,) = matched_passages(shown, member, ["page.parts"], split)
    assert (passage["shown"]["value"], passage["member"]["value"]) == (1, 0)
    assert passage["shown"]["text"] == passage["member"]["text"] == ONE


@pytest.mark.parametrize("source", [{}, {"body": None}, {"body": 7}, {"body": [1, None]}, {"body": ""}])
def test_what_is_no_text_matches_nothing(source):
    assert matched_passages(source, {"body": ONE}, ["body"], split) == []
    assert matched_passages({"body": ONE}, source, ["body"], split) == []


texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=40).map(" ".join), max_size=3)


@given(texts, texts)
@settings(max_examples=examples(100), deadline=None)
def test_without_the_differing_words_both_sides_are_equal(one, other):
    for passage in matched_passages({"t": one}, {"t": other}, ["t"], split):
        left, right = (_without(passage[side], texts) for side, texts in (("shown", one), ("member", other)))
        assert left == right
        assert len(left) == passage["equal_tokens"]


def _without(side, texts):
    text = texts[side["value"]]
    assert text[side["start"] : side["end"]] == side["text"]
    kept, at = [], side["start"]
    for mark in side["differing"]:
        assert text[mark["start"] : mark["end"]] == mark["text"]
        kept += text[at : mark["start"]].split()
        at = mark["end"]
    return kept + text[at : side["end"]].split()


@pytest.fixture(scope="module")
def site(tmp_path_factory, scheme, canonicalizer):
    pages = {"one": ("Bridge", ONE), "other": ("Bridge", OTHER), "apart": ("Weather", "Rain until Friday")}
    with EmbeddedEngine(tmp_path_factory.mktemp("passages"), canonicalizer) as engine:
        prints = Fingerprinter(scheme, canonicalizer).fingerprint([body for _, body in pages.values()])
        sources = {
            id_: {"title": title, "body": body, "_dedup": print_.to_field()}
            for (id_, (title, body)), print_ in zip(pages.items(), prints, strict=True)
        }
        fill(engine, "site", sources, mappings(scheme), title="text", body="text")
        made = mappings(scheme)
        made["_meta"]["shinglefold"]["fields"] = ["body"]
        fill(engine, "named", sources, made, title="text", body="text")
        yield FoldedSearch(engine, scheme)


def explained(site, index, explain, **more):
    body = {"query": {"match": {"body": "bridge"}}, "_source": ["title", "body"], **more}
    answer = site.search(index, body | {"ext": {"dedup": {"explain": explain, "min_resemblance": 0.4}}})
    (told,) = answer["dedup"]["explain"]
    return told["members"]


@pytest.mark.parametrize("index", ["site", "named"])
def test_a_search_tells_on_demand_which_passages_match(site, index):
    (member,) = explained(site, index, {"passages": True}, highlight={"fields": {"body": {}}})
    assert member["resemblance"] > 0.4
    (passage,) = member["passages"]
    assert {passage["shown"]["text"], passage["member"]["text"]} == {ONE, OTHER[OTHER.index("the") :]}


def test_fields_of_the_request_win(site):
    (member,) = explained(site, "site", {"passages": True, "fields": ["title"]})
    assert member["passages"] == []


@pytest.mark.parametrize("explain", [True, {"passages": False}])
def test_without_demand_no_texts_are_read(site, explain):
    (member,) = explained(site, "site", explain)
    assert "passages" not in member


def test_passages_are_told_on_pages_of_a_cursor_too(site):
    options = FoldOptions(explain=Explain(), min_resemblance=0.4)
    (page,) = site.pages("site", {"query": {"match": {"body": "bridge"}}}, options)
    assert page["dedup"]["explain"][0]["members"][0]["passages"]


def test_a_search_makes_the_canonicalizer_it_needs(site, scheme):
    own = FoldedSearch(site._engine, scheme)
    body = {"query": {"match": {"body": "bridge"}}}
    options = FoldOptions(explain=Explain(), min_resemblance=0.4)
    assert own.search("site", body, options)["dedup"] == site.search("site", body, options)["dedup"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"passage": True}, "'passages'"),
        ({"passages": 3}, "passages"),
        ({"passages": True, "fields": "body"}, "fields"),
        ("passages", "explain"),
    ],
)
def test_what_can_not_be_meant_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        FoldOptions.parse({"explain": given})


@pytest.mark.parametrize(
    ("source", "asked", "hidden"),
    [
        (False, (), "title, body"),
        (["author"], (), "title, body"),
        (["title"], ("title", "body"), "body"),
        (["title"], ("body", "author"), "body, author"),
    ],
)
def test_fields_that_hits_do_not_show_are_named(source, asked, hidden):
    with pytest.raises(ConfigError, match=f"leaves out: {hidden}\\."):
        shown_fields(source, asked, ("title", "body"))


def test_of_known_fields_those_are_compared_that_hits_show():
    assert shown_fields(["title"], (), ("title", "body")) == ("title",)
    assert shown_fields(None, ("body",), ("title",)) == ("body",)
