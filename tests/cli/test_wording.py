"""What a command says: in its own words, with the way out, and nothing of the system's numbers."""

import gzip
import json
from pathlib import Path

import pytest
from support.commands import TEXT

from shinglefold.cli.commands.indexing.backfill import _lines
from shinglefold.cli.shared.next_commands import Hints
from shinglefold.errors import UnknownLanguage
from shinglefold.maintenance import BackfillSummary
from shinglefold.maintenance.guarded_updates import BackfillCounts
from shinglefold.model.scheme import CanonOptions, LanguageRef
from shinglefold.registry import load_languages

_RAW = ("Errno", "Error -", "errno", "Traceback", "unexpected", "0x")


def test_a_missing_file_is_told_without_numbers(run, monkeypatch):
    Path("a.jsonl").write_text('{"id": "1", "body": "x"}\n')
    Path("p.json").write_text("{}")
    Path("folder").mkdir()
    for arguments, name in (
        (("search", "x", "--config", "no.toml"), "no.toml"),
        (("info", "--config", "folder"), "folder"),
        (("index", "no.jsonl", "--dry-run"), "no.jsonl"),
        (("index", "folder", "--dry-run"), "folder"),
        (("index", "a.jsonl", "--pipeline", "no.json"), "no.json"),
        (("index", "a.jsonl", "--pipeline", "folder"), "folder"),
        (("index", "a.jsonl", "--mapping", "folder"), "folder"),
        (("index", "a.jsonl", "--dead-letters", "no/dead.jsonl"), "no/dead.jsonl"),
        (("index", "a.jsonl", "--dead-letters", "folder"), "folder"),
        (("index", "--replay", "folder"), "folder"),
        (("index", "--replay", "folder", "--workers", "1"), "folder"),
        (("compare", "no.txt", "a.jsonl"), "no.txt"),
        (("groups", "--pairs", "no.jsonl"), "no.jsonl"),
        (("index", "a.jsonl", "--engine", "a.jsonl"), "a.jsonl"),
    ):
        ran = run(*arguments)
        assert ran.code in (1, 2), arguments
        assert name in ran.err, arguments
        assert not any(raw in ran.err for raw in _RAW), (arguments, ran.err)
    monkeypatch.setenv("SHINGLEFOLD_LEXICON_FILE", "no/lexicon")
    told = run("index", "a.jsonl").err
    assert "the lexicon can't be saved to no/lexicon: No such file or directory" in told
    assert not any(raw in told for raw in _RAW)


_ARCHIVES = {
    "damaged": b"\x1f\x8b\x08\x00aaaaaaaaaaaaaaaaaaaa",
    "cut": gzip.compress(b"x" * 9999, mtime=0)[:-30],
}


@pytest.mark.parametrize("content", _ARCHIVES.values(), ids=_ARCHIVES)
def test_a_damaged_archive_is_told_by_every_command(run, content):
    for name in ("g.jsonl.gz", "g.txt.gz"):
        Path(name).write_bytes(content)
        for arguments in (("index", name), ("groups", "--pairs", name)):
            ran = run(*arguments).check(1)
            assert "damaged" in ran.out + ran.err
            assert not any(raw in ran.out + ran.err for raw in _RAW)
    ran = run("compare", "g.txt.gz", "g.txt.gz").check(1, "damaged")
    assert not any(raw in ran.err for raw in _RAW)


def test_a_file_of_unknown_kind_is_told_the_option_that_says_it(run):
    Path("pages.dat").write_text("x")
    for command in ("index", "groups"):
        run(command, "pages.dat").check(2, "with --format jsonl, csv, html or text")


def test_a_pattern_that_no_index_fits_leads_to_all_of_them(run):
    Path("a.jsonl").write_text(f'{{"id": "1", "body": "{TEXT}"}}\n')
    assert run("index", "a.jsonl", "--engine", "my folder").code == 0
    ran = run("stats", "x*", "--engine", "my folder")
    said = "no index fits 'x*' in my folder; this lists all: shinglefold stats --engine 'my folder'"
    assert (ran.code, ran.err) == (1, f"error: {said}\n")
    assert run("stats", "--engine", "my folder").code == 0


