"""What Spark reads: tables and JSON lines, odd ones too."""

import gzip
import json
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.copied_texts import copied_texts, groups_by_what_is_stored

from shinglefold.cli.main import main
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError
from shinglefold.examples import articles
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark import StageStore, groups, sign, stored
from shinglefold.offline.spark.fingerprint_rows import FOREIGN, UNREADABLE, UNSIGNED, _Reader
from shinglefold.offline.spark.read_index import _whole
from shinglefold.settings import load_settings

_TYPES = {"digest": pa.string(), "supershingles": pa.list_(pa.string()), "signature": pa.string()}


@pytest.fixture
def recipe(scheme):
    return default_recipe(scheme.with_options(verify="signature"))


def test_an_index_is_grouped_by_what_it_stores(spark, work, tmp_path, recipe):
    texts = copied_texts(120, 4)
    prints = Fingerprinter(recipe.scheme).fingerprint(texts)
    with closing(open_engine(tmp_path / "engine")) as engine:
        engine.create_index("pages", recipe_mappings(recipe), {})
        actions = [
            {"_index": "pages", "_id": f"p{place}", "_source": {"_dedup": one.to_field(), "n": place}}
            for place, one in enumerate(prints)
        ]
        assert not engine.bulk([*actions, {"_index": "pages", "_id": "bare", "_source": {"n": 1}}]).failures
        engine.refresh("pages")
    frame = work.keep(stored(spark, str(tmp_path / "engine"), "pages", recipe), "stored")
    grouped = groups(frame, recipe.scheme, work)
    found = {}
    for row in grouped.groups.collect():
        found.setdefault(row.group, set()).add(int(row._id[1:]))
    assert {frozenset(one) for one in found.values()} == groups_by_what_is_stored(texts, recipe.scheme)
    assert grouped.summary.read == len(texts) + 1
    assert frame.where("_id = 'bare'").collect()[0]._dedup is None


def test_sealed_fingerprints_are_refused(recipe):
    sealed = replace(default_recipe(recipe.scheme), sealed="0123456789abcdef")
    with pytest.raises(ConfigError, match="sealed, and Spark gets no keys"):
        stored(None, "nowhere", "pages", sealed)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "damaged", [{"digest": 5}, {"supershingles": [1]}, {"shingles": "many"}, {"signature": ["a", "b"]}]
)
def test_parts_of_another_type_are_a_damaged_fingerprint(damaged, scheme):
    whole = {"scheme": "sf3-x", "digest": "sf3-x.en.3.abc", "supershingles": ["Aabcde"]}
    read = [_whole(one) for one in ({}, whole, whole | damaged)]
    assert read[0] is None
    columns = {name: pa.array([(one or {}).get(name) for one in read], kind) for name, kind in _TYPES.items()}
    (rows,) = _Reader(scheme, False, False)([pa.RecordBatch.from_pydict({"id": pa.array("abc"), **columns})])
    assert rows.column("state").to_pylist() == [UNSIGNED, FOREIGN, UNREADABLE]


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


STEEL = "A steel tube of {} mm by 200 for the water pipe of a private house, with a warranty of the works"
SEA = "The sun rose over the sea, and fishermen came ashore to mend their nets before the autumn storms"


@pytest.fixture
def write(tmp_path):
    def written(folder, name="one", **columns):
        (tmp_path / folder).mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / folder / f"{name}.parquet")

    return written


def test_columns_that_some_files_have_only_are_signed_and_kept(run, write, tmp_path):
    write("pages", "a", id=["1", "2"], body=[SEA, SEA])
    write("pages", "b", id=["3"], title=[STEEL.format(5)], body=[SEA], host=["port.example"])
    code, _, err = run("sign", "pages", "-o", "signed")
    assert code == 0, err
    rows = {row["id"]: row for row in pq.read_table(tmp_path / "signed").to_pylist()}
    assert rows["3"]["title"] == STEEL.format(5)
    assert rows["3"]["host"] == "port.example"
    assert rows["1"]["_dedup"]["digest"] == rows["2"]["_dedup"]["digest"] != rows["3"]["_dedup"]["digest"]
    write("pages", "c", id=[4], body=[SEA])
    code, _, err = run("sign", "pages", "-o", "signed", "--overwrite")
    assert code == 1
    assert "must be of one type in all files" in err


