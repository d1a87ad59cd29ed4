"""One object for an index: search, find copies, explain, write, examine."""

import inspect
import pydoc
from base64 import urlsafe_b64encode
from contextlib import closing

import pytest

import shinglefold
from shinglefold.api.index_options import IndexOptions
from shinglefold.api.index_recipe import missing_index, words_of_index
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, IndexMissing, InputError, RecipeMismatch, Refused
from shinglefold.examples import articles, temporary_index
from shinglefold.grouping import Policy
from shinglefold.ingest.writing.target_index import IndexChanged
from shinglefold.maintenance.deletion import carry_out_removal, plan_removal

SAME = "Мост через реку закрыли на ремонт до конца лета, сообщил в понедельник мэр города."
HUGE = urlsafe_b64encode(b'["", null, [1%s, "", "", ""]]' % (b"0" * 400)).decode()
DEEP = urlsafe_b64encode(b"[" * 7000).decode()
BRIDGE = {"query": {"match": {"title": "мост"}}, "size": 3}
FAMILY = {f"ru-bridge-repair-{number}" for number in range(1, 6)}


def folded(page):
    """Return the number of hits folded under each hit, by id."""
    return {
        hit["_id"]: hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] - 1
        for hit in page["hits"]["hits"]
    }


def test_a_search_shows_one_hit_a_group(site):
    assert folded(site.search(BRIDGE)) == {
        "ru-bridge-wind-1": 0,
        "ru-bridge-repair-1": 4,
        "ru-footbridge-1": 3,
    }


def test_a_request_has_its_own_options(site):
    page = site.search({**BRIDGE, "ext": {"dedup": {"fold": False}}})
    assert "dedup" not in page or page["dedup"]["folded"] == 0
    assert len({hit["_id"] for hit in page["hits"]["hits"]} & FAMILY) == 3 - 1


def test_options_given_at_the_opening_are_for_every_request(folder):
    with shinglefold.open(folder, "site", dedup={"members": 0}) as site:
        (_, repair, _) = site.search(BRIDGE)["hits"]["hits"]
        assert len(repair["inner_hits"]["duplicates"]["hits"]["hits"]) <= 1


@pytest.mark.parametrize("dedup", [5, "newest:date", ["rank"], {"representativ": "rank"}])
def test_options_for_every_request_are_checked_at_the_opening(folder, dedup):
    with pytest.raises(ConfigError, match="dedup"):
        shinglefold.open(folder, "site", dedup=dedup)


def test_options_are_shown_without_secrets(folder):
    with shinglefold.open(folder, "site", cursor_key="of cursors") as site:
        assert "of cursors" not in repr(site.options)
    assert "of seals" not in repr(IndexOptions.parse(seal_key="of seals"))


def test_one_scope_and_one_filter_need_no_list(site):
    ru = {"term": {"lang": "ru"}}
    found = site.similar("ru-bridge-repair-1", scope=["host"], filters=[ru])
    assert site.similar("ru-bridge-repair-1", scope="host", filters=ru) == found
    assert site.similar("ru-bridge-repair-1", filters={"term": {"lang": "zh"}}).matches == ()


def test_a_higher_similarity_folds_less(folder):
    with shinglefold.open(folder, "site", similarity=0.95) as site:
        assert folded(site.search(BRIDGE))["ru-bridge-repair-1"] == 2


def test_pages_end_and_repeat_no_group(site):
    shown = [
        hit["_id"]
        for page in site.pages({"query": {"match_all": {}}, "size": 20})
        for hit in page["hits"]["hits"]
    ]
    assert len(shown) == len(set(shown)) > 60


def test_several_searches_go_together(site):
    one, other = site.msearch([BRIDGE, {"query": {"unknown": {}}}])
    assert folded(one)["ru-bridge-repair-1"] == 4
    assert isinstance(other, shinglefold.ShinglefoldError)


def test_copies_of_a_stored_document_are_found(site):
    assert {match.id for match in site.similar("ru-bridge-repair-1").matches} == FAMILY - {
        "ru-bridge-repair-1"
    }


