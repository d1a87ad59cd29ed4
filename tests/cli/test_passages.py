"""compare: what two texts have in common, on the terminal, as JSON and as a page."""

import json

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
    told = run("compare", "--text", "--page", str(tmp_path / "no" / "p.html"), A, B)
    assert told.code == 1
    assert "give another path" in told.err


def test_a_file_with_one_document_is_its_title_and_body(run, tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text(json.dumps({"id": "1", "title": "News", "body": A}) + "\n", "utf-8")
    two.write_text(one.read_text("utf-8") * 2, "utf-8")
    told = run("compare", "--json", str(one), str(one)).json()
    assert told["a"]["tokens"] == 21
    refused = run("compare", str(one), str(two))
    assert refused.code == 1
    assert f"shinglefold groups --pairs {two}" in refused.err


def test_a_page_takes_the_place_of_no_source(run, tmp_path):
    page = tmp_path / "a.html"
    page.write_text(f"<!doctype html><p>{A}</p>", "utf-8")
    told = run("compare", str(page), str(page), "--page", str(page))
    assert told.code == 2
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
    refused = run("compare", one, one)
    assert (refused.code, "try --encoding windows-1251" in refused.err) == (1, True)
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
