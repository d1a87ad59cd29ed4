"""The commands: from Parquet to Parquet, and what they say where that can't be."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shinglefold.examples import articles


@pytest.fixture
def pages(tmp_path):
    names = ("id", "title", "body", "lang", "format", "story")
    texts = [{name: one.get(name) for name in names} for one in articles()]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "pages.parquet")
    return texts


def test_the_example_site_is_signed_and_grouped_into_its_stories(run, pages, tmp_path):
    code, out, _ = run("--json", "sign", "pages.parquet", "-o", "signed", "--beside")
    assert (code, json.loads(out)["signed"], json.loads(out)["failed"]) == (0, len(pages), 0)
    code, out, err = run("groups", "signed", "-o", "groups-out", "--work", "work")
    assert code == 0
    assert "connected in" in out
    assert "; connected: chains of copies are one group" in out
    assert "reading fingerprints" in err
    stories = {}
    for page in pages:
        stories.setdefault(page["story"], set()).add(page["id"])
    wanted = {(min(ids), one, len(ids)) for ids in stories.values() if len(ids) > 1 for one in ids}
    rows = pq.read_table(tmp_path / "groups-out").to_pylist()
    assert {(row["group"], row["_id"], row["size"]) for row in rows} == wanted
    assert len(rows) == len(wanted)
    assert not (tmp_path / "work").exists()
    again = run("groups", "signed", "-o", "groups-out", "--work", "work")
    assert (again[0], "replace it with --overwrite" in again[2]) == (2, True)
    over = run("groups", "signed", "-o", "signed", "--work", "work", "--overwrite")
    assert (over[0], "is read from, too" in over[2]) == (2, True)


def test_what_is_not_there_is_told_in_words(run, pages):
    code, _, err = run("groups", "nowhere", "-o", "groups-out", "--work", "work")
    assert code == 1
    assert "nowhere" in err
    assert "check the path" in err
    assert "Traceback" not in err
    code, _, err = run("sign", "pages.parquet", "-o", "signed", "--field", "text")
    assert code == 2
    assert "no column 'text'" in err


def test_documents_that_fail_leave_a_code_and_their_reasons(run, tmp_path):
    titles = ["a b c d e f g", "h i"]
    bodies = pa.array([{"deep": 1}, None])
    rows = pa.table({"id": ["1", "2"], "title": titles, "body": bodies})
    pq.write_table(rows, tmp_path / "odd.parquet")
    code, out, err = run("sign", "odd.parquet", "-o", "signed")
    assert code == 3
    assert "1 signed, 1 failed" in out
    assert "failed once" in err
    found = {row["id"]: row for row in pq.read_table(tmp_path / "signed").to_pylist()}
    assert found["1"]["_dedup"] is None
    assert "body" in found["1"]["sign_problem"]
    assert found["2"]["_dedup"]["digest"]


def test_work_is_done_in_no_folder_of_something_else(run, pages, tmp_path):
    own = tmp_path / "work" / "pairs" / "mine.txt"
    own.parent.mkdir(parents=True)
    own.write_text("not to be lost", "utf-8")
    assert run("sign", "pages.parquet", "-o", "signed")[0] == 0
    code, _, err = run("groups", "signed", "-o", "groups-out", "--work", "work")
    assert code == 2
    assert "work holds other files: name an empty or a new folder with --work" in err
    assert own.read_text("utf-8") == "not to be lost"
    own.unlink()
    own.parent.rmdir()
    code, _, err = run("groups", "signed", "-o", "groups-out", "--work", "work", "--keep-work", "--overwrite")
    assert (code, (tmp_path / "work" / "pairs").exists()) == (0, True), err
    assert run("groups", "signed", "-o", "groups-out", "--work", "work", "--overwrite")[0] == 0
    assert not (tmp_path / "work").exists()


def test_an_output_takes_nothing_that_is_read_or_worked_in_with_it(run, pages, tmp_path):
    source = tmp_path / "signed" / "part" / "pages.parquet"
    source.parent.mkdir(parents=True)
    (tmp_path / "pages.parquet").rename(source)
    for given in (source, tmp_path / "signed" / "*"):
        code, _, err = run("sign", str(given), "-o", "signed", "--overwrite")
        assert (code, "is read from, too" in err) == (2, True)
        assert source.exists()
    within = str(tmp_path / "work" / "groups")
    code, _, err = run("groups", str(source.parent), "-o", within, "--work", "work")
    assert (code, "--work" in err) == (2, True)