def test_copies_of_a_document_that_is_not_stored_are_found(site):
    document = next(one for one in articles() if one["id"] == "ru-bridge-repair-2")
    del document["id"]
    assert {match.id for match in site.similar(document).matches} == FAMILY
    own = site.similar(document, scope=["host"]).matches
    assert [match.hit["_source"]["host"] for match in own] == [document["host"]]


def test_a_document_without_text_is_refused(site):
    with pytest.raises(InputError, match="no text in title, body"):
        site.similar({"headline": "Мост закрыт"})


def test_passages_of_a_text_are_found(site):
    document = next(one for one in articles() if one["id"] == "ru-bridge-repair-1")
    found = site.matches(document["body"][:200]).matches
    assert {match.id for match in found} >= {"ru-bridge-repair-1"}
    assert all(match.source["body"] for match in found)


def test_phrases_are_found_with_their_function_words(site):
    def ids(phrase):
        page = site.search({"query": {"match_phrase": {"title": phrase}}, "size": 20})
        return {hit["_id"] for hit in page["hits"]["hits"]}

    assert "ru-bridge-repair-1" in ids("закроют на ремонт")
    assert "ru-bridge-repair-1" not in ids("закроют ремонт")


def test_a_document_that_fails_goes_to_the_dead_letters(folder, tmp_path):
    file = tmp_path / "failed.jsonl"
    with shinglefold.open(folder, "site") as site:
        summary = site.index([{"id": "new", "body": 7}], dead_letters=file)
    assert (summary.indexed, file.exists()) == (0, True)
    assert '"new"' in file.read_text()


def test_two_documents_are_explained(site):
    told = site.explain("ru-bridge-repair-1", "ru-bridge-repair-3")
    assert told["folds"]
    assert told["passages"]
    with pytest.raises(InputError, match="no document 'nothing'"):
        site.explain("ru-bridge-repair-1", "nothing")


def test_an_index_is_examined_and_mended(site):
    assert site.doctor().healthy
    assert site.backfill().counts.updated == 0


def test_the_groups_of_the_whole_index_are_found(site, folder):
    found = site.groups()
    assert {key.id for key in found.groups[0]} == FAMILY
    assert (found.documents, found.without_fingerprint) == (166, 0)
    with shinglefold.open(folder, "site", similarity=1.0) as exact:
        assert sum(map(len, exact.groups().groups)) < sum(map(len, found.groups))


def test_a_copy_is_refused_and_a_new_document_comes_in(folder):
    with shinglefold.open(folder, "site") as site:
        copy = next(iter(articles())) | {"id": "copy"}
        with pytest.raises(Refused) as refused:
            site.add(copy)
        assert refused.value.like == "ru-bridge-repair-1"
        fresh = {
            "id": "fresh",
            "title": "Ein neuer Titel",
            "body": "Etwas ganz anderes steht hier, und so noch nie.",
        }
        assert site.add(fresh).status == "accepted"
        first, second = site.add_all(
            [fresh | {"id": "again"}, {"id": "other", "title": "Hat mit nichts davon zu tun"}]
        )
        assert (first.status, second.status) == ("refused", "accepted")
        assert site.delete(["fresh", "other", "nothing"]) == 2
        assert site.delete("fresh") == 0


def test_the_policy_may_number_copies_instead(folder):
    with shinglefold.open(folder, "site", policy=Policy("tag")) as site:
        copy = next(iter(articles())) | {"id": "copy"}
        assert site.add(copy).group == site.add({**copy, "id": "another"}).group
        assert site.delete(["copy", "another"]) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": ["headline"]}, "text fields title, body, not headline"),
        ({"languages": ["ru"]}, "languages any, en, ru, uk, zh, not any, ru"),
        ({"fingerprint_field": "copies"}, "fingerprint field _dedup, not copies"),
    ],
)
def test_what_contradicts_the_index_is_refused(folder, given, message):
    with pytest.raises(RecipeMismatch, match=message):
        shinglefold.open(folder, "site", **given)


def test_what_agrees_with_the_index_may_be_said(folder):
    shinglefold.open(folder, "site", text=["title", "body"], fingerprint_field="_dedup").close()


def test_nobody_makes_an_index_with_the_names_of_several(folder):
    with closing(open_engine(folder)) as engine:
        told = str(missing_index(engine, "one,two", "To make it: shinglefold setup one,two"))
    assert told.endswith(". Check the names.")


