"""compare --index: the stored facts of two documents, the verdict of a search, the passages."""

import pytest

from shinglefold.examples import articles


@pytest.fixture
def explain(run, engine_folder):
    return lambda *arguments: run("compare", "--index", "pages", "--engine", engine_folder, *arguments)


def test_copies_fold_and_share_supershingles(explain):
    told = explain("ru-bridge-repair-1", "ru-bridge-repair-4", "--json").json()
    assert told["folds"]
    assert told["shared"]
    assert told["estimate"]["resemblance"] > 0.62
    assert 0 <= told["estimate"]["standard_error"] < 0.1
    assert (told["a"]["lang"], told["b"]["lang"]) == ("ru", "ru")
    assert told["passages"]


def test_strangers_do_not_fold(explain):
    told = explain("ru-bridge-repair-1", "en-geese-1", "--json").json()
    assert not told["folds"]
    assert told["shared"] == told["passages"] == []


def test_passages_are_places_in_the_stored_texts(explain):
    texts = {one["id"]: f"{one['title']}\n{one['body']}" for one in articles() if one["format"] == "text"}
    told = explain("ru-bridge-repair-1", "ru-bridge-repair-2", "--json").json()
    for passage in told["passages"]:
        for side in ("a", "b"):
            text = texts[told[side]["id"]]
            assert passage[side]["text"] == text[passage[side]["start"] : passage[side]["end"]]
            for word in passage[side]["differing"]:
                assert word["text"] == text[word["start"] : word["end"]]


def test_the_page_tells_scheme_estimate_and_verdict(explain):
    shown = explain("ru-bridge-repair-1", "ru-bridge-repair-2").out
    for part in ("scheme            sf3-", " ± ", "of 21 shared", "verdict: they fold"):
        assert part in shown


def test_other_fields_can_be_aligned(explain):
    told = explain("ru-bridge-repair-1", "ru-bridge-repair-2", "--field", "note", "--json").json()
    assert told["passages"] == []


def test_a_missing_document_or_index_is_told(explain):
    missing = explain("ru-bridge-repair-1", "nowhere")
    assert missing.code == 1
    assert "'nowhere'" in missing.err
    assert explain("a", "b", "--index", "other").code == 1
    refused = explain("a", "b", "--width", "3")
    assert (refused.code, "leave --width out" in refused.err) == (2, True)


def test_the_text_stage_is_told_beside_the_verdict_of_signatures(explain):
    told = explain("ru-bridge-repair-1", "ru-bridge-repair-2", "--json").json()["text"]
    assert told["needed"] == 0.8
    assert 0.5 < told["similarity"] <= 1
    assert told["folds"]
    strangers = explain("ru-bridge-repair-1", "en-geese-1", "--json").json()["text"]
    assert (strangers["asked"], strangers["folds"]) == (False, False)
    shown = explain("ru-bridge-repair-1", "ru-bridge-repair-2").out
    assert "edit similarity   " in shown
    assert "by text: they fold (" in shown


@pytest.mark.parametrize(
    "words", [["compare", "ru-bridge-repair-1", "gone", "--index", "pages"], ["similar", "gone"]]
)
def test_an_id_that_is_not_there_is_told_with_some_that_are(run, engine_folder, words):
    ran = run(*words, "--engine", engine_folder)
    assert ran.code == 1
    told, command = ran.err.strip().split("; a search shows them: ")
    ids = {article["id"] for article in articles()}
    named = told.partition("whose ids are such as ")[2].replace("'", "").split(", ")
    assert len(ids.intersection(named)) == len(named) == 3
    shown = run(*command.replace("WORDS", "водохранилище").split()[1:]).json()["hits"]["hits"]
    assert ids.intersection(hit["_id"] for hit in shown)


def test_an_id_of_an_empty_index_is_told_so(run):
    assert run("setup", "news").code == 0
    assert run("similar", "gone", "--index", "news").err.endswith("'news', which has no documents\n")
