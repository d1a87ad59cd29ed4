"""Parquet in, Parquet out: columns stay, the fingerprints are a column beside them."""

import json
from decimal import Decimal

import pytest

from shinglefold.errors import InputError
from shinglefold.ingest.signing.run import sign

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def source(tmp_path):
    rows = 250
    table = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "body": [None if n == 3 else f"some words of the text {n}, more words" for n in range(rows)],
            "price": pa.array([Decimal(n) / 4 for n in range(rows)], pa.decimal128(8, 2)),
            "tags": [["a", str(n)] for n in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=40)
    return tmp_path / "in.parquet"


@pytest.fixture
def prints(make_job, source, tmp_path):
    """The fingerprints of the same documents out of JSON lines."""
    rows = [{"id": row["id"], "body": row["body"]} for row in pq.read_table(source).to_pylist()]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sign(make_job(tmp_path / "in.jsonl", tmp_path / "prints.jsonl"))
    return [json.loads(line)["dedup"] for line in (tmp_path / "prints.jsonl").read_text().splitlines()]


def bare(row):
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize("workers", [1, 2])
def test_columns_stay_and_fingerprints_stand_beside_them(make_job, source, tmp_path, prints, workers):
    made = sign(make_job(source, tmp_path / "out.parquet", workers=workers, parquet=True))
    assert made.signed == 250
    before, after = pq.read_table(source), pq.read_table(tmp_path / "out.parquet")
    assert after.drop_columns(["dedup"]).equals(before)
    assert [bare(row) for row in after["dedup"].to_pylist()] == prints


def test_rows_become_json_lines(make_job, source, tmp_path, prints):
    sign(make_job(source, tmp_path / "out.jsonl", workers=2))
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["dedup"] for one in found] == prints
    assert found[1] == {
        "id": 1,
        "body": found[1]["body"],
        "price": "0.25",
        "tags": ["a", "1"],
        "dedup": prints[1],
    }


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_ids_and_fingerprints_alone(make_job, source, tmp_path, prints, form):
    given = source if form == "parquet" else tmp_path / "in.jsonl"
    sign(make_job(given, tmp_path / "ids.parquet", only_ids=True, parquet=True, workers=2))
    table = pq.read_table(tmp_path / "ids.parquet")
    assert table.column_names == ["_id", "dedup"]
    assert table["_id"].to_pylist() == [str(n) for n in range(250)]
    assert [bare(row) for row in table["dedup"].to_pylist()] == prints


def test_rows_that_fail_are_named_by_their_number_and_left_out(make_job, tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "body": [["no"], ["text"], None]})
    pq.write_table(table, tmp_path / "in.parquet")
    made = sign(make_job(tmp_path / "in.parquet", tmp_path / "out.parquet", parquet=True))
    assert (made.signed, made.failed) == (1, 2)
    assert [one.line for one in made.failures] == [1]
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == ["c"]


def test_progress_is_told_by_the_rows_of_the_file_that_are_read(make_job, source, tmp_path):
    told = []
    sign(make_job(source, tmp_path / "out.parquet", parquet=True), lambda pace: told.append(pace.fraction))
    assert told == [pytest.approx(rows / 250) for rows in (40, 80, 120, 160, 200, 240, 250)]


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_a_row_of_a_later_row_group_has_its_number_in_the_file(make_job, tmp_path, rows):
    table = pa.table({"id": list("abcdef"), "body": [*[None] * 5, ["no text"]]})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=rows)
    made = sign(make_job(tmp_path / "in.parquet", tmp_path / "out.parquet", parquet=True))
    assert [one.line for one in made.failures] == [6]


def test_fingerprints_that_came_along_are_left_out_and_counted(make_job, source, tmp_path):
    first = tmp_path / "first.parquet"
    sign(make_job(source, first, parquet=True))
    made = sign(make_job(first, tmp_path / "second.parquet", parquet=True))
    assert made.counts["fingerprints_left_out"] == 250
    assert pq.read_table(tmp_path / "second.parquet").equals(pq.read_table(first))


def test_a_run_goes_on_with_the_parts_it_has(make_job, source, tmp_path):
    job = make_job(source, tmp_path / "out.parquet", parquet=True)
    left = iter(range(3))

    def stop(_):
        if next(left, None) is None:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        sign(job, stop)
    assert not (tmp_path / "out.parquet").exists()
    made = sign(job)
    assert made.resumed > 0
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == list(range(250))


def test_what_is_no_parquet_is_told(make_job, tmp_path):
    (tmp_path / "in.parquet").write_text("no Parquet at all")
    with pytest.raises(InputError, match="no Parquet file"):
        sign(make_job(tmp_path / "in.parquet", tmp_path / "out.jsonl"))


def test_of_nothing_nothing_is_left(make_job, tmp_path):
    (tmp_path / "in.jsonl").touch()
    assert (
        sign(make_job(tmp_path / "in.jsonl", tmp_path / "out.parquet", only_ids=True, parquet=True)).read == 0
    )
    assert [file.name for file in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_column_of_bytes_is_told_with_the_remedy(make_job, tmp_path):
    table = pa.table({"id": ["1"], "body": pa.array([b"some words of the text"], pa.binary())})
    pq.write_table(table, tmp_path / "in.parquet")
    summary = sign(make_job(tmp_path / "in.parquet", tmp_path / "out.jsonl"))
    (reason,) = summary.reasons
    assert reason.startswith("field [body] is binary, expected text; make the column one of strings: cast it")
    pq.write_table(table.cast(pa.schema({"id": pa.string(), "body": pa.string()})), tmp_path / "in.parquet")
    assert sign(make_job(tmp_path / "in.parquet", tmp_path / "out.jsonl")).signed == 1
