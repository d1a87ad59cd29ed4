"""Users who see some documents or fields: folding shows them nothing that a plain search does not."""

import json

import pytest
from support.maintenance import check_a_backfill_is_refused

from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.maintenance import diagnose
from shinglefold.model.recipe import with_passages
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.matching import MatchOptions, MatchSearch
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch

INDEX = "public-pages"
BODY = {"query": {"match_all": {}}, "sort": [{"id": "asc"}], "size": 5}
#: Everything of a response that may hold documents.
OPTIONS = [
    FoldOptions(members=10),
    FoldOptions(window=10, members=10),
    FoldOptions(explain=True, members=10),
    FoldOptions(linkage="connected", members=10),
    FoldOptions.parse({"explain": {"passages": True}, "members": 10}),
    FoldOptions.parse({"members": {"size": 10, "_source": ["title", "id"]}}),
    FoldOptions(members=10, members_from="index"),
]


def visible(engine):
    return {hit["_id"]: hit for hit in engine.search(INDEX, {"size": 1000})["hits"]["hits"]}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_documents_that_are_hidden_stand_nowhere_in_an_answer(engine_of, users, site, scheme, options):
    partly = engine_of(users["partly"])
    seen, every = visible(partly), visible(site.engine)
    assert 0 < len(seen) < len(every)
    folded = FoldedSearch(partly, scheme, tiebreaker="id")
    shown = set()
    for start in range(0, 25, 5):
        text = json.dumps(folded.search(INDEX, {**BODY, "from": start}, options))
        assert not [id_ for id_ in every.keys() - seen.keys() if f'"{id_}"' in text]
        shown |= {id_ for id_ in seen if f'"{id_}"' in text}
    assert shown == seen.keys()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fields_that_are_hidden_stand_nowhere_in_an_answer(engine_of, users, site, scheme, options):
    folded = FoldedSearch(engine_of(users["blinkered"]), scheme, tiebreaker="id")
    words = {word for hit in visible(site.engine).values() for word in hit["_source"]["body"].split()}
    titles = {hit["_source"]["title"] for hit in visible(site.engine).values()}
    text = json.dumps(folded.search(INDEX, {**BODY, "size": 20}, options), ensure_ascii=False)
    for title in titles:
        text = text.replace(title, "")
    assert not [word for word in words if f" {word} " in text]


def test_copies_that_are_hidden_are_not_found_and_a_hidden_document_has_none(engine_of, users, site):
    partly = engine_of(users["partly"])
    seen, every = visible(partly), visible(site.engine)
    search, options = SimilarSearch(partly), SimilarOptions(size=100, source=None)
    known = SimilarSearch(site.engine)
    hidden = 0
    for id_ in every:
        all_copies = {one.id for one in known.find(INDEX, id_, options).matches}
        if id_ not in seen:
            with pytest.raises(InputError, match="no document"):
                search.find(INDEX, id_, options)
            continue
        page = search.find(INDEX, id_, options)
        assert {one.id for one in page.matches} == all_copies & seen.keys()
        assert (page.total, page.exact) == (len(page.matches), True)
        hidden += len(all_copies - seen.keys())
    assert hidden > 0


def test_sources_of_copies_have_no_hidden_fields(engine_of, users, site):
    page = SimilarSearch(engine_of(users["blinkered"])).find(INDEX, "page-0-0", SimilarOptions(source=None))
    assert page.matches
    assert all("body" not in one.hit["_source"] for one in page.matches)


def test_a_field_that_is_hidden_is_a_field_that_is_not_there(engine_of, users, site, scheme):
    options = FoldOptions.parse({"explain": {"passages": True, "fields": ["title", "body"]}})
    with pytest.raises(ConfigError, match="unknown field"):
        FoldedSearch(engine_of(users["blinkered"]), scheme, tiebreaker="id").search(INDEX, BODY, options)


