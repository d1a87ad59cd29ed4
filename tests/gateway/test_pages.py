"""The pages: what they show is what the index says, in four languages, whatever documents contain."""

import json
import re
from contextlib import closing

import pytest
from support.pages import check_page, served

import shinglefold
from shinglefold.cli.main import main
from shinglefold.gateway.pages import pages_app
from shinglefold.gateway.pages.documents import document_json
from shinglefold.gateway.pages.guard import POLICY
from shinglefold.gateway.pages.shared import LANGUAGES
from shinglefold.model.recipe import Recipe
from shinglefold.registry import make_scheme

#: Text that most hostile documents have, so that a search finds them and they fold.
TEXT = (
    "The bridge over the river closes for repairs in May, and buses take another road until the work is done."
)
ATTACK = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}</title>"
HOSTILE = {
    "an address": {"_id": "https://example.org/a?b=c&d=%2F#e", "title": "an address", "body": TEXT},
    "slashes": {"_id": "../../a//b\\c", "title": "slashes", "body": TEXT},
    "quotes and a newline": {"_id": "a\"b'c\nd`e", "title": "quotes", "body": TEXT},
    "markup in the id": {"_id": ATTACK, "title": "markup", "body": TEXT},
    "markup in the fields": {
        "title": ATTACK,
        "body": f"{ATTACK} {TEXT} {ATTACK}",
        "host": ATTACK,
        "url": "javascript:alert(3)",
        "lang": 'en" onclick="alert(4)',
        "date": ATTACK,
    },
    "HTML": {"format": "html", "title": "HTML", "body": f"<p>{TEXT}</p><script>alert(5)</script>"},
    "no title": {"body": TEXT},
    "an empty title": {"title": " ", "body": TEXT},
    "lists": {"title": "lists", "body": TEXT, "host": [ATTACK, "b"], "url": ["x"], "lang": ["en", "uk"]},
    "a title of 100,000 characters": {"title": "bridge " * 15_000, "body": TEXT},
    "right to left": {
        "title": "\u202eהגשר נסגר לתיקון במאי",
        "body": f"{TEXT} הגשר נסגר לתיקון במאי",
        "lang": "he",
    },
    "control characters": {"title": "a\x02b\x03c\x00d", "body": f"\x02 {TEXT} \x03\x02"},
    "10,000 words": {"title": "long", "body": f"{TEXT} {' '.join(f'word{n} and' for n in range(5_000))}"},
    "10,000 other words": {
        "title": "long 2",
        "body": f"{TEXT} {' '.join(f'word{n} or' for n in range(5_000))}",
    },
}


@pytest.fixture(scope="module")
def get(site):
    with served(pages_app(site)) as send:
        yield send


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("hostile"))
    shinglefold.setup(folder, "odd", text=["title", "body"], languages=["en"], groups=True)
    with closing(shinglefold.open(folder, "odd")) as opened:
        documents = [{"_id": name, **document} for name, document in HOSTILE.items()]
        assert opened.index(documents).indexed == len(HOSTILE)
        with served(pages_app(opened)) as send:
            yield send


PAGES = {
    "search": ("/", {"q": "ремонт моста"}),
    "search without words": ("/", {}),
    "nothing found": ("/", {"q": "zzzzqqq"}),
    "search with options": (
        "/",
        {"q": "bridge", "representative": "newest:date", "scope": "host", "min_resemblance": ".7"},
    ),
    "groups": ("/groups", {}),
    "groups by other fields": ("/groups", {"host_field": "url", "most": "2"}),
    "compare": ("/compare", {"a": "ru-bridge-repair-1", "b": "ru-bridge-repair-2"}),
    "compare strangers": ("/compare", {"a": "ru-bridge-repair-1", "b": "ru-bridge-wind-1"}),
    "compare texts": ("/compare", {"text_a": TEXT, "text_b": TEXT.replace("May", "June")}),
    "compare nothing": ("/compare", {}),
    "adviser": ("/adviser", {}),
    "adviser by changes": ("/adviser", {"changed": "150", "of": "500"}),
    "adviser without an answer": ("/adviser", {"resemblance": ".2", "miss": ".001", "strangers": ".01"}),
    "index": ("/recipe", {}),
    "examined": ("/recipe", {"examine": "1"}),
}