def test_a_missing_index_names_the_call_that_makes_it(folder):
    with pytest.raises(
        IndexMissing, match=r"no index 'news'; there are: site\. To make 'news': shinglefold\.setup"
    ):
        shinglefold.open(folder, "news")
    with pytest.raises(
        IndexMissing, match=r"no index 'sites'; there are: site\. Did you mean 'site'\? To make 'sites': "
    ):
        shinglefold.open(folder, "sites")


@pytest.mark.parametrize(
    "given",
    [
        {"similarity": 2},
        {"policy": 7},
        {"policy": "let"},
        {"dedup": {"folds": 1}},
        {"cursor_key": 1},
        {"fingerprint_field": 1},
        {"seal_key": 1},
    ],
)
def test_bad_arguments_are_refused_before_anything_is_opened(given):
    with pytest.raises(ConfigError, match=next(iter(given)) if "dedup" not in given else "folds"):
        shinglefold.open("http://127.0.0.1:1", "site", **given)


def test_two_processes_with_the_same_settings_share_cursors(folder):
    request = {"query": {"match_all": {}}, "size": 5, "ext": {"dedup": {"cursor": True}}}
    with shinglefold.open(folder, "site") as one:
        first = one.search(request)
        cursor = first["dedup"]["cursor"]
        again = {**request, "ext": {"dedup": {"cursor": cursor, "renew": True}}}
        with shinglefold.open(folder, "site") as other:
            second = other.search(again)
        with shinglefold.open(folder, "site", cursor_key=b"x" * 32) as stranger, pytest.raises(ConfigError):
            stranger.search(again)
    shown = {hit["_id"] for hit in first["hits"]["hits"]}
    assert not shown & {hit["_id"] for hit in second["hits"]["hits"]}


def test_the_cursor_key_of_the_settings_counts(folder, monkeypatch):
    with shinglefold.open(folder, "site") as plain:
        without = plain.options.cursor_secret(plain.settings, plain.engine, "site", plain.scheme)
    monkeypatch.setenv("SHINGLEFOLD_CURSOR_KEY", "of this application")
    with shinglefold.open(folder, "site") as keyed:
        assert keyed.options.cursor_secret(keyed.settings, keyed.engine, "site", keyed.scheme) != without


def test_help_fits_a_screen_and_names_every_method():
    text = inspect.getdoc(shinglefold.FoldedIndex)
    assert len(text.splitlines()) <= 24
    public = {name for name in vars(shinglefold.FoldedIndex) if not name.startswith("_")}
    assert {
        "search",
        "similar",
        "matches",
        "explain",
        "index",
        "add",
        "delete",
        "backfill",
        "doctor",
    } <= public
    assert pydoc.render_doc(shinglefold.open)


def test_an_open_index_is_shown_in_a_line_without_its_secrets(folder):
    with shinglefold.open(folder, "site", cursor_key="a secret of thirty-two characters") as site:
        assert repr(site) == "<FoldedIndex 'site' of title, body>"


UNREAD = {
    "id": "unread",
    "headline": "Мост закроют на ремонт",
    "content": "Мост через реку Каменку закроют на ремонт с 4 мая, рабочие снимут старый асфальт.",
}


@pytest.mark.parametrize(
    "write",
    [lambda site: site.index([UNREAD]), lambda site: site.add(UNREAD), lambda site: site.add_all([UNREAD])],
)
def test_text_in_fields_that_nobody_reads_is_said(tmp_path, caplog, write):
    shinglefold.setup(tmp_path, "news", text=["title", "body"])
    with shinglefold.open(tmp_path, "news") as news:
        write(news)
    (record,) = caplog.records
    assert "no document has text in title, body" in record.message
    assert "shinglefold.setup(…, 'news', text=['headline', 'content'])" in record.message


def test_the_counts_of_a_run_have_the_remark_about_unread_text(tmp_path, caplog):
    shinglefold.setup(tmp_path, "news", text=["title", "body"])
    with shinglefold.open(tmp_path, "news") as news:
        (note,) = news.index([UNREAD]).notes
        assert "there is text in headline, content" in note
        caplog.clear()
        news.index([{"id": "photo", "url": "https://news.example/1.jpg"}, *articles()])
        news.add({"id": "other photo", "url": "https://news.example/2.jpg"})
    assert not caplog.records