@pytest.mark.parametrize("query", [[""], [" ", "\t"]])
def test_a_search_for_nothing_is_misuse(run, query):
    run("search", *query).check(2, "QUERY is empty")


def test_a_column_without_a_name_gets_its_number(run):
    Path("dump.csv").write_text(f'"",title,body,\n0,Bridge,"{TEXT}",\n1,River,"{TEXT}",x\n')
    ran = run("index", "dump.csv")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "2 indexed into pages, 0 dropped, 0 failed, of 2 read")
    hits = run("search", "bridge", "--json", "--no-fold", "--field", "body").json()["hits"]["hits"]
    numbers = {(hit["_source"]["column1"], hit["_source"].get("column4")) for hit in hits}
    assert numbers == {("0", None), ("1", "x")}


@pytest.mark.parametrize(
    ("failing", "words"), [(1, "failed once: "), (2, "failed twice: "), (3, "failed 3 times: ")]
)
def test_how_often_something_failed_is_said_in_words(run, failing, words):
    Path("a.jsonl").write_text("{broken\n" * failing)
    assert words in run("index", "a.jsonl").out


def _index(run, *options, **fields):
    page = json.dumps({"id": "a", "title": "Bridge", "body": TEXT, **fields})
    assert run("index", "-", *options, stdin=page).code == 0


def test_one_of_something_is_said_as_one(run):
    _index(run)
    assert run("search", "bridge").out.endswith(
        "1 result from 1 hit: none folded; read until: end of results\n"
    )
    assert run("search", "bridge", "--no-fold").out.endswith("1 of 1 hit, not folded\n")
    assert run("search", "nothing").out == "0 results from 0 hits\n"
    found = run("similar", "--text", TEXT, "--language", "en").out
    assert found.endswith("among 1 document that shares a supershingle or the text\n")
    assert "--verify decides on groups" in run("index", "-", "--index", "b", "--verify", "text").err
    twice = f'{{"id": "a", "body": "{TEXT}"}}\n' * 2
    assert (
        "1 document has the id of another one; it is shown with where it stands, and an index keeps only "
        "the last one of an id" in run("groups", "--pairs", "-", stdin=twice).err
    )
    empty = f'{{"id": "a", "body": "{TEXT}"}}\n{{"id": "b"}}\n'
    run("index", "-", "--index", "c", stdin=empty)
    assert "\n1 has no text in the fields the pipeline reads\n" in run("backfill", "c").out


def test_reasons_that_are_not_told_are_counted(run):
    bad = "".join(f'{{"id": {number}.5, "body": "x"}}\n' for number in range(8))
    ran = run("index", "-", stdin=bad + '{"id": 7.5}\n')
    assert ran.out.count("failed once: ") == 4
    assert "failed twice: " in ran.out
    assert "failed 3 times for 3 other reasons; --json lists all\n" in ran.out


def test_why_a_window_was_folded_has_its_commands_as_a_shell_takes_them(run):
    _index(run, "--engine", "my data")
    told = run("search", "bridge", "--mode", "auto", "--engine", "my data").out
    assert "`" not in told
    assert told.endswith("add them: shinglefold setup pages --groups --engine 'my data'\n")


def test_a_backfill_never_counts_more_as_updated_before_than_are_right(run):
    counts = BackfillCounts(read=6, updated=2, unchanged=4, earlier=9)
    summary = BackfillSummary("pages", "sf3-1", counts, 0, 1.0, True, "")
    assert "4 of those right already were updated before the scan had to begin anew" in _lines(
        summary, Hints()
    )
    counts = BackfillCounts(read=6, updated=6, earlier=9)
    summary = BackfillSummary("pages", "sf3-1", counts, 0, 1.0, True, "")
    assert not [line for line in _lines(summary, Hints()) if "anew" in line]


def test_other_languages_than_those_of_an_index_are_told_by_their_codes(run):
    _index(run)
    told = run("setup", "pages", "--languages", "ru,any").check(1, "than this engine has: any 1, en 1, ru 1+")
    assert "{" not in told.err


def test_a_language_that_is_gone_is_told_with_what_brings_it_back():
    reference = LanguageRef("eo", "1", CanonOptions())
    with pytest.raises(
        UnknownLanguage, match="the language 'eo', which the scheme was made with, is not inst"
    ):
        load_languages([reference])