@pytest.mark.long(every=12)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_in_every_language_and_as_json(get, name):
    path, parameters = PAGES[name]
    for language in LANGUAGES:
        status, headers, text = get(path, parameters, accept_language=language)
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8"), text
        assert headers["content-security-policy"] == POLICY
        check_page(text)
        assert f'<html lang="{language}">' in text
        # An explicit language wins over that of the browser, and links keep it.
        text = get(path, {**parameters, "lang": language}, accept_language="fr")[2]
        assert f'<html lang="{language}">' in text
        assert f'href="/recipe?lang={language}"' in text
    as_json = get(path, parameters, accept="application/json")
    assert as_json[1]["content-type"] == "application/json"
    assert get(path, {**parameters, "format": "json"})[2] == as_json[2]
    assert json.loads(as_json[2])["index"] == "site"


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents(hostile, name):
    id_ = HOSTILE[name].get("_id", name)
    other = "no title" if name != "no title" else "an empty title"
    status, _, text = hostile("/compare", {"a": id_, "b": other})
    assert status == 200, text
    check_page(text)
    found = json.loads(hostile("/compare", {"a": id_, "b": other, "format": "json"})[2])
    assert [side["id"] for side in found["answer"]["sides"]] == [id_, other]
    for side in found["answer"]["sides"]:
        shown = "".join(one["text"] for one in side["ranges"])
        assert len(shown) + side["cut"] >= len(shown) > 0
        assert (side["cut"] > 0) == (side["id"].startswith(("10,000", "a title of")))
    # The page says so where it cuts.
    assert ("Cut: " in text) == any(side["cut"] for side in found["answer"]["sides"])


def test_a_list_of_titles_and_a_year_are_shown_whole():
    recipe = Recipe(make_scheme(codes=["en"]), {}, fields=("title", "body"))
    hit = {"_id": "1", "_index": "odd", "_source": {"title": ["News of", "the day"], "date": 2026}}
    shown = document_json(hit, recipe, "odd")
    assert (shown["title"], shown["date"]) == ("News of, the day", "2026-01-01")


def test_hostile_documents_on_the_other_pages(hostile):
    status, _, text = hostile("/", {"q": "bridge repairs"})
    elements = check_page(text)
    assert status == 200
    # A title that is cut says so.
    assert re.search(r"bridge…\s*<", text)
    # Ids come back out of addresses as they went in: each link to a comparison works.
    links = [one for one in elements.values("a", "href") if one.startswith("/compare?")]
    assert len(links) >= 5
    assert {hostile(one)[0] for one in links} == {200}
    for path in ("/groups", "/recipe"):
        status, _, text = hostile(path, {"examine": "1"} if path == "/recipe" else {})
        assert status == 200
        check_page(text)
    for words in (ATTACK, "\u202e", "a\nb", "x" * 1_999, "\x00", "title:(", '"'):
        status, _, text = hostile("/", {"q": words})
        check_page(text)
        assert status == 200, text


def test_a_search_shows_both_orders(site, get):
    body = {"query": {"multi_match": {"query": "ремонт моста", "fields": ["title^2", "body"]}}, "size": 50}
    before = [hit["_id"] for hit in site.search({**body, "ext": {"dedup": False}})["hits"]["hits"]]
    page = site.search(body)
    after = [hit["_id"] for hit in page["hits"]["hits"]]
    own, places = [], {}
    for start in (0, 4):
        answer = json.loads(get("/", {"q": "ремонт моста", "size": 4, "from": start, "format": "json"})[2])[
            "answer"
        ]
        assert [one["document"]["id"] for one in answer["before"]] == before[start : start + 4]
        for one in answer["after"]:
            own.append(one["document"]["id"])
            assert before[one["rank"] - 1] == one["document"]["id"]
            places |= {two["document"]["id"]: one["place"] for two in (one, *one["members"])}
            assert one["folded"] == len(one["members"])
            for member in one["members"]:
                assert before[member["rank"] - 1] == member["document"]["id"]
                why = member["why"]
                assert why["decided_by"] in ("same_text", "estimate")
                assert why["decided_by"] == "same_text" or why["resemblance"] >= why["needed"]
                assert member["passages"]
        for one in answer["before"]:
            if one["shown"]:
                assert own[one["place"] - 1] == one["document"]["id"]
            elif one["place"] is not None:
                assert places[one["document"]["id"]] == one["place"]
            else:
                assert places[one["document"]["id"]] <= start
        assert answer["hits"]["value"] == len(before)
        assert answer["groups"] == page["dedup"]["groups_total"]
        assert answer["more"] == (start + 4 < len(after))
    assert own == after[:8]


def test_marked_words_are_those_that_differ(get):
    found = json.loads(
        get("/compare", {"text_a": TEXT, "text_b": TEXT.replace("May", "June"), "format": "json"})[2]
    )
    marked = [[one["text"] for one in side["ranges"] if one["differs"]] for side in found["answer"]["sides"]]
    assert marked == [["May"], ["June"]]
    assert found["answer"]["folds"] is True


