"""compare: figures that are true, the verdict of the scheme, passages side by side."""

from pathlib import Path

import pytest

from shinglefold.examples import articles

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
    shown = run("compare", "--text", _A, _B)
    assert shown.code == 0
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
    shown = run("compare", "--text", *texts)
    assert shown.code == 0
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
