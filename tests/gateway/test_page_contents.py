"""What pages make of documents, texts and parameters: pieces, figures, bounds, and what else there is."""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

import shinglefold
from shinglefold.errors import ConfigError
from shinglefold.gateway.pages import index_pages
from shinglefold.gateway.pages.compare_page import PARAMETERS as OF_COMPARE
from shinglefold.gateway.pages.compare_page import compare_json
from shinglefold.gateway.pages.documents import (
    document_json,
    passage_pieces,
    shorten,
    snippet,
    without_middle,
)
from shinglefold.gateway.pages.search_page import PARAMETERS as OF_SEARCH
from shinglefold.gateway.pages.search_page import search_json
from shinglefold.gateway.pages.shared import Messages, PageParameters, Recent, Shared, address
from shinglefold.maintenance import Diagnosis
from shinglefold.model.recipe import Recipe
from shinglefold.registry import make_scheme
from shinglefold.sketch.layout_advice import resemblance_after

COPY = (
    "The bridge over the river closes for repairs in May, and buses take another road until the work is done."
)
OTHER = (
    "A museum of glass opened in the old mill beside the bridge last week, with a hundred windows from four "
    "centuries, a school for young glaziers, and a garden for its visitors."
)


def test_a_full_page_of_few_groups_has_a_next_one_until_all_hits_were_read(tmp_path):
    shinglefold.setup(tmp_path, "site", text=["body"], languages=["en"])
    with shinglefold.open(tmp_path, "site") as site:
        copies = [{"_id": str(at), "body": f"{COPY} bridge"} for at in range(400)]
        site.index([*copies, {"_id": "last", "body": OTHER}])
        found = []
        for start in range(3):
            given = PageParameters({"q": "bridge", "size": "1", "from": str(start)}, OF_SEARCH)
            answer = search_json(Shared(site), given)["answer"]
            found.append(([one["document"]["id"] for one in answer["after"]], answer["more"]))
        assert [(len(ids), more) for ids, more in found] == [(1, True), (1, False), (0, False)]
        assert found[1][0] == ["last"]


def test_a_search_says_where_hits_were_and_what_members_have_in_common(tmp_path):
    words = ["bridge", *(f"word{at}" for at in range(199))]
    # Where twelve words of a near-copy are others.
    changed = [(), (40, 140), (8,), *((at,) for at in range(150, 154))]
    texts = []
    for places in changed:
        others = {at + more for at in places for more in range(12)}
        texts.append(" ".join("other" if at in others else one for at, one in enumerate(words)))
    shinglefold.setup(
        tmp_path, "site", text=["body"], languages=["en"], properties={"host": {"type": "keyword"}}
    )

    def search(**given):
        return search_json(Shared(site), PageParameters({"q": "bridge word1", **given}, OF_SEARCH))

    with shinglefold.open(tmp_path, "site") as site:
        site.index([{"_id": str(at), "body": text, "host": "a"} for at, text in enumerate([*texts, OTHER])])
        assert [search(q="", scope=" host ,")[name] for name in ("size", "options", "answer")] == [
            10,
            {"scope": ["host"]},
            None,
        ]
        shown = search(size="6")["answer"]["after"][0]
        members = {one["document"]["id"]: one for one in shown["members"]}
        found = [[one["words"] for one in member["passages"]] for member in members.values()]
        # The two longest, the second only if it has ten words; of five members.
        assert (shown["document"]["id"], found) == (
            "0",
            [[88, 48], [180], [150, 38], [151, 37], [152, 36], []],
        )
        assert [len(one["members"]) for one in search(size="1")["answer"]["after"]] == [5]
        for least in ("0.4", ""):
            (why, *_) = (one["why"] for one in search(min_resemblance=least)["answer"]["after"][0]["members"])
            assert why["needed"] == (float(least) if least else site.scheme.decision.min_resemblance)
            assert 0 < why["shared"] <= why["supershingles"]
            assert 0 < why["standard_error"] < 0.2
        second = search(**{"from": "1"})["answer"]
        assert ([one["rank"] for one in second["before"]], second["after"][0]["place"]) == ([*range(2, 9)], 2)


