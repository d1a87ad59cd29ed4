"""Groups and pairs of what sign wrote: by fingerprints alone, from JSONL and Parquet, and no mixtures."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import write_lines

from shinglefold.cli.main import main
from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable


@pytest.fixture(scope="module")
def signed_once(examples_file, tmp_path_factory) -> Path:
    """The examples as ``sign`` writes them: as lines, and as a table without their texts."""
    folder = tmp_path_factory.mktemp("signed")
    for name, *options in (("signed.jsonl",), ("ids.parquet", "--only-ids")):
        sign = ["sign", str(examples_file), "-o", str(folder / name), "--workers", "1", *options]
        assert main(sign) == 0
    return folder


@pytest.fixture
def signed(signed_once) -> Path:
    shutil.copytree(signed_once, ".", dirs_exist_ok=True)
    return Path("signed.jsonl")


def ids(out: str) -> set[frozenset[str]]:
    return {frozenset(line.split("\t")[:2]) for line in out.splitlines()}


@pytest.mark.long
def test_signed_files_fold_as_their_texts_do_by_signature(run, signed, examples_file):
    ran = run("groups", "--pairs", signed).check(0, "no text is read")
    by_text = run("groups", "--pairs", examples_file, "--verify", "signature").out
    # Texts have more supershingles than are stored, which find a few pairs more.
    for told in (ran.err, run("groups", "--pairs", signed, "--verify", "signature").err):
        assert "signed files hold 21 of the 84 supershingles that texts have" in told
    assert "supershingles" not in run("groups", signed, "--min-shared", 2).err
    assert ids(ran.out) <= ids(by_text)
    assert len(ids(ran.out)) > 0.9 * len(ids(by_text))
    assert {line.split("\t")[3] for line in ran.out.splitlines()} == {"same_text", "estimate"}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_parquet_and_every_way_to_write_json_tell_the_same(run, signed, workers):
    expected = run("groups", "--pairs", signed).out
    assert run("groups", "--pairs", "ids.parquet", "--workers", workers).out == expected
    rows = [json.loads(line) for line in signed.read_text().splitlines()]
    write_lines("spaced.jsonl", *rows)
    Path("sorted.jsonl").write_text(
        "".join(json.dumps({"_source": row, "_id": row["id"]}, indent=None) + "\n\n" for row in rows)
    )
    for name in ("spaced.jsonl", "sorted.jsonl"):
        assert run("groups", "--pairs", name, "--workers", workers).out == expected
    assert run("groups", "--pairs", "-", "--signed", stdin=signed.read_text()).out == expected


def test_files_in_which_texts_are_too_short_are_read_as_well(run):
    lines = [json.dumps({"id": n, "body": body}) for n, body in enumerate(["", "one two", "one two", "x"])]
    run("sign", "-", "-o", "short.jsonl", stdin="\n".join(lines))
    assert run("groups", "--pairs", "short.jsonl").out == "1\t2\t1.0000\tsame_text\n"
    run("sign", "-", "-o", "short.parquet", "--only-ids", stdin="\n".join(lines))
    assert run("groups", "--pairs", "short.parquet").out == "1\t2\t1.0000\tsame_text\n"


def test_equal_ids_are_told_apart_and_documents_without_one_are_named_by_line(run, signed):
    lines = signed.read_text().splitlines()
    bare = {name: value for name, value in json.loads(lines[0]).items() if name != "id"}
    Path("twice.jsonl").write_text("\n".join([lines[0], lines[1], lines[0], json.dumps(bare)]))
    ran = run("groups", "twice.jsonl")
    first = json.loads(lines[0])["id"]
    assert ran.out.splitlines()[0].split("\t")[-2:] == [f"{first} (twice.jsonl:3)", "twice.jsonl:4"]
    assert "1 document has the id of another one" in ran.err


def test_mixtures_are_refused_with_what_to_do(run, signed, examples_file):
    run("groups", signed, examples_file).check(2, "is signed and", "--texts")
    other = run("groups", signed, "--preset", "once")
    assert other.code != 0
    assert "--preset default" in other.err
    run("sign", examples_file, "-o", "once.jsonl", "--preset", "once")
    schemes = run("groups", signed, "once.jsonl")
    assert schemes.code != 0
    assert "once.jsonl:1" in schemes.err
    assert "--preset once" in schemes.err


@pytest.mark.long
def test_texts_in_signed_files_can_be_compared_anew(run, signed, examples_file):
    assert run("groups", "--pairs", signed, "--texts").out == run("groups", "--pairs", examples_file).out
    run("groups", "--pairs", signed, "--verify", "text").check(2, "--texts")


def test_parquet_without_fingerprints_is_refused_with_the_command(run):
    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.table({"_id": ["1"], "body": ["a b c"]}), "bare.parquet")
    run("groups", "bare.parquet").check(2, "shinglefold sign bare.parquet --output signed.parquet")


def test_damaged_fingerprints_are_left_out_and_told(run, signed):
    rows = [json.loads(line) for line in signed.read_text().splitlines()]
    rows[0]["_dedup"]["signature"] = "AAAA"
    rows[1]["_dedup"]["supershingles"] = ["?????"] * 21
    del rows[2]["_dedup"]
    rows[3]["_dedup"]["signature"] = "*" * 112
    first = {**rows[4], "id": "first"}
    Path("damaged.jsonl").write_text("\n".join(map(json.dumps, [first, *rows])))
    run("groups", "damaged.jsonl", "--min-size", 1).check(
        3, "4 documents left out; first: damaged.jsonl:2: its signature"
    )


def test_a_size_that_is_none_is_refused(run, signed):
    for size in ("much", "0", "-1G", ""):
        assert run("groups", signed, "--memory", size).code == 2


@pytest.mark.long
def test_more_pairs_than_memory_holds_are_refused_with_the_remedy(run, signed):
    Path("many.jsonl").write_text(signed.read_text() * 20)
    ran = run("groups", "--pairs", "many.jsonl", "--memory", "1M")
    assert (ran.code, ran.out) == (2, "")
    assert "more than 14,563 pairs" in ran.err
    assert "smaller --most-shared" in ran.err
    assert run("groups", "--pairs", "many.jsonl", "--memory", "1M", "--most-shared", 5).code == 0
    assert run("groups", "many.jsonl", "--memory", "1M").code == 0


@pytest.mark.long(every=16)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
@pytest.mark.parametrize("read", [True, False], ids=["somebody reads", "nobody reads"])
@pytest.mark.parametrize("command", ["groups --pairs", "groups"])
def test_a_command_ends_while_it_prints(signed, command, read, number):
    Path("many.jsonl").write_text(signed.read_text() * (40 if command == "groups" else 8))
    shinglefold = str(Path(sys.executable).with_name("shinglefold"))
    process = subprocess.Popen(
        [shinglefold, *command.split(), "many.jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline()
    if read:
        process.send_signal(number)
        process.communicate(timeout=240)
    else:
        time.sleep(0.5)  # until the pipe is full, and the buffer before it, which Python empties at exit
        process.send_signal(number)
        process.wait(timeout=120)
    assert process.returncode == 128 + number


def test_where_there_is_no_terminal_a_line_a_minute_tells_how_far_it_is(monkeypatch, capsys):
    from shinglefold.cli.shared import output as progress

    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(clock)))
    with progress.progress_bar("fingerprints") as bar:
        pace = progress.ProgressPace()
        for done in range(6):
            bar(done / 10, f"{500 * done:,} documents, {pace.describe(500 * done, done / 10)}")
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert told[-1] == "fingerprints: 2,000 documents, 7/s, 6:52 left, 40% done"


@pytest.mark.parametrize("options", [[], ["--texts"]])
def test_a_table_that_is_not_there_is_told_as_such(run, options):
    refused = run("groups", "nowhere.parquet", *options)
    assert (refused.code, refused.err) == (
        1,
        "error: cannot read nowhere.parquet: no such file; check the path\n",
    )


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", ["signed.jsonl", "texts.jsonl"])
def test_a_file_that_changes_while_it_is_read_is_told(run, signed, examples_file, monkeypatch, name):
    Path("texts.jsonl").write_bytes(Path(examples_file).read_bytes())
    add, left = FingerprintTable.add, [1]

    def changes(table, block):
        add(table, block)
        if left and left.pop():
            # As those do who write a file anew.
            Path("new").write_bytes(Path(name).read_bytes())
            Path("new").replace(name)

    monkeypatch.setattr(FingerprintTable, "add", changes)
    ran = run("groups", name)
    assert (ran.code, ran.out) == (1, "")
    assert f"{name} changed while it was read" in ran.err


@pytest.mark.long(every=2)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_file_without_documents_goes_with_the_others(run, signed, form):
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        signed, empty = Path("ids.parquet"), Path("empty.parquet")
        table = pytest.importorskip("pyarrow.parquet")
        table.write_table(table.read_table(signed).slice(0, 0), empty)
        assert arrow
    else:
        empty = Path("empty.jsonl")
        empty.write_text("\n\n")
    whole = run("groups", signed).out
    for sources in ((empty, signed), (signed, empty)):
        ran = run("groups", *sources)
        assert (ran.code, ran.out) == (0, whole), ran.err
    run("groups", empty).check(1, "no documents found")


@pytest.mark.long
def test_a_first_document_far_down_says_what_a_file_is(run, signed):
    Path("late.jsonl").write_bytes(b"\n" * 70_000 + signed.read_bytes())
    assert "signatures decide" in run("groups", "late.jsonl").err


def test_a_table_whose_first_row_has_no_fingerprint_is_signed_all_the_same(run, signed):
    table = pytest.importorskip("pyarrow.parquet")
    rows = table.read_table("ids.parquet").to_pylist()
    rows[0]["_dedup"] = None
    table.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), "spark.parquet")
    ran = run("groups", "spark.parquet", "--json").check(
        3, "1 document left out; first: spark.parquet:1: no fingerprint in its column [_dedup]"
    )
    assert ran.out.count("\n") == run("groups", signed, "--json").out.count("\n")


@pytest.mark.long(every=12)
@pytest.mark.parametrize(
    "option",
    [("--field", "title"), ("--language-field", "l"), ("--html",), ("--titles",), ("--title-field", "id")],
)
def test_what_says_how_texts_are_read_is_refused_where_none_is(run, signed, option):
    ran = run("groups", signed, *option)
    assert (ran.code, ran.out) == (2, "")
    assert f"leave {option[0]} out, or add --texts" in ran.err
    assert run("groups", signed, "--texts", *option).code in {0, 3}


def test_signed_files_are_grouped_by_the_threshold_of_a_profile_and_by_the_facts_that_they_have(run):
    words = "a plain steel bolt with a hexagon head and a long thread for wood and for walls"
    cards = [{"id": f"{size}", "title": f"Bolt {size} mm", "body": f"{words} {size} mm"} for size in (8, 9)]
    write_lines("cards.jsonl", *cards)
    for name, *options in (("plain.jsonl",), ("products.jsonl", "--profile", "products")):
        assert run("sign", "cards.jsonl", "-o", name, *options).code == 0
    alike = run("groups", "products.jsonl", "--profile", "products")
    assert (alike.code, alike.out) == (0, "")
    assert "profile" not in alike.err
    unnamed = run("groups", "products.jsonl")
    assert unnamed.out == ""
    assert "for its threshold add --profile products" in unnamed.err
    bare = run("groups", "plain.jsonl", "--profile", "products")
    assert bare.out == "8\t9\n"
    assert "made without --profile products, so documents that differ in numbers" in bare.err
    run("groups", "products.jsonl", "--never-differ", "numbers").check(2, "leave --never-differ out")
