"""Files that do not go together, columns that would be lost, and options that nothing could follow."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shinglefold.errors import ConfigError
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark import StageStore, groups, sign
from shinglefold.settings import load_settings

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
