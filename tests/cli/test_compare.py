"""compare: figures that are true, verdicts of the scheme, passages; of stored documents, too."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.cli.shared.pairs import marked_parts, passage_json
from shinglefold.examples import articles
from shinglefold.model.values import Token
from shinglefold.passages.alignment import find_passages

_A = "The old bridge across the river will be closed for repair in the first week of May, the council says."
_B = "The old bridge across the river will be closed for repair in the last week of June, the council says."


@pytest.fixture
def bodies() -> dict[str, str]:
    return {article["id"]: article["body"] for article in articles()}


def test_equal_texts_resemble_each_other_fully_and_fold(run):
    told = run("compare", "--text", "--json", _A, _A.upper()).json()
    assert told["resemblance"] == told["sorensen"] == told["length_ratio"] == 1
    assert told["containment"] == {"a_in_b": 1, "b_in_a": 1}
    assert told["estimate"] == {"resemblance": 1, "standard_error": 0, "shared": told["groups"]}
    assert told["same_text"]
    assert told["folds"]


def test_strangers_do_not_fold_and_share_no_passage(run):
    told = run(
        "compare", "--text", "--json", _A, "Bake the loaf until its crust is dark and rings hollow."
    ).json()
    assert not told["folds"]
    assert told["resemblance"] < 0.1
    assert told["passages"] == []


def test_the_figures_agree_with_each_other(run):
    told = run("compare", "--text", "--json", _A, _B).json()
    a, b = told["a"], told["b"]
    shared = told["containment"]["a_in_b"] * a["distinct"]
    assert shared == pytest.approx(told["containment"]["b_in_a"] * b["distinct"], abs=0.01)
    assert told["resemblance"] == pytest.approx(shared / (a["distinct"] + b["distinct"] - shared), abs=1e-3)
    assert told["sorensen"] == pytest.approx(2 * shared / (a["distinct"] + b["distinct"]), abs=1e-3)
    error = told["estimate"]["standard_error"]
    assert told["estimate"]["resemblance"] == pytest.approx(told["resemblance"], abs=4 * error)
    assert a["shingles"] == a["tokens"] - 1
    assert a["language"] == "en"


def test_one_text_within_another_is_contained(run):
    told = run("compare", "--text", "--json", _A, f"{_A} Buses take the long way round until then.").json()
    assert told["containment"]["a_in_b"] > 0.9 > told["containment"]["b_in_a"]


def test_the_passage_marks_the_words_that_differ(run):
    (passage,) = run("compare", "--text", "--json", _A, _B).json()["passages"]
    assert [word["text"] for word in passage["a"]["differing"]] == ["first", "May"]
    assert [word["text"] for word in passage["b"]["differing"]] == ["last", "June"]
    for side, text in (("a", _A), ("b", _B)):
        assert passage[side]["text"] == text[passage[side]["start"] : passage[side]["end"]]
    shown = run("compare", "--text", _A, _B).out
    for word in ("[first]", "[last]", "[May]", "[June]"):
        assert word in shown


def test_on_a_narrow_terminal_the_texts_stand_one_above_the_other(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    shown = run("compare", "--text", _A, _B).check(0)
    assert max(map(len, shown.out.splitlines())) <= 50
    assert shown.out.index("[first]") < shown.out.index("[last]")
    assert "│" not in shown.out


def test_long_equal_stretches_are_cut_unless_all_is_wanted(run):
    words = " ".join(f"word{number}" for number in range(200))
    assert "word100 " not in run("compare", "--text", words, words).out
    assert "word100 " in run("compare", "--text", "--passages", "0", words, words).out


def test_reprints_of_a_story_fold_and_look_alikes_are_counted(run, bodies):
    told = run(
        "compare", "--text", "--json", bodies["ru-bridge-repair-1"], bodies["ru-bridge-repair-3"]
    ).json()
    assert told["folds"]
    assert told["b"]["repairs"] > told["a"]["repairs"] == 0


def test_traditional_and_simplified_characters_are_one_text(run):
    simplified, traditional = "这座桥将于五月关闭维修，请绕行。", "這座橋將於五月關閉維修，請繞行。"
    told = run("compare", "--text", "--json", simplified, traditional).json()
    assert told["same_text"]
    assert told["a"]["language"] == told["b"]["language"] == "zh"


def test_files_and_standard_input_are_read_and_markup_is_out(run):
    Path("a.html").write_text(f"<html><head><title>News</title></head><body><p>{_A}</p></body></html>")
    Path("b.txt").write_text(_A)
    assert run("compare", "--json", "a.html", "b.txt").json()["same_text"]
    assert run("compare", "--json", "b.txt", "-", stdin=_A).json()["same_text"]
    marked = run("compare", "--json", "--format", "html", "b.txt", "-", stdin=f"<p>{_A}<script>x()</script>")
    assert marked.json()["same_text"]


def test_the_decision_can_be_given(run):
    assert run("compare", "--text", "--json", _A, _B, "--min-resemblance", "0.3").json()["folds"]
    assert not run("compare", "--text", "--json", _A, _B, "--min-resemblance", "0.99").json()["folds"]


@pytest.mark.parametrize(
    "texts", [("", ""), ("one", "one"), ("\ud800 lone", "\x00 nul"), ("  \n ", "a b c d e f g")]
)
def test_texts_too_short_for_a_signature_have_no_estimate(run, texts):
    shown = run("compare", "--text", *texts).check(0)
    assert "no estimate" in shown.out
    assert run("compare", "--text", "--json", *texts).json()["estimate"] is None


def test_without_colours_brackets_mark_even_on_a_terminal(run, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "[first]" not in run("compare", "--text", _A, _B).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "[first]" in run("compare", "--text", _A, _B).out


def test_one_word_is_the_same_text_and_still_too_little_to_fold(run):
    shown = run("compare", "--text", "Да", "да").out
    assert "same canonical text: yes" in shown
    assert "they do not fold (the texts are the same, but one word alone is too little" in shown
    assert "same canonical text: yes" in run("compare", "--text", "Да, конечно", "да конечно").out
    assert "verdict: they fold" in run("compare", "--text", "Да, конечно", "да конечно").out
    assert "same canonical text: no" in run("compare", "--text", "", "").out


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
    explain("ru-bridge-repair-1", "nowhere").check(1, "'nowhere'")
    assert explain("a", "b", "--index", "other").code == 1
    explain("a", "b", "--width", "3").check(2, "leave --width out")


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
    ran = run(*words, "--engine", engine_folder).check(1)
    told, command = ran.err.strip().split("; a search shows them: ")
    ids = {article["id"] for article in articles()}
    named = told.partition("whose ids are such as ")[2].replace("'", "").split(", ")
    assert len(ids.intersection(named)) == len(named) == 3
    shown = run(*command.replace("WORDS", "водохранилище").split()[1:]).json()["hits"]["hits"]
    assert ids.intersection(hit["_id"] for hit in shown)


def test_an_id_of_an_empty_index_is_told_so(run):
    assert run("setup", "news").code == 0
    assert run("similar", "gone", "--index", "news").err.endswith("'news', which has no documents\n")


A = "The old bridge across the river will be closed for repair in May. Bread rises best in a warm kitchen."
B = "News: the old bridge across the river will be closed for repair in June, it says. Buses take long."


def test_the_shares_and_the_passage_are_told(run):
    told = run("compare", "--text", "--json", A, B).json()
    (passage,) = told["passages"]
    assert A.startswith(passage["a"]["text"])
    assert passage["b"]["text"].startswith("the old bridge across")
    assert [told["a"][name] for name in ("name", "tokens", "share")] == ["A", 20, 0.6]
    assert told["b"]["share"] == round(12 / told["b"]["tokens"], 4)


def test_other_endings_are_the_same_words(run):
    one = "Рабочие сняли старый асфальт на большом мосту через реку"
    other = "рабочий снял старый асфальт на большом мосте через реки"
    assert run("compare", "--text", "--json", "--width", "4", one, other).json()["a"]["share"] == 1


def test_strangers_have_no_passage_and_the_words_it_takes_are_told(run):
    told = run("compare", "--text", "--width", "7", A, "Nothing in it at all.")
    assert "No passage of 7 words or more matches." in told.out
    assert "0.0% of the 20 words of A" in told.out


def test_an_empty_text_has_no_passage(run):
    assert run("compare", "--text", "--json", "", A).json()["passages"] == []


def test_a_wider_element_and_a_smaller_gap_find_less(run):
    changed = A.replace("river", "stream")
    few = run("compare", "--text", "--json", "--gap", "0", A, changed).json()["passages"]
    assert len(few) == 2
    assert len(run("compare", "--text", "--json", A, changed).json()["passages"]) == 1
    assert len(run("compare", "--text", "--json", "--width", "9", A, changed).json()["passages"]) == 1


def test_tolerant_words_may_stand_in_another_order(run):
    swapped = "closed for repair the old bridge will in May be"
    text = "the old bridge will be closed for repair in May"
    exact = run("compare", "--text", "--json", "--width", "4", text, swapped).json()["passages"]
    tolerant = run("compare", "--text", "--json", "--tolerant", "--width", "4", text, swapped).json()[
        "passages"
    ]
    assert sum(one["equal_tokens"] for one in exact) <= sum(one["equal_tokens"] for one in tolerant)


def test_a_page_of_both_texts_is_written(run, tmp_path):
    target = tmp_path / "p.html"
    told = run("compare", "--text", "--page", str(target), A, B)
    assert f"written to {target}" in told.out
    assert "<section" in target.read_text("utf-8")


def test_a_page_that_cannot_be_written_is_an_error_with_the_reason(run, tmp_path):
    run("compare", "--text", "--page", str(tmp_path / "no" / "p.html"), A, B).check(1, "give another path")


def test_a_file_with_one_document_is_its_title_and_body(run, tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text(json.dumps({"id": "1", "title": "News", "body": A}) + "\n", "utf-8")
    two.write_text(one.read_text("utf-8") * 2, "utf-8")
    told = run("compare", "--json", str(one), str(one)).json()
    assert told["a"]["tokens"] == 21
    run("compare", str(one), str(two)).check(1, f"shinglefold groups --pairs {two}")


def test_a_page_takes_the_place_of_no_source(run, tmp_path):
    page = tmp_path / "a.html"
    page.write_text(f"<!doctype html><p>{A}</p>", "utf-8")
    run("compare", str(page), str(page), "--page", str(page)).check(2)
    assert page.read_text("utf-8").endswith("</p>")


def test_what_is_left_out_of_texts_that_repeat_much_is_told(run):
    repeated = "four words come again " * 300
    made = run("compare", "--text", repeated, f"once {repeated}")
    assert "warning: both texts repeat much: " in made.err
    told = run("compare", "--text", "--json", repeated, f"once {repeated}").json()
    assert told["left_out"] > 300_000
    assert told["b"]["share"] == round(1200 / 1201, 4)
    assert run("compare", "--text", "--json", A, B).json()["left_out"] == 0


def test_the_encoding_that_is_to_be_tried_can_be_given(run, tmp_path):
    text = "Старый мост через реку закроют на ремонт в мае, сообщил совет в понедельник днём."
    one = tmp_path / "one.txt"
    one.write_bytes(text.encode("windows-1251"))
    run("compare", one, one).check(1, "try --encoding windows-1251")
    told = run("compare", "--json", "--encoding", "windows-1251", one, one).json()
    assert told["passages"][0]["a"]["text"].startswith("Старый мост")
    assert run("compare", "--encoding", "klingon", one, one).code == 2


def test_a_text_with_nuls_is_told(run, tmp_path):
    file = tmp_path / "file.txt"
    file.write_bytes(f"{A}\0".encode())
    assert "holds NUL characters" in run("compare", file, file).err
    file.write_bytes(A.encode("utf-16-le"))
    told = run("compare", "--json", file, file)
    assert (told.err, told.json()["a"]["tokens"]) == ("", 20)


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    for word in text.split(" "):
        found.append(Token(word.lower(), at, at + len(word), "en"))
        at += len(word) + 1
    return found


@given(st.lists(st.sampled_from("abcdef"), max_size=60), st.lists(st.sampled_from("abcdef"), max_size=60))
@settings(max_examples=examples(150), deadline=None)
def test_outside_the_marks_both_sides_have_the_same_tokens(one, other):
    a, b = " ".join(one), " ".join(other)
    taken = []
    for passage in find_passages(_tokens(a), _tokens(b)):
        told = passage_json(passage, a, b)
        left, right = ([text for text, marked in marked_parts(told[side]) if not marked] for side in "ab")
        assert " ".join(left).split() == " ".join(right).split()
        assert len(" ".join(left).split()) == passage.equal
        taken.append(passage.a)
    assert taken == sorted(taken)


def test_pieces_join_to_the_passage():
    differing = [{"start": 9, "end": 12, "text": "two"}]
    side = {"start": 5, "end": 23, "text": "one two three four", "differing": differing}
    assert list(marked_parts(side)) == [("one ", False), ("two", True), (" three four", False)]


def test_json_tells_places_and_words():
    a, b = "we feed the hungry starter every day", "we feed the starter every day"
    told = passage_json(find_passages(_tokens(a), _tokens(b))[0], a, b)
    assert told["a"]["differing"] == [{"start": 12, "end": 18, "text": "hungry"}]
    assert told["b"] == {"start": 0, "end": len(b), "text": b, "differing": []}
    assert told["equal_tokens"] == 6


def test_a_list_of_titles_is_joined_as_a_comparison_has_no_pipeline(run):
    for name, title in (("list", ["News of", "the day"]), ("text", "News of\nthe day")):
        Path(f"{name}.json").write_text(json.dumps({"title": title, "body": A}))
    ran = run("compare", "list.json", "text.json", "--json")
    assert (ran.code, ran.json()["same_text"]) == (0, True)
    Path("nested.json").write_text(json.dumps({"title": [["News"]], "body": A}))
    ran = run("compare", "nested.json", "text.json").check(1)
    assert ran.err == "error: nested.json: field [title] is a list, expected text; give another file\n"
