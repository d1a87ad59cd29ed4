"""JSON lines are read as Parquet is; what is neither is refused before the work."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shinglefold.cli.main import main
from shinglefold.examples import articles


@pytest.fixture
def pages(tmp_path):
    names = ("id", "title", "body", "lang", "format")
    texts = [{name: one.get(name) for name in names} for one in articles()]
    pq.write_table(pa.Table.from_pylist(texts), tmp_path / "pages.parquet")
    (tmp_path / "pages").mkdir()
    lines = [json.dumps({name: one for name, one in text.items() if one is not None}) for text in texts]
    (tmp_path / "pages" / "a.jsonl").write_text("\n".join(lines[:50]))
    (tmp_path / "pages" / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[50:]).encode()))
    (tmp_path / "pages" / "_SUCCESS").touch()
    return texts


def prints(folder):
    return {row["id"]: row["_dedup"] for row in pq.read_table(folder).to_pylist()}


def test_json_lines_are_signed_as_parquet_is(run, pages, tmp_path):
    assert run("sign", "pages", "-o", "signed")[0] == 0
    assert run("sign", "pages.parquet", "-o", "out")[0] == 0
    assert prints(tmp_path / "signed") == prints(tmp_path / "out")
    assert len(prints(tmp_path / "out")) == len(pages)


def test_what_sign_wrote_as_json_lines_is_grouped_and_signed_again(run, pages, tmp_path):
    one = str(tmp_path / "signed.jsonl")
    assert main(["sign", str(tmp_path / "pages" / "a.jsonl"), "-o", one, "--workers", "1"]) == 0
    code, _, err = run("groups", one, "-o", "out", "--work", "work")
    assert code == 0, err
    assert run("sign", one, "-o", "signed")[0] == 0
    assert run("groups", "signed", "-o", "groups-out", "--work", "work")[0] == 0
    found = [
        sorted(tuple(row.values()) for row in pq.read_table(tmp_path / name).to_pylist())
        for name in ("out", "groups-out")
    ]
    assert found[0] == found[1] != []


@pytest.mark.parametrize("name", ["pages.csv", "pages.txt", "pages.csv.gz", "pages.parquet.gz"])
def test_a_file_of_another_kind_is_refused_with_a_command(run, pages, tmp_path, name):
    (tmp_path / "pages" / name).write_text("id,body\n")
    code, _, err = run("sign", "pages", "-o", "signed")
    assert (code, f"{name} is neither Parquet nor JSON lines" in err) == (2, True)
    assert "shinglefold sign" in err
    assert not (tmp_path / "signed").exists()


@pytest.mark.parametrize("name", ["pages.jsonl.xz", "pages.jsonl.zip", "pages.tar.gz"])
def test_compressed_files_that_spark_reads_as_they_are_are_refused(run, pages, tmp_path, name):
    (tmp_path / "pages" / name).write_bytes(b"PK")
    code, _, err = run("sign", "pages", "-o", "signed")
    assert code == 2
    assert "Spark does not read the compression of" in err
    assert f"{name}: decompress it, or use gzip" in err


def test_fields_of_any_name_are_kept(run, tmp_path):
    odd = {"user.name": "a", "a`b": "c", "meta": {"content-type": "text/html", "a b": {"c:d": 1}}}
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.jsonl").write_text(json.dumps({"id": "1", "body": "A bridge is closed"} | odd))
    code, _, err = run("sign", "pages", "-o", "signed")
    assert code == 0, err
    (row,) = pq.read_table(tmp_path / "signed").to_pylist()
    assert {name: row[name] for name in odd} == odd
    assert row["_dedup"]["digest"]


def test_parquet_and_json_lines_are_no_one_source(run, pages, tmp_path):
    code, _, err = run("sign", "pages", "pages.parquet", "-o", "signed")
    assert (code, "give each kind to a job of its own" in err) == (2, True)


def test_a_line_that_is_no_json_ends_the_job_before_it_writes(run, pages, tmp_path):
    with (tmp_path / "pages" / "a.jsonl").open("a") as file:
        file.write('\n{"id": "broken", "body": \n')
    code, _, err = run("sign", "pages", "-o", "signed")
    assert (code, "a line is not a JSON object" in err) == (1, True), err
    assert not (tmp_path / "signed").exists()
