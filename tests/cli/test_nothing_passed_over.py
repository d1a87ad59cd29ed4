"""What is on the disk already is not destroyed, and what is asked for is not passed over."""

import gzip
import json
import os
from pathlib import Path

import pytest
from support.commands import TEXT

_PAGE = {"id": "1", "title": "Bridge", "body": TEXT}


@pytest.fixture
def pages() -> Path:
    place = Path("pages.jsonl")
    place.write_text(json.dumps(_PAGE) + "\n")
    return place


def test_a_file_of_words_learned_replaces_no_other_file(run, pages, monkeypatch):
    before = pages.read_bytes()
    monkeypatch.setenv("SHINGLEFOLD_LEXICON_FILE", "pages.jsonl")
    run("index", "pages.jsonl").check(0, "the lexicon can't be saved to pages.jsonl: it holds something else")
    assert pages.read_bytes() == before


@pytest.mark.parametrize("command", [("index",), ("sign", "-o", "out.jsonl")])
def test_dead_letters_are_not_appended_to_documents(run, pages, command):
    Path("bad.jsonl").write_text("{broken\n")
    before = pages.read_bytes()
    run(*command, "bad.jsonl", "--dead-letters", "pages.jsonl").check(
        2, "pages.jsonl holds something else than dead letters"
    )
    assert pages.read_bytes() == before


def test_dead_letters_go_on_in_their_file(run):
    Path("bad.jsonl").write_text("{broken\n")
    letter = '{"reason": "x", "stage": "read", "line": 1, "source": "s", "raw": "y"}\n'
    turned = json.dumps(dict(reversed(json.loads(letter).items()))) + "\n"
    for before in ("", "\n\n", letter, turned, "\n" + letter, '{"reason": "cut', '{"rea'):
        Path("dead.jsonl").write_text(before)
        ran = run("index", "bad.jsonl", "--dead-letters", "dead.jsonl")
        assert "1 failed, of 1 read" in ran.out, before
        assert Path("dead.jsonl").read_text().startswith(before)


def test_a_page_is_written_beside_nobodys_file(run):
    for name in ("a.txt", "b.txt"):
        Path(name).write_text(TEXT)
    Path("page.html.part").write_text("precious")
    assert run("compare", "a.txt", "b.txt", "--page", "page.html").code == 0
    assert Path("page.html.part").read_text() == "precious"
    assert sorted(place.name for place in Path.cwd().glob("*.part")) == ["page.html.part"]
    assert not list(Path.cwd().glob(".page*"))


@pytest.mark.parametrize("command", ["index", "sign", "groups"])
def test_lines_of_a_bulk_request_are_no_documents(run, command):
    actions = [{"index": {"_id": "1"}}, {"create": {"_index": "x", "_id": "2"}}, {"delete": {}}]
    lines = [json.dumps(one) for action in actions for one in (action, _PAGE)]
    Path("bulk.jsonl").write_text("\n".join(lines))
    ran = run(command, "bulk.jsonl").check(3)
    assert "an action line of a bulk request, no document" in ran.out + ran.err
    # A document may have such a field.
    whole = [
        {"index": {"_id": "1"}, "id": "1", "body": TEXT},
        {"id": "2", "index": {"a": 1}},
        {"index": {"a": 1}},
    ]
    Path("own.jsonl").write_text("\n".join(map(json.dumps, whole)))
    assert run(command, "own.jsonl").code == 0


def test_types_of_fields_are_refused_for_an_index_that_has_others(run, pages):
    Path("types.json").write_text(
        '{"price": {"type": "float"}, "note": {"properties": {"a": {"type": "keyword"}}}}'
    )
    command = ("index", "pages.jsonl")
    for _ in range(2):
        assert run(*command, "--mapping", "types.json").code == 0
    Path("other.json").write_text('{"price": {"type": "keyword"}}')
    run(*command, "--mapping", "other.json").check(2, "'price' is float there, not keyword")
    Path("other.json").write_text('{"weight": {"type": "float"}}')
    assert "'weight' is not mapped there, not float" in run(*command, "--mapping", "other.json").err
    assert run(*command, "--mapping", "other.json", "--recreate").code == 0