def test_the_adviser_is_that_of_the_command(get, capsys):
    assert main(["advise", "layout", "--resemblance", ".7", "--documents", "5000", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    advised = json.loads(get("/adviser", {"resemblance": ".7", "documents": "5000", "format": "json"})[2])[
        "advised"
    ]
    same = ("preset", "groups", "group_size", "min_shared", "threshold", "found", "bytes", "false_folds")
    assert {name: advised[name] for name in same} == {name: printed[name] for name in same}


WRONG = {
    "an unknown page": ("/nothing", {}, 404, "there is no page /nothing; the pages are /, /groups"),
    "an unknown parameter": ("/", {"query": "x"}, 400, "unknown parameter of this page 'query'"),
    "a bad number": ("/", {"q": "x", "size": "many"}, 400, "size=many: expected a whole number from 1 to 50"),
    "a long number": (
        "/",
        {"q": "x", "size": "000000000001000"},
        400,
        "expected a whole number from 1 to 50",
    ),
    "too many documents": ("/adviser", {"documents": "1" * 400}, 400, "expected a whole number from 2"),
    "a bad share": ("/", {"q": "x", "min_resemblance": "nan"}, 400, "expected a number between 0 and 1"),
    "a bad policy": ("/", {"q": "x", "representative": "newst:date"}, 400, "newst"),
    "a bad scope": ("/", {"q": "x", "scope": "hosst"}, 400, "hosst"),
    "a missing document": ("/compare", {"a": "x", "b": "y"}, 404, "no document 'x' in the index 'site'"),
    "one document": ("/compare", {"a": "x"}, 400, "give both"),
    "a missing field": ("/groups", {"date_field": "datte"}, 400, "datte"),
    "more changes than words": ("/adviser", {"changed": "5", "of": "5"}, 400, "changed=5 of=5"),
    "too many words": ("/", {"q": "x" * 2_001}, 400, "give at most 2,000"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_to_do(get, name):
    path, parameters, expected, message = WRONG[name]
    status, headers, text = get(path, parameters)
    assert status == expected
    assert headers["content-security-policy"] == POLICY
    check_page(text)
    error = json.loads(get(path, {**parameters, "format": "json"})[2])["error"]
    assert message in error["message"]
    assert "Traceback" not in text


def test_faults_show_no_trace(tmp_path, caplog):
    shinglefold.setup(str(tmp_path), "bare", text=["body"], languages=["en"])
    opened = shinglefold.open(str(tmp_path), "bare")
    with served(pages_app(opened)) as send:
        # An index without group numbers has the remedy, as commands without backquotes.
        text = send("/groups")[2]
        assert "shinglefold regroup bare" in text
        opened.engine.bulk([{"_op_type": "index", "_index": "bare", "_id": "1", "body": "A bridge."}])
        opened.engine.refresh("bare")
        assert "shinglefold backfill bare" in send("/recipe")[2]
        assert "`" not in text
        opened.engine.delete_index("bare")
        assert send("/", {"q": "x"})[0] == 404
        opened.close()
        status, headers, text = send("/", {"q": "x"})
    assert status >= 500
    assert headers["content-security-policy"] == POLICY
    assert "Traceback" not in text
    assert 'File "' not in text
    check_page(text)


def test_a_page_that_must_wait_for_others_says_so(site, monkeypatch):
    monkeypatch.setattr("shinglefold.gateway.pages.shared._AT_ONCE", 0)
    with served(pages_app(site)) as send:
        status, _, text = send("/groups")
    assert status == 503
    assert "try again in a minute" in text


def test_two_documents_are_compared_by_the_scopes_of_the_index(tmp_path):
    host = {"host": {"type": "keyword"}}
    shinglefold.setup(tmp_path, "site", text=["body"], languages=["en"], properties=host)
    with shinglefold.open(tmp_path, "site", dedup={"scope": "host"}) as opened:
        hosts = ("a.org", "b.org", "a.org")
        opened.index({"id": f"{at}", "body": TEXT, "host": host} for at, host in enumerate(hosts))
        assert len(opened.search()["hits"]["hits"]) == 2
        with served(pages_app(opened)) as send:
            for other, verdict in (("1", (False, "scope")), ("2", (True, "same_text"))):
                page = json.loads(send("/compare", {"a": "0", "b": other, "format": "json"})[2])["answer"]
                assert (page["folds"], page["decided_by"]) == verdict