def test_a_cursor_walks_what_is_seen_and_nothing_else(engine_of, users, site, scheme):
    partly = engine_of(users["partly"])
    folded = FoldedSearch(partly, scheme, tiebreaker="id")
    pages = list(folded.pages(INDEX, BODY, FoldOptions(members=10)))
    ids = [
        member["_id"]
        for page in pages
        for hit in page["hits"]["hits"]
        for member in hit["inner_hits"]["duplicates"]["hits"]["hits"]
    ]
    assert sorted(ids) == sorted(visible(partly))


def test_a_cursor_of_somebody_else_shows_no_more(engine_of, users, site, scheme):
    key = bytes(32)
    partly = engine_of(users["partly"])
    mine = FoldedSearch(partly, scheme, tiebreaker="id", cursor_key=key)
    theirs = FoldedSearch(site.engine, scheme, tiebreaker="id", cursor_key=key)
    cursor = theirs.search(INDEX, BODY, FoldOptions(cursor=True))["dedup"]["cursor"]
    hidden = visible(site.engine).keys() - visible(partly).keys()
    while cursor:
        answer = mine.search(INDEX, BODY, FoldOptions(cursor=cursor, members=10))
        text = json.dumps(answer["hits"])
        assert not [id_ for id_ in hidden if f'"{id_}"' in text]
        cursor = answer["dedup"]["cursor"]


@pytest.mark.parametrize("name", ["partly", "blinkered"])
def test_a_backfill_by_who_sees_a_part_changes_nothing_and_says_why(
    engine_of, users, site, scheme, pipeline, name
):
    check_a_backfill_is_refused(site.engine, engine_of(users[name]), INDEX, f"public-{name}", pipeline)


def test_a_doctor_who_sees_some_documents_examines_those(engine_of, users, site, pipeline):
    found = diagnose(engine_of(users["partly"]), INDEX, pipeline)
    assert found.healthy
    assert found.documents == len(visible(engine_of(users["partly"])))


def test_a_doctor_who_does_not_see_the_text_says_so_and_calls_nothing_stale(engine_of, users, site, pipeline):
    found = diagnose(engine_of(users["blinkered"]), INDEX, pipeline)
    assert found.findings == {"hidden": found.documents}
    assert (found.unseen, found.healthy) == (("body",), False)
    assert diagnose(site.engine, INDEX, pipeline).healthy


@pytest.fixture
def quoted(site, scheme):
    """An index of the same documents that stores what passages are found by."""
    name = "public-quoted"
    if not site.engine.index_exists(name):
        pipeline = Pipeline.from_json(with_passages(default_definition(), "_dedup"), scheme)
        given = [hit["_source"] for hit in visible(site.engine).values()]
        fields = site.engine.mappings(INDEX)["properties"]
        properties = {field: fields[field] for field in fields if field != "_dedup"}
        index_documents(site.engine, name, given, pipeline, properties=properties, workers=1)
    return name


def test_passages_are_found_in_the_documents_a_user_sees_and_in_no_other(engine_of, users, site, quoted):
    every = {hit["_id"]: hit for hit in site.engine.search(quoted, {"size": 1000})["hits"]["hits"]}
    partly = engine_of(users["partly"])
    seen = {hit["_id"] for hit in partly.search(quoted, {"size": 1000})["hits"]["hits"]}
    options, hidden = MatchOptions(size=100), 0
    for id_ in list(every)[:6]:
        text = every[id_]["_source"]["body"]
        known = {one.id for one in MatchSearch(site.engine).find(quoted, text, options).matches}
        page = MatchSearch(partly).find(quoted, text, options)
        assert {one.id for one in page.matches} == known & seen
        assert page.candidates <= len(seen)
        assert not [one for one in every.keys() - seen if f'"{one}"' in json.dumps(page.to_json())]
        hidden += len(known - seen)
    assert hidden > 0


def test_who_does_not_see_the_text_is_shown_no_passage_of_it(engine_of, users, site, quoted):
    (hit,) = site.engine.search(quoted, {"size": 1})["hits"]["hits"]
    body = hit["_source"]["body"]
    page = MatchSearch(engine_of(users["blinkered"])).find(quoted, body, MatchOptions(source=None))
    told = json.dumps(page.to_json(), ensure_ascii=False)
    assert body[:40] not in told
    assert page.matches == ()
    assert page.unreadable == page.candidates > 0