def test_what_a_mapping_says_beside_its_properties_is_not_left_out_in_silence(run, pages):
    for mapping in (
        {"dynamic": False, "properties": {}},
        {"mappings": {"dynamic": "strict", "properties": {}}},
    ):
        Path("m.json").write_text(json.dumps(mapping))
        run("index", "pages.jsonl", "--mapping", "m.json").check(
            2, "the properties alone are taken, not 'dynamic'"
        )


def test_an_empty_folder_of_data_is_not_the_working_folder(run, pages, monkeypatch):
    monkeypatch.setenv("SHINGLEFOLD_DATA_DIR", "")
    run("index", "pages.jsonl").check(2, "SHINGLEFOLD_DATA_DIR: expected text that is not empty")
    assert not Path("pages").exists()


def test_an_empty_name_is_no_source(run):
    for command in (
        ("index", ""),
        ("sign", ""),
        ("groups", ""),
        ("similar", ""),
        ("compare", "", "x", "--index", "pages"),
    ):
        ran = run(*command)
        assert (ran.code, "empty" in ran.err) == (2, True), command


def test_an_id_too_long_for_the_name_of_a_file_is_asked_for(run):
    long = "x" * 400
    Path("pages.jsonl").write_text("".join(json.dumps(_PAGE | {"id": one}) + "\n" for one in (long, "2")))
    assert run("index", "pages.jsonl").code == 0
    ran = run("similar", long)
    assert (ran.code, "1 copy" in ran.out) == (0, True)


def test_options_of_texts_are_not_passed_over_for_an_id(run, pages):
    assert run("index", "pages.jsonl").code == 0
    for option in (("--language", "xx"), ("--encoding", "koi8-r"), ("--format", "html")):
        run("similar", "1", *option).check(2, "are of a text, and '1' is not a file here")


def test_a_pipe_of_the_shell_is_a_text(run, pages):
    assert run("index", "pages.jsonl").code == 0
    reader, writer = os.pipe()
    os.write(writer, TEXT.encode())
    os.close(writer)
    ran = run("similar", f"/dev/fd/{reader}")
    os.close(reader)
    assert (ran.code, "1 copy" in ran.out) == (0, True)


def test_a_dry_run_over_nothing_is_an_error(run):
    Path("empty.jsonl").write_text("\n")
    run("index", "empty.jsonl", "--dry-run").check(1, "empty.jsonl holds no documents")


@pytest.mark.parametrize("command", ["advise"])
def test_a_missing_command_is_told_in_a_line(run, command):
    ran = run(command).check(2)
    (line,) = ran.err.splitlines()
    assert line.startswith(f"error: shinglefold {command} needs a command: ")
    assert line.endswith(f". See: shinglefold {command} --help")


def test_a_guess_ends_with_one_mark(run):
    assert (
        run("doctr").err == "error: No such command 'doctr'. Did you mean 'doctor'? See: shinglefold --help\n"
    )


def test_a_terminal_of_any_width_is_believed(run, pages, monkeypatch):
    assert run("index", "pages.jsonl").code == 0
    for columns in ("9" * 19, "0", "1"):
        monkeypatch.setenv("COLUMNS", columns)
        assert run("search", "bridge").code == 0


def test_packed_files_and_parquet_lead_to_what_reads_them(run):
    for name, told in (("x.zip", "decompress it first"), ("x.jsonl.zst", "decompress it first")):
        Path(name).write_bytes(b"x")
        run("index", name).check(2, told)
    Path("x.parquet").write_bytes(b"x")
    run("add", "x.parquet", "--index", "pages").check(2, "shinglefold sign x.parquet --output FILE.jsonl")
    Path("x.csv.gz").write_bytes(gzip.compress(f"id,body\n1,{TEXT.replace(',', '')}\n".encode()))
    assert run("index", "x.csv.gz").code == 0