def test_one_search_is_no_list_of_searches(site):
    with pytest.raises(ConfigError, match=r"bodies: expected a list of search requests, got \{'query'"):
        site.msearch(BRIDGE)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (5, ConfigError, "wanted: expected an id as text"),
        ("Мост через реку", InputError, 'for a text that is not stored give a document, such as {"body": …}'),
    ],
)
def test_what_is_no_id_says_what_is_wanted(site, wanted, error, message):
    with pytest.raises(error) as told:
        site.similar(wanted)
    assert message in str(told.value)


@pytest.mark.parametrize("body", [[], "", 0, False])
def test_an_empty_value_that_is_no_request_is_refused(site, body):
    for search in (site.search, lambda given: next(site.pages(given))):
        with pytest.raises(ConfigError, match="expected a search request"):
            search(body)


@pytest.mark.parametrize("given", [None, 5, b"x"])
def test_what_is_no_list_is_refused(site, given):
    for method in (site.msearch, site.delete):
        with pytest.raises(ConfigError, match="expected a list"):
            method(given)


@pytest.mark.parametrize(
    "after", [DEEP, HUGE, b"x", ["x"], 5], ids=["deep", "huge", "bytes", "list", "number"]
)
def test_a_place_that_no_page_named_is_refused(site, after):
    for find in (site.similar, site.matches):
        with pytest.raises(ConfigError, match="pass `next` of a page unchanged"):
            find({"body": SAME} if find == site.similar else SAME, after=after)


def test_an_index_whose_recipe_was_changed_since_is_opened_again(tmp_path):
    shinglefold.setup(tmp_path, "news", text=["body"])
    document = {"_id": "1", "title": "no word of the other", "body": "the bridge is closed until monday"}
    with shinglefold.open(tmp_path, "news") as writer:
        writer.index([document, {**document, "_id": "2"}])
    with shinglefold.open(tmp_path, "news") as before:
        shinglefold.setup(tmp_path, "news", text=["title"])
        for examine in (before.doctor, before.groups):
            with pytest.raises(IndexChanged, match="open the index again"):
                examine()
        # Checked every few seconds only, as these are asked often.
        before._watch._pause = 0
        for examine in (lambda: before.explain("1", "2"), lambda: before.similar(document)):
            with pytest.raises(IndexChanged, match="open the index again"):
                examine()
    with shinglefold.open(tmp_path, "news") as after:
        assert after.doctor().findings == {"stale": 2}


def test_an_engine_that_is_handed_in_stays_open(folder):
    with shinglefold.open(folder, "site") as opened:
        recipe, expected = opened.recipe, folded(opened.search(BRIDGE))
    with open_engine(folder, words_of_index(recipe.scheme)) as engine:
        with shinglefold.open(engine, "site") as opened:
            assert opened.recipe == recipe
            assert folded(opened.search(BRIDGE)) == expected
        assert engine.index_exists("site")
        with pytest.raises(IndexMissing, match="elsewhere"):
            shinglefold.open(engine, "elsewhere")
        assert engine.index_exists("site")


@pytest.mark.parametrize(
    "write",
    [
        lambda site: site.index(articles()),
        lambda site: site.delete(["ru-bridge-repair-1"]),
        lambda site: site.backfill(),
        lambda site: site.engine.put_mappings("site", {"_meta": site.engine.mappings("site")["_meta"]}),
    ],
    ids=["index", "delete", "backfill", "mappings"],
)
def test_an_open_index_lets_others_write_between_its_calls(write):
    folder = temporary_index("site")
    with shinglefold.open(folder, "site") as site, shinglefold.open(folder, "site") as other:
        write(site)
        assert other.delete(["ru-bridge-repair-2"]) == 1
        write(other)
        assert site.delete(["ru-bridge-repair-3"]) == 1


def test_an_engine_lets_others_write_after_a_removal():
    folder = temporary_index("site")
    with shinglefold.open(folder, "site") as site, shinglefold.open(folder, "site") as other:
        site.index(articles())
        carry_out_removal(site.engine, plan_removal(site.engine, "site"))
        assert other.delete(["ru-bridge-repair-2"]) == 1