def test_a_text_of_spaces_is_a_missing_one(site):
    for texts in ({"text_a": COPY, "text_b": " \n"}, {"text_a": " ", "text_b": COPY}, {"text_b": COPY}):
        with pytest.raises(ConfigError, match="a text is missing"):
            compare_json(Shared(site), PageParameters(texts, OF_COMPARE))


def side(text, *differing, start=1000):
    marks = [{"start": start + begin, "end": start + end} for begin, end in differing]
    return {"text": text, "start": start, "differing": marks}


@pytest.mark.parametrize(
    ("given", "pieces"),
    [
        (side("abc"), [("abc", False)]),
        (side("abcdef", (2, 4)), [("ab", False), ("cd", True), ("ef", False)]),
        (side("abcdef", (0, 2), (2, 4)), [("ab", True), ("cd", True), ("ef", False)]),
        # A mark has at most 220 characters, and a passage ends after 700.
        (side("x" * 700, *((at, at + 100) for at in range(0, 700, 100))), [("x" * 100, True)] * 7),
        (
            side("x" * 701, *((at, at + 100) for at in range(0, 700, 100))),
            [("x" * 100, True)] * 7 + [("…", False)],
        ),
    ],
)
def test_pieces_of_a_passage(given, pieces):
    assert [(one.text, one.marked) for one in passage_pieces(given)] == pieces


def test_long_stretches_are_cut_between_words():
    assert without_middle("x" * 220) == shorten("x" * 220) == "x" * 220
    words = "word " * 100
    assert without_middle(words) == f"{'word ' * 19}word … {'word ' * 19}".rstrip() + " "
    assert shorten(words, 12) == "word word…"


RECIPE = Recipe(make_scheme(codes=["en"]), {}, fields=("title", "body"))


def test_titles_and_snippets_of_documents():
    hit = {"_id": "i" * 300, "_index": "one", "_source": {}}
    assert (document_json(hit, RECIPE, "one")["index"], document_json(hit, RECIPE, "all")["index"]) == (
        "",
        "one",
    )
    assert document_json(hit, RECIPE, "one")["title"] == "i" * 200
    hit["_source"] = {"body": f" {COPY} "}
    assert document_json(hit, RECIPE, "one")["title"] == COPY
    found = {"title": ["\x02title\x03"], "body": ["a \x02b\x03 c"]}
    pieces = snippet({**hit, "highlight": found}, ("title", "body"))
    assert [(one.text, one.marked) for one in pieces] == [("a ", False), ("b", True), (" c", False)]
    for more, text in (({"format": "html"}, COPY), ({"title": "title"}, "a b c")):
        one = {**hit, "_source": {**hit["_source"], **more}, "highlight": found}
        assert "".join(piece.text for piece in snippet(one, ("title", "body"))) == text
    pipeline = {"processors": [{"supershingle": {"language": "de", "language_field": "lang"}}]}
    hit["_source"] = {"lang": "uk"}
    assert document_json(hit, replace(RECIPE, pipeline=pipeline), "one")["lang"] == "de"
    del pipeline["processors"][0]["supershingle"]["language"]
    assert document_json(hit, replace(RECIPE, pipeline=pipeline), "one")["lang"] == "uk"
    assert snippet({"_source": {"title": "title"}}, ("title", "body"))[0].text == ""


def test_bounds_of_parameters():
    def of(value, name="n"):
        return PageParameters({name: value}, (name,))

    assert [of(one).count("n", 7, 1, 50) for one in ("", "1", "50", " 3 ")] == [7, 1, 50, 3]
    for wrong in ("0", "51", "٣", "1_0", "-1", "1.0"):
        with pytest.raises(ConfigError, match="a whole number from 1 to 50"):
            of(wrong).count("n", 7, 1, 50)
    assert [of(one).number("n", 0.0, 0.0, 1.0) for one in ("", ".5", "0,25")] == [0, 0.5, 0.25]
    for wrong in ("0", "1", "nan", "x"):
        with pytest.raises(ConfigError, match="a number between 0 and 1"):
            of(wrong).number("n", 0.0, 0.0, 1.0)
    assert [of(one).flag("n") for one in ("", "0", "false", "1", "true")] == [False] * 3 + [True] * 2
    assert len(of("x" * 2_000).word("n")) == 2_000
    assert address("/", {"a": None, "b": "", "c": False, "e": "é"}) == "/?e=%C3%A9"