@pytest.mark.parametrize("name", ["beside", "sign_problem", "_dedup"])
def test_a_column_of_somebody_else_is_not_lost(spark, scheme, name):
    pages = spark.createDataFrame([("1", SEA, 7)], f"id string, body string, {name} int")
    with pytest.raises(ConfigError, match=f"the column {name} would be lost"):
        sign(pages, scheme, SignOptions(("body",)))


def test_what_is_signed_may_be_signed_again(spark, scheme):
    options = SignOptions(("body",))
    once = sign(spark.createDataFrame([("1", SEA)], "id string, body string"), scheme, options, beside=True)
    again = sign(once, scheme, options)
    assert again.columns == ["id", "body", "_dedup", "sign_problem"]
    assert again.collect()[0]._dedup == once.collect()[0]._dedup


@pytest.mark.parametrize("named", [["--field", "body", "--field", "text"], ["--language-field", "text"]])
def test_a_column_that_was_named_is_missed_before_the_work(run, write, tmp_path, named):
    write("pages", id=["1"], title=[SEA], body=[SEA])
    code, _, err = run("sign", "pages", "-o", "signed", *named)
    assert (code, "no column 'text'" in err) == (2, True)
    assert not (tmp_path / "signed").exists()


def test_facts_keep_apart_what_else_is_alike(run, write, tmp_path):
    # Of another word no fewer shingles are others than of another number.
    bodies = [*(STEEL.format(size) for size in (15, 16, 17)), STEEL.format(15).replace("water", "gas"), SEA]
    write("pages", id=["1", "2", "3", "4", "5"], body=bodies)
    command = ("groups", "signed", "-o", "out", "--work", "work", "--overwrite")
    facts = ("--never-differ", "numbers")
    for beside, how in ((), ("--min-resemblance", ".5")), (("--beside",), ("--min-similarity", ".7")):
        assert run("sign", "pages", "-o", "signed", "--overwrite", *beside, *facts)[0] == 0
        code, _, err = run(*command, *how)
        assert code == 0, err
        assert set(pq.read_table(tmp_path / "out")["_id"].to_pylist()) == {"1", "4"}


def test_texts_do_not_decide_where_there_are_none(run, write):
    write("pages", id=["1", "2"], body=[SEA, SEA])
    assert run("sign", "pages", "-o", "bare")[0] == 0
    command = ("groups", "bare", "-o", "out", "--work", "work", "--overwrite")
    for given in (["--min-similarity", ".9"], ["--verify", "text"]):
        code, _, err = run(*command, *given)
        assert (code, "sign with --beside" in err) == (2, True)
    code, _, err = run(*command)
    assert (code, "signatures decide (--min-resemblance 0.61)" in err) == (0, True)
    assert run("sign", "pages", "-o", "signed", "--beside")[0] == 0
    code, _, err = run("groups", "signed", *command[1:])
    assert (code, "with --beside, or none" in err) == (2, True)


def test_a_failure_leaves_nothing_of_the_work(run, write, tmp_path):
    write("pages", id=["1", None], body=[SEA, SEA])
    assert run("sign", "pages", "-o", "signed")[0] == 0
    code, _, err = run("groups", "signed", "-o", "out", "--work", "work")
    assert (code, "a document has no id" in err) == (2, True)
    assert not (tmp_path / "work").exists()
    code, _, err = run("groups", "signed", "-o", "out", "--work", str(tmp_path / "signed" / "work"))
    assert (code, "name another folder with --work" in err) == (2, True)


def test_two_jobs_in_one_folder_do_not_mix(spark, tmp_path):
    frame = spark.createDataFrame([(1,)], "number long")
    one, other = (StageStore(spark, str(tmp_path / "work")) for _ in range(2))
    one.keep(frame, "prints")
    other.keep(frame, "prints")
    with pytest.raises(ConfigError, match="another job works in"):
        one.keep(frame, "pairs")
    one.remove()
    assert (tmp_path / "work" / "prints").exists()
    other.keep(frame, "pairs")
    other.remove()
    assert not (tmp_path / "work").exists()


def test_groups_are_counted_by_documents_though_these_share_an_id(spark, work, scheme):
    rows = [("same", SEA), ("same", SEA), ("1", STEEL), ("2", STEEL)]
    pages = spark.createDataFrame(rows, "id string, body string")
    signed = work.keep(sign(pages, load_settings(None).scheme(), SignOptions(("body",))), "signed")
    found = groups(signed, scheme, work)
    assert (found.summary.groups, found.summary.members) == (2, 4)
    assert found.groups.columns == ["_id", "group", "size"]
