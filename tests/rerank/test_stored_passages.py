"""Matched passages of stored documents: true, within one field, and found by a search on demand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.model.values import Token
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.explanation import matched_passages, shown_fields
from shinglefold.rerank.request.fold_options import Explain

ONE = "The bridge over the river will be closed for repair on Monday at nine in the evening"
OTHER = "Read this: the bridge over the river will be closed for repair on Tuesday at nine in the evening"


def words(text):
    found, start = [], 0
    for word in text.split(" "):
        found.append(Token(word.lower(), start, start + len(word), "en"))
        start += len(word) + 1
    return found


def test_places_are_those_of_the_stored_field():
    (passage,) = matched_passages({"title": "Repair", "body": ONE}, {"body": OTHER}, ["title", "body"], words)
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
    found = matched_passages({"body": ONE}, {"title": half, "body": rest}, ["title", "body"], words)
    assert [one["member"]["field"] for one in found] == ["title", "body"]
    assert [one["shown"]["text"] for one in found] == [half, rest]


def test_fields_may_be_lists_and_lie_in_objects():
    shown, member = {"page": {"parts": ["Nothing", ONE]}}, {"page.parts": [ONE]}
    (passage,) = matched_passages(shown, member, ["page.parts"], words)
    assert (passage["shown"]["value"], passage["member"]["value"]) == (1, 0)
    assert passage["shown"]["text"] == passage["member"]["text"] == ONE


@pytest.mark.parametrize("source", [{}, {"body": None}, {"body": 7}, {"body": [1, None]}, {"body": ""}])
def test_what_is_no_text_matches_nothing(source):
    assert matched_passages(source, {"body": ONE}, ["body"], words) == []
    assert matched_passages({"body": ONE}, source, ["body"], words) == []


texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=40).map(" ".join), max_size=3)


@given(texts, texts)
@settings(max_examples=examples(100), deadline=None)
def test_without_the_differing_words_both_sides_are_equal(one, other):
    for passage in matched_passages({"t": one}, {"t": other}, ["t"], words):
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
        made = mappings(scheme)
        made["properties"] |= {"title": {"type": "text"}, "body": {"type": "text"}}
        engine.create_index("site", made, {})
        made["_meta"]["shinglefold"]["fields"] = ["body"]
        engine.create_index("named", made, {})
        prints = Fingerprinter(scheme, canonicalizer).fingerprint([body for _, body in pages.values()])
        for index in ("site", "named"):
            engine.bulk(
                {
                    "_index": index,
                    "_id": id_,
                    "_source": {"title": title, "body": body, "_dedup": print_.to_field()},
                }
                for (id_, (title, body)), print_ in zip(pages.items(), prints, strict=True)
            )
            engine.refresh(index)
        yield FoldedSearch(engine, scheme, canonicalizer=canonicalizer)


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
