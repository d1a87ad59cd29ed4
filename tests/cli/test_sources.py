"""Several folders, ids of all kinds, and types of fields from a file."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from shinglefold.engines import open_engine


def site(folder, **pages):
    folder.mkdir(parents=True)
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(f"<p>{text}", "utf-8")
    return folder


TEXT = "Сегодня в городе выпал первый снег, и стало совсем тихо, только вороны кричали над рекой"


def test_pages_of_equal_names_in_several_folders_are_all_kept(run, tmp_path):
    a, b = site(tmp_path / "sa", p1=TEXT, p2="a", p3="b"), site(tmp_path / "sb", p1=TEXT, p2="c", p3="d")
    told = run("index", a, b, "--json").json()
    assert (told["read"], told["indexed"], told["notes"]) == (6, 6, [])
    shown = run("search", "снег", "--json", "--no-fold").json()["hits"]["hits"]
    assert {hit["_id"] for hit in shown} == {"sa/p1.html", "sb/p1.html"}
    assert "sa/p1.html\tsb/p1.html\t" in run("groups", "--pairs", a, b).out
    assert "sa/p1.html\tsb/p1.html\t" in run("groups", "--pairs", a / "p1.html", b / "p1.html").out
    assert run("index", a, "--index", "alone", "--json").json()["indexed"] == 3


def test_equal_ids_among_pairs_are_told_apart_and_counted(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "1", "body": TEXT}), "utf-8")
    ran = run("groups", "--pairs", "a.jsonl", "b.jsonl")
    assert ran.out.startswith("1\t1 (b.jsonl:1)\t")
    assert "1 document has the id of another one" in ran.err


def test_ids_stay_keywords_and_a_mapping_gives_types(run, tmp_path):
    (tmp_path / "x.csv").write_text("id,price,body\n1001,1.5,один\nA-17,,два\n", "utf-8")
    (tmp_path / "types.json").write_text('{"properties": {"price": {"type": "float"}}}')
    assert run("index", "x.csv", "--mapping", "types.json").code == 0
    (tmp_path / "y.jsonl").write_text(
        '{"id": 1002, "body": "три"}\n{"id": "B-1", "body": "четыре"}\n', "utf-8"
    )
    assert run("index", "y.jsonl").code == 0
    with closing(open_engine(".shinglefold", lambda _: [])) as engine:
        fields = engine.mappings("pages")["properties"]
        cheap = engine.search("pages", {"query": {"range": {"price": {"lt": 2}}}})["hits"]["hits"]
        one = engine.search("pages", {"query": {"terms": {"id": ["1002", "A-17"]}}})["hits"]["hits"]
    assert (fields["id"]["type"], fields["price"]["type"]) == ("keyword", "float")
    assert [hit["_id"] for hit in cheap] == ["1001"]
    assert {hit["_id"] for hit in one} == {"1002", "A-17"}


def test_a_mapping_that_is_none_is_refused(run, tmp_path):
    (tmp_path / "x.jsonl").write_text("{}")
    for text, words in (
        ("{x", "is no JSON"),
        ('{"price": 5}', "must hold fields"),
        ("[]", "must hold fields"),
    ):
        (tmp_path / "types.json").write_text(text)
        run("index", "x.jsonl", "--mapping", "types.json").check(2, words)
    assert run("index", "x.jsonl", "--mapping", "nowhere.json").code == 1


def test_what_is_not_read_in_folders_is_said(run, tmp_path):
    folder = site(tmp_path / "site", p1=TEXT)
    (folder / ".draft.html").write_text("x")
    assert "hidden skipped: 1" in run("index", folder).out
    assert "hidden skipped: 1" in run("groups", "--pairs", folder).err
    signed = run("sign", folder, "-o", "signed.jsonl", "--json").json()
    assert signed["counts"]["hidden_skipped"] == 1
    assert "hidden skipped: 1" in run("add", folder).err
    assert "hidden skipped: 1" in run("index", folder, "--dry-run").err


def test_repeated_headers_and_pages_in_another_encoding_are_said_once(run):
    Path("joined.csv").write_text("id,body\n1,one two three\nid,body\n2,four five six\n")
    text = "Старый мост закрыт на ремонт до понедельника, и автобусы идут в объезд через площадь"
    Path("page.html").write_bytes(f'<meta charset="koi8-r"><p>{text}'.encode("cp1251"))
    counts = run("sign", "joined.csv", "page.html", "-o", "signed.jsonl", "--json").json()["counts"]
    assert (counts["repeated_headers"], counts["wrong_encodings"]) == (1, 1)


def test_a_pipe_in_a_folder_is_passed_over_and_a_gate_names_the_file_that_failed(run):
    Path("site").mkdir()
    Path("site/a.html").write_text(f"<title>Bridge</title><p>{'The old bridge is closed until Monday. ' * 3}")
    Path("site/b.txt").write_bytes(b"caf\xe9 \xff" * 9)
    os.mkfifo("site/c.txt")
    ran = run("index", "site")
    assert "other files skipped: 1" in ran.out
    assert run("setup", "other").code == 0
    told = run("add", "site", "--index", "other")
    assert "failed: site/b.txt:1: the text is not UTF-8" in told.out
    assert "1 of 2 added to other" in told.out


def test_a_gate_says_how_dead_letters_are_tried_again(run):
    Path("bad.jsonl").write_text('{"id": "a", "body": 5}\n')
    run("index", "bad.jsonl", "--dead-letters", "failed.jsonl")
    assert run("setup", "pages").code == 0
    run("add", "failed.jsonl", "--index", "pages").check(
        2, "they are tried again with: shinglefold index failed.jsonl --index pages --replay"
    )


def test_more_workers_than_a_machine_can_start_are_refused(run):
    Path("x.jsonl").write_text('{"id": "1", "body": "one two three four"}\n')
    ran = run("groups", "x.jsonl", "--workers", 99_999_999_999)
    assert (ran.code, ran.out) == (2, "")
    assert "0<=x<=1024" in ran.err


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file whose first bytes can't be read")
@pytest.mark.parametrize(
    "command",
    [
        ("compare", "/proc/self/mem", "/proc/self/mem"),
        ("similar", "/proc/self/mem"),
        ("matches", "/proc/self/mem"),
        ("groups", "/proc/self/mem", "--format", "jsonl"),
        ("sign", "/proc/self/mem", "--format", "text"),
        ("index", "/proc/self/mem", "--format", "jsonl"),
    ],
)
def test_a_read_error_names_the_file(run, command):
    Path("a.txt").write_text("The old bridge is closed until Monday because the river rises.")
    assert run("index", "a.txt", "--passages").code == 0
    ran = run(*command)
    assert (ran.code, ran.err.splitlines()[-1]) == (
        1,
        "error: cannot read /proc/self/mem: Input/output error; check the file and its disk",
    )
