"""sign as it is typed: outputs, refusals, exit codes, and what a loader makes of the output."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.commands import PROGRAM, write_lines

from shinglefold.canon import Canonicalizer
from shinglefold.engines import open_engine
from shinglefold.examples import articles
from shinglefold.ingest import default_definition
from shinglefold.registry import make_scheme

_TEXT = "The quick brown fox jumps over the lazy dog near the bank of the river every morning"
_COUNT = sum(1 for _ in articles())


def documents_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("key", ["", "a secret of sixteen bytes or more"])
def test_the_fingerprints_are_those_of_an_index_sealed_or_not(run, examples_file, monkeypatch, key):
    if key:
        monkeypatch.setenv("SHINGLEFOLD_SEAL_KEY", key)
    assert run("index", examples_file, "--engine", "kept").code == 0
    assert run("sign", examples_file, "-o", "signed.jsonl").code == 0
    with open_engine("kept") as engine:
        hits = engine.search("pages", {"query": {"match_all": {}}, "size": 1_000})["hits"]["hits"]
    stored = {hit["_id"]: hit["_source"]["_dedup"] for hit in hits}
    signed = {one["id"]: one["_dedup"] for one in documents_of(Path("signed.jsonl").read_text("utf-8"))}
    assert signed == stored
    assert all(("." in one["digest"].removeprefix(one["scheme"])) for one in signed.values())


@pytest.mark.long
def test_any_loader_can_store_what_was_signed_and_it_folds(run, examples_file):
    assert run("setup", "news", "--engine", "kept").code == 0
    run("sign", examples_file, "-o", "signed.jsonl")
    signed = documents_of(Path("signed.jsonl").read_text("utf-8"))
    with open_engine("kept", Canonicalizer.of(make_scheme())) as engine:
        assert engine.index_exists("news")
        actions = [
            {"_op_type": "index", "_index": "news", "_id": one["id"], "_source": one} for one in signed
        ]
        assert not engine.bulk(actions).failures
        engine.refresh("news")
    run("doctor", "news", "--engine", "kept", "--json").check(0)
    page = run("search", "ледокол", "--index", "news", "--engine", "kept", "--json").json()
    assert page["dedup"]["scheme"] == signed[0]["_dedup"]["scheme"]


def test_documents_go_to_standard_output_and_the_summary_beside_it(run, examples_file):
    ran = run("sign", examples_file).check(0, f"{_COUNT} signed, 0 failed, of {_COUNT} read")
    assert [one["id"] for one in documents_of(ran.out)] == [one["id"] for one in articles()]


def test_standard_input_is_signed(run):
    lines = "".join(json.dumps({"id": n, "body": f"{_TEXT} {n}"}) + "\n" for n in range(5))
    ran = run("sign", "-", "--workers", "2", stdin=lines)
    assert [one["id"] for one in documents_of(ran.out)] == list(range(5))


def test_the_summary_is_json_where_asked_for(run, examples_file):
    ran = run("sign", examples_file, "-o", "signed.jsonl", "--json")
    told = ran.json()
    assert told["read"] == told["signed"] == _COUNT
    assert sum(told["languages"].values()) == told["read"]
    assert told["target"] == "signed.jsonl"


def test_a_file_that_is_there_is_replaced_only_where_told_and_only_by_a_whole_one(run, examples_file):
    Path("signed.jsonl").write_text("mine")
    run("sign", examples_file, "-o", "signed.jsonl").check(2, "--overwrite")
    assert Path("signed.jsonl").read_text() == "mine"
    assert run("sign", examples_file, "-o", "signed.jsonl", "--overwrite").code == 0
    assert len(documents_of(Path("signed.jsonl").read_text("utf-8"))) == _COUNT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.jsonl", "-o", "out.jsonl"], "no such file"),
        (["d.jsonl", "-o", "d.jsonl", "--overwrite"], "is a source"),
        (["d.jsonl", "-o", "out.parquet"], "--only-ids"),
        (["d.jsonl", "--overwrite"], "-o FILE"),
        (["d.jsonl", "-o", "."], "is a folder"),
        (["d.jsonl", "-o", ""], "-o is empty: give it a value, or leave it out"),
        (["array.json", "-o", "out.jsonl"], "array.json: the input holds an array, not an object a line"),
        (["d.jsonl", "-o", "pipe", "--overwrite"], "pipe is not a file"),
        (["d.jsonl", "-o", "/dev/fd/1", "--overwrite"], "add > /dev/fd/1"),
        (["d.jsonl", "-o", "no/such/folder/out.jsonl"], "cannot write"),
        (["d.unknown"], "--format"),
        (["letters.jsonl"], "dead letters"),
        (["d.jsonl", "--dead-letters", "d.jsonl"], "is a source"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_document(run, arguments, words):
    Path("d.jsonl").write_text(json.dumps({"id": 1, "body": _TEXT}) + "\n")
    Path("d.unknown").write_text("x")
    Path("array.json").write_text('[{"id": 1}]')
    os.mkfifo("pipe")
    Path("letters.jsonl").write_text(
        json.dumps({"reason": "x", "stage": "read", "line": 1, "source": "a", "raw": "b"}) + "\n"
    )
    ran = run("sign", *arguments)
    assert ran.code in (1, 2)
    assert words in ran.err
    assert not Path("out.jsonl").exists()
    assert not Path("out.jsonl.unfinished").exists()


def test_exit_codes_tell_how_much_went_well(run):
    Path("some.jsonl").write_text(json.dumps({"id": 1, "body": _TEXT}) + "\nno JSON\n")
    ran = run("sign", "some.jsonl", "-o", "some.out", "--dead-letters", "letters").check(3)
    assert "some.jsonl:2" in ran.out
    assert len(documents_of(Path("letters").read_text())) == 1
    Path("none.jsonl").write_text("no JSON\n")
    assert run("sign", "none.jsonl", "-o", "none.out").code == 1
    Path("empty.jsonl").write_text("")
    assert run("sign", "empty.jsonl", "-o", "empty.out").code == 1


@pytest.mark.parametrize("source", ["d.jsonl", "d.parquet"])
def test_fields_without_text_are_told_with_those_that_have_some(run, source):
    rows = [{"id": n, "content": _TEXT} for n in range(9)]
    if source.endswith(".parquet"):
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), source)
    else:
        write_lines(source, *rows)
    run("sign", source, "-o", "out.jsonl").check(3, "there is text in content", "--field content")
    run("sign", source, "-o", "more.jsonl", "--field", "contents", "--field", "content").check(
        3, "no document has the field contents"
    )


@pytest.mark.long
def test_workers_read_a_file_that_came_as_standard_input_under_its_name():
    Path("d.jsonl").write_text(
        "".join(json.dumps({"id": n, "body": f"{_TEXT} {n}"}) + "\n" for n in range(9))
    )
    with open("d.jsonl", "rb") as given:
        ran = subprocess.run(
            [*PROGRAM, "sign", "/dev/stdin", "--format", "jsonl", "--workers", "2"],
            stdin=given,
            capture_output=True,
            check=True,
        )
    assert [one["id"] for one in documents_of(ran.stdout.decode())] == list(range(9))


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)]
)
def test_a_run_that_is_told_to_end_adds_up_and_the_next_one_goes_on(tmp_path, number, code):
    rows = [json.dumps({"id": n, "body": f"{_TEXT} number {n} " * 20}) for n in range(3_000)]
    Path("d.jsonl").write_text("\n".join(rows) + "\n")
    arguments = ["sign", "d.jsonl", "-o", "out.jsonl", "--json", "--workers", "2"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    command = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGINT, before)
    output = Path("out.jsonl.unfinished/output")
    # More than the first part, which is therefore taken.
    while command.poll() is None and not (output.exists() and output.stat().st_size > 1 << 17):
        pass
    os.kill(command.pid, number)
    out, err = command.communicate(timeout=60)
    assert command.returncode == code, err
    told = json.loads(out)
    assert told["read"] == told["signed"] > 0
    assert b"to continue: " in err
    again = subprocess.run([*PROGRAM, *arguments], capture_output=True, check=True)
    whole = json.loads(again.stdout)
    assert whole["signed"] == 3_000
    assert whole["resumed"] == told["read"]
    assert [one["id"] for one in documents_of(Path("out.jsonl").read_text())] == list(range(3_000))


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_ends_a_run_with_a_summary_and_the_same_command_goes_on(run, small_disk, workers):
    lines = [json.dumps({"id": str(n), "body": os.urandom(2_000).hex()}) for n in range(400)]
    Path("documents.jsonl").write_text("\n".join(lines))
    command = ("sign", "documents.jsonl", "-o", small_disk / "signed.jsonl", "--workers", workers)
    ran = run(*command, "--json")
    told = ran.json()
    assert ran.code == 1
    assert "the disk is full; make room" in told["stopped"]
    goes_on = f"shinglefold sign documents.jsonl -o {small_disk}/signed.jsonl --workers {workers} --json"
    assert ran.err.splitlines()[-1].endswith(f"make room; to continue: {goes_on}")
    assert told["read"] == told["signed"] + told["failed"] > 0
    subprocess.run(["mount", "-o", "remount,size=30m", small_disk], check=True)
    ran = run(*command, "--json")
    assert (ran.code, ran.json()["signed"], ran.json()["failed"]) == (0, 400, 0)
    assert ran.json()["resumed"] == told["read"]


def test_a_disk_with_room_for_the_parts_of_a_table_alone_is_told_as_full(run, small_disk):
    pytest.importorskip("pyarrow.parquet")
    lines = [json.dumps({"id": os.urandom(500).hex(), "body": _TEXT}) for _ in range(1_000)]
    Path("documents.jsonl").write_text("\n".join(lines))
    command = ("sign", "documents.jsonl", "--only-ids", "-o", small_disk / "ids.parquet")
    ran = run(*command, "--json")
    assert (ran.code, ran.json()["signed"]) == (1, 1_000), ran.err
    assert "ids.parquet: the disk is full; make room; to continue" in ran.err
    subprocess.run(["mount", "-o", "remount,size=30m", small_disk], check=True)
    ran = run(*command, "--json")
    assert (ran.code, ran.json()["signed"], ran.json()["resumed"]) == (0, 1_000, 1_000)
    assert [file.name for file in small_disk.iterdir()] == ["ids.parquet"]


def test_a_disk_too_full_for_dead_letters_ends_a_run_whose_counts_add_up(run, small_disk):
    lines = [json.dumps({"id": n, "body": n, "note": "x" * 500}) for n in range(2_000)]
    Path("documents.jsonl").write_text("\n".join([*lines, json.dumps({"id": "last", "body": _TEXT})]))
    (small_disk / "ballast").write_bytes(bytes(500_000))
    dead = small_disk / "dead.jsonl"
    command = ("sign", "documents.jsonl", "-o", "out.jsonl", "--dead-letters", dead)
    ran = run(*command, "--json")
    told = ran.json()
    kept = dead.read_bytes().count(b"\n")
    assert (ran.code, told["read"], told["signed"] + told["failed"]) == (1, told["failed"], told["read"])
    assert told["failed"] == sum(told["reasons"].values())
    again = kept - told["failed"]
    assert again > 0
    full = f"cannot write the dead-letter file {dead}: the disk is full; make room"
    twice = "dead letters of documents that are not counted, as they are read again"
    assert told["stopped"] == f"{full} ({twice}: {again:,})"
    subprocess.run(["mount", "-o", "remount,size=30m", small_disk], check=True)
    ran = run(*command, "--json")
    assert (ran.code, ran.json()["signed"], ran.json()["failed"]) == (3, 1, 2_000)
    # Half a letter stands on a line of its own.
    assert dead.read_bytes().count(b"\n") == 2_000 + again + 1


@pytest.mark.long
def test_standard_output_on_a_full_disk_is_named(examples_file):
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [*PROGRAM, "sign", examples_file, "--workers", "1"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 1
    assert b"cannot write standard output: the disk is full" in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.long
def test_a_full_disk_of_temporary_files_is_not_called_standard_output(examples_file, small_disk):
    (small_disk / "ballast").write_bytes(bytes(1_000_000))
    ran = subprocess.run(
        [*PROGRAM, "sign", examples_file],
        env={**os.environ, "TMPDIR": str(small_disk)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert f"cannot write temporary files to {small_disk}: the disk is full" in ran.stderr
    assert "set TMPDIR" in ran.stderr


@pytest.mark.long(every=2)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_the_file_is_made_where_it_leads(run, examples_file, there):
    Path("disk").mkdir()
    Path("signed.jsonl").symlink_to("disk/whole.jsonl")
    if there:
        Path("disk/whole.jsonl").write_text("of before")
        assert run("sign", examples_file, "-o", "signed.jsonl").code == 2
        assert Path("disk/whole.jsonl").read_text() == "of before"
    assert run("sign", examples_file, "-o", "signed.jsonl", *["--overwrite"] * there).code == 0
    assert os.readlink("signed.jsonl") == "disk/whole.jsonl"
    assert len(documents_of(Path("disk/whole.jsonl").read_text("utf-8"))) == _COUNT
    assert sorted(file.name for file in Path().iterdir()) == ["disk", "signed.jsonl"]


def test_a_link_that_leads_to_itself_is_refused(run, examples_file):
    Path("one.jsonl").symlink_to("two.jsonl")
    Path("two.jsonl").symlink_to("one.jsonl")
    run("sign", examples_file, "-o", "one.jsonl").check(
        2, "one.jsonl is a link that leads back to itself: name another file"
    )


def test_letters_do_not_go_into_the_output_that_would_replace_them(run, examples_file):
    ran = run("sign", examples_file, "-o", "out.jsonl", "--dead-letters", "./out.jsonl")
    assert (ran.code, Path("out.jsonl").exists()) == (2, False)
    assert "--dead-letters ./out.jsonl is the output, too" in ran.err


@pytest.mark.parametrize("name", ["out.jsonl.gz", "OUT.CSV", "out.html"])
def test_a_name_that_would_deceive_readers_is_refused(run, examples_file, name):
    ran = run("sign", examples_file, "-o", name)
    assert (ran.code, Path(name).exists()) == (2, False)
    assert "would deceive" in ran.err
    assert "| gzip > FILE.jsonl.gz" in ran.err


@pytest.mark.parametrize("output", ["out.jsonl", "out.parquet"])
def test_a_run_in_which_every_document_failed_leaves_no_file_in_the_way_of_the_next(run, output):
    arguments = ("sign", "in.jsonl", "-o", output, "--only-ids")
    Path("in.jsonl").write_text('{"id": "1", "body": 5}\n')
    run(*arguments).check(1, f"warning: {output} was not written, as no document is signed")
    assert [path.name for path in Path().iterdir()] == ["in.jsonl"]
    Path("in.jsonl").write_text('{"id": "1", "body": "the bridge is closed until Monday"}\n')
    assert run(*arguments).code == 0
    made = Path(output).read_bytes()
    Path("in.jsonl").write_text("")
    ran = run(*arguments, "--overwrite", "--json")
    assert (ran.code, ran.json()["warnings"]) == (1, [f"{output} was not written, as no document is signed"])
    assert Path(output).read_bytes() == made


@pytest.mark.long(every=2)
@pytest.mark.parametrize("form", ["text", "html"])
def test_lists_of_texts_are_read_as_an_index_reads_them_that_joins_them(run, form):
    body = [f"<p>{_TEXT}</p>" if form == "html" else _TEXT, "One more &amp; another"]
    lines = [
        {"_id": "list", "title": ["News of", "the day"], "body": body, "format": form},
        {"_id": "text", "title": "News of\nthe day", "body": "\n".join(body), "format": form},
        {"_id": "nested", "title": [["News"]], "body": _TEXT},
    ]
    Path("pages.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    ran = run("sign", "pages.jsonl").check(3, "field [title] is a list, expected text")
    signed = documents_of(ran.out)
    assert [(one["_id"], one["title"]) for one in signed] == [(one["_id"], one["title"]) for one in lines[:2]]
    assert signed[0]["_dedup"] == signed[1]["_dedup"]
    assert run("groups", "pages.jsonl").out.split() == ["list", "text"]
    assert run("report", "pages.jsonl", "--json").json()["largest"][0]["title"] == "News of, the day"
    joins = [{"join": {"field": name, "separator": "\n"}} for name in ("title", "body")]
    steps = [*joins, *default_definition("_dedup")["processors"]]
    Path("pipeline.json").write_text(json.dumps({"processors": steps}))
    Path("list.jsonl").write_text(f"{json.dumps(lines[0])}\n")
    assert run("index", "list.jsonl", "--pipeline", "pipeline.json", "--engine", "kept").code == 0
    with open_engine("kept") as engine:
        (hit,) = engine.search("pages", {"query": {"match_all": {}}})["hits"]["hits"]
    assert hit["_source"]["_dedup"] == signed[0]["_dedup"]