def test_numbers_are_written_as_a_language_writes_them():
    english, russian = Messages("en"), Messages("ru")
    values = (1234, 1234.5, 10.0, 9.994, 0.01, 0.0099, 0.0, True, "x")
    written = ["1,234", "1,234", "10", "9.99", "0.01", "0.0099", "0.00", "True", "x"]
    assert [english.format_value(one) for one in values] == written
    assert [russian.format_value(one) for one in (1234, 0.5)] == ["1\xa0234", "0,50"]
    assert [english.percent(one) for one in (0.0, 0.05, 0.1, 1.0)] == ["0%", "5.0%", "10%", "100%"]
    assert russian.percent(0.055) == "5,5\xa0%"


def test_results_of_others_and_of_long_ago_are_not_shown(site, monkeypatch):
    recent, now = Recent(), [0.0]
    monkeypatch.setattr("shinglefold.gateway.pages.shared.monotonic", lambda: now[0])
    one, other = (Shared(site, recent=recent, reader=reader) for reader in ("one", "other"))
    third = Shared(SimpleNamespace(name="another"), recent=recent, reader="one")
    shared = (one, other, third) * 2
    made = [each.once("doctor", lambda at=at: at) for at, each in enumerate(shared)]
    assert made == [0, 1, 2, 0, 1, 2]
    now[0] = 59.0
    assert one.once("doctor", lambda: "new") == 0
    now[0] = 61.0
    assert one.once("doctor", lambda: "new") == "new"
    # Only some are kept.
    for number in range(16):
        recent.get(number, partial(int, number))
    assert one.once("doctor", lambda: "newer") == "newer"
    assert recent.get(15, lambda: "newer") == 15


#: A diagnosis of a sound index, what is found besides, and the commands that correct it.
REMEDIES = {
    "nothing": ({}, ""),
    "a document without a fingerprint": ({"findings": {"without_fingerprint": 1, "sound": 1}}, "backfill"),
    **{
        one: ({"findings": {one: 1}}, "backfill")
        for one in ("other_scheme", "stale", "other_facts", "damaged", "unsealed")
    },
    "mappings": ({"mapping": ("x",), "findings": {"stale": 1}}, "setup backfill"),
    "no number": ({"ungrouped": 1}, "regroup"),
    "all": ({"mapping": ("x",), "findings": {"stale": 1}, "ungrouped": 1}, "setup backfill regroup"),
    "an obstacle": ({"findings": {"stale": 1}, "obstacles": ("x",)}, ""),
    "no text": ({"findings": {"textless": 1, "stale": 1}}, ""),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_commands_for_findings(name):
    found, commands = REMEDIES[name]
    empty = {"findings": {}, "listed": {}, "schemes": {}, "mapping": (), "remarks": ()}
    diagnosis = Diagnosis(index="site", scheme="x", documents=2, seconds=1.0, **{**empty, **found})
    made = index_pages._remedies("site", diagnosis)
    assert re.findall(r"shinglefold (\w+) site", made) == commands.split()


def test_the_adviser_reads_all_that_it_is_given(site):
    def of(**given):
        return index_pages.adviser_json(Shared(site), PageParameters(given, index_pages.ADVISER_PARAMETERS))

    with pytest.raises(ConfigError, match="width=10: the presets have shingles of"):
        of(width="10")
    for wrong in ({"changed": "1"}, {"of": "1"}, {"changed": "5", "of": "5"}):
        with pytest.raises(ConfigError, match="a greater number of words"):
            of(**wrong)
    needs = of(changed="1", of="10", miss=".02", documents="2", near_share=".3", strangers="5")["needs"]
    assert needs == {
        "resemblance": round(resemblance_after(0.1, 2), 4),
        "changed": 1,
        "of": 10,
        "width": 2,
        "miss": 0.02,
        "documents": 2,
        "near_share": 0.3,
        "strangers": 5,
    }
    assert of(resemblance=".6")["needs"]["resemblance"] == 0.6