def test_lines_that_end_in_carriage_returns_are_told_so(run):
    Path("mac.csv").write_bytes(b"id,title\r1,Bridge\r")
    ran = run("index", "mac.csv")
    assert (ran.code, "make newlines of them: tr" in ran.out) == (1, True)
    Path("colons.csv").write_text("id:title\n1:Bridge, old\n")
    assert "columns are separated by , ; | or tab" in run("index", "colons.csv").out


def test_a_search_by_a_field_without_a_name_is_misuse(run, pages):
    assert run("index", "pages.jsonl").code == 0
    for option in (("--field", "^2"), ("--sort", ":desc")):
        run("search", "bridge", *option).check(2, "expected FIELD")
    told = run("search", "bridge", "--sort", "title").err
    assert "title.keyword" not in told


def test_a_text_in_the_place_of_a_file_leads_to_the_option(run):
    run("compare", "the old bridge", "the new bridge").check(1, "add --text")


def test_a_memory_without_its_unit_is_refused(run, pages):
    assert run("groups", "--pairs", "pages.jsonl", "--memory", "4").code == 2


def test_a_server_that_is_not_there_is_told_without_numbers(run):
    ran = run("stats", "--engine", "http://127.0.0.1:1")
    assert (ran.code, "Connection refused" in ran.err, "Errno" in ran.err) == (1, True, False)


@pytest.mark.parametrize(
    "command",
    [
        ("stats", "--engine", ""),
        ("stats", "--config", ""),
        ("--config=", "stats"),
        ("delete", "pages", "--yes", "--engine="),
        ("index", "pages.jsonl", "--pipeline", ""),
        ("index", "pages.jsonl", "--id-field", ""),
        ("index", "pages.jsonl", "--field", "body", "--field", ""),
        ("sign", "pages.jsonl", "-o", ""),
        ("similar", "1", "--language", ""),
        ("compare", "1", "1", "--index", ""),
        ("search", "bridge", "--member-field", ""),
        ("regroup", "pages", "--order", ""),
        ("backfill", "pages", "--checkpoint", ""),
        ("setup", "pages", "--languages", ""),
    ],
)
def test_an_option_that_an_unset_variable_leaves_empty_is_refused(run, pages, command):
    ran = run(*command)
    option = next(word for word in reversed(command) if word.startswith("-")).rstrip("=")
    assert (ran.code, f"error: {option} is empty: give it a value, or leave it out" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("compare", "--text", "<p>one", "two", "--format", "html"), "--format"),
        (("similar", "--text", "one two", "--encoding", "latin-1"), "--encoding"),
        (("matches", "--text", "<p>one", "--format", "html"), "--format"),
        (("index", "pages.jsonl", "--verbose"), "--verbose"),
        (("index", "pages.jsonl", "--replay", "--dry-run"), "--dry-run"),
    ],
)
def test_an_option_without_effect_is_refused(run, pages, command, option):
    ran = run(*command)
    assert (ran.code, option in ran.err, ran.out) == (2, True, "")


@pytest.mark.parametrize("command", [("compare", "pages.jsonl", "pages.jsonl"), ("report", "pages.jsonl")])
def test_a_page_that_is_a_folder_is_refused_before_the_work(run, pages, command):
    Path("site").mkdir()
    ran = run(*command, "--page", "site")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: --page site is a folder: name a file in it\n"


def test_a_byte_order_mark_is_no_part_of_a_file_of_settings_or_json(run, pages):
    Path("my.toml").write_text("workers = 1\n", "utf-8-sig")
    Path("types.json").write_text('{"price": {"type": "float"}}', "utf-8-sig")
    Path("pipeline.json").write_text('{"processors": [{"supershingle": {"fields": ["body"]}}]}', "utf-8-sig")
    given = ("--config", "my.toml", "--mapping", "types.json", "--pipeline", "pipeline.json")
    assert run("index", "pages.jsonl", *given).code == 0
