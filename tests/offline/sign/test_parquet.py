"""Parquet in, Parquet out: columns stay, the fingerprints are a column beside them."""

import json
import os
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from shinglefold.errors import ConfigError, InputError
from shinglefold.offline.sign.run import sign

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
    return [json.loads(line)["_dedup"] for line in (tmp_path / "prints.jsonl").read_text().splitlines()]


def bare(row):
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize("workers", [1, 2])
def test_columns_stay_and_fingerprints_stand_beside_them(make_job, source, tmp_path, prints, workers):
    made = sign(make_job(source, tmp_path / "out.parquet", workers=workers, parquet=True))
    assert made.signed == 250
    before, after = pq.read_table(source), pq.read_table(tmp_path / "out.parquet")
    assert after.drop_columns(["_dedup"]).equals(before)
    assert [bare(row) for row in after["_dedup"].to_pylist()] == prints


def test_rows_become_json_lines(make_job, source, tmp_path, prints):
    sign(make_job(source, tmp_path / "out.jsonl", workers=2))
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["_dedup"] for one in found] == prints
    assert found[1] == {
        "id": 1,
        "body": found[1]["body"],
        "price": "0.25",
        "tags": ["a", "1"],
        "_dedup": prints[1],
    }


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_ids_and_fingerprints_alone(make_job, source, tmp_path, prints, form):
    given = source if form == "parquet" else tmp_path / "in.jsonl"
    sign(make_job(given, tmp_path / "ids.parquet", only_ids=True, parquet=True, workers=2))
    table = pq.read_table(tmp_path / "ids.parquet")
    assert table.column_names == ["_id", "_dedup"]
    assert table["_id"].to_pylist() == [str(n) for n in range(250)]
    assert [bare(row) for row in table["_dedup"].to_pylist()] == prints


def test_rows_that_fail_are_named_by_their_number_and_left_out(make_job, tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "body": [[1], [2], None]})
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
    table = pa.table({"id": list("abcdef"), "body": [*[None] * 5, [1]]})
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
    assert reason.startswith("field [body] is binary, expected text; cast the column to strings")
    pq.write_table(table.cast(pa.schema({"id": pa.string(), "body": pa.string()})), tmp_path / "in.parquet")
    assert sign(make_job(tmp_path / "in.parquet", tmp_path / "out.jsonl")).signed == 1


_TEXT = "some words of a text that is long enough"


def write(path, **columns):
    rows = len(next(iter(columns.values())))
    given = {"id": [f"{path.stem}{n}" for n in range(rows)], "body": [_TEXT] * rows}
    pq.write_table(pa.table({**given, **columns}), path)
    return path


_NANO = 1_234_567_890_123_456_789


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([_NANO], pa.timestamp("ns")), "2009-02-13T23:31:30.123456789"),
        (pa.array([_NANO], pa.timestamp("ns", "+02:00")), "2009-02-14T01:31:30.123456789+02:00"),
        (pa.array([_NANO // 1000 * 1000], pa.timestamp("ns")), "2009-02-13T23:31:30.123456"),
        (pa.array([123], pa.time64("ns")), "00:00:00.000000123"),
        (pa.array([5_000], pa.duration("ns")), "PT0.000005S"),
        (pa.array([5], pa.duration("ns")), "PT0.000000005S"),
    ],
)
def test_nanoseconds_become_text_with_or_without_pandas(make_job, tmp_path, column, said):
    column = pa.concat_arrays([column, pa.nulls(1, column.type)])
    source = write(tmp_path / "in.parquet", when=column)
    sign(make_job(source, tmp_path / "out.jsonl"))
    rows = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [one["when"] for one in rows] == [said, None]
    sign(make_job(source, tmp_path / "out.parquet", parquet=True))
    assert pq.read_table(tmp_path / "out.parquet")["when"].equals(pa.chunked_array([column]))


def test_a_duration_with_nanoseconds_changes_nothing_in_how_the_others_are_said(make_job, tmp_path):
    day = 86_400 * 10**9
    values = [0, 1_500_000_000, day, 3 * day + 12_000_000_000, -day - 2_000, 60 * 10**9, None]
    said = []
    for name, more in (("plain", 0), ("fine", 1)):
        source = write(tmp_path / f"{name}.parquet", when=pa.array([*values, more], pa.duration("ns")))
        sign(make_job(source, tmp_path / name))
        rows = map(json.loads, (tmp_path / name).read_text().splitlines())
        said.append([one["when"] for one in rows][:-1])
    assert said[0] == said[1]


def test_times_of_pandas_inside_of_lists_are_said(make_job, tmp_path):
    class Timestamp(datetime):
        """What pandas makes of nanoseconds is a datetime, but not for msgspec."""

    signer = make_job(write(tmp_path / "in.parquet", n=[1]), tmp_path / "out.jsonl").signer
    assert signer._encode([Timestamp(2020, 1, 2, tzinfo=UTC)]) == b'["2020-01-02T00:00:00+00:00"]'


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([10**7, 0], pa.date32()), "has a date32[day] JSON can't hold"),
        (pa.array([10**18, 0], pa.timestamp("us")), "has a timestamp[us] JSON can't hold"),
        (pa.array([b"\xff", b"a"]).view(pa.string()), "has text that is not UTF-8"),
        (
            pa.array([1, None], pa.timestamp("us", "Mars/Olympus")),
            "has a timestamp[us, tz=Mars/Olympus] JSON",
        ),
        (
            pa.array([1, None], pa.timestamp("ns", "Mars/Olympus")),
            "has a timestamp[ns, tz=Mars/Olympus] JSON",
        ),
    ],
)
def test_what_json_cannot_hold_costs_its_row_and_no_other(make_job, tmp_path, column, reason):
    source = write(tmp_path / "in.parquet", odd=column)
    made = sign(make_job(source, tmp_path / "out.jsonl", workers=2))
    assert (made.signed, made.failed) == (1, 1)
    assert next(iter(made.reasons)).startswith(f"the column [odd] {reason}")
    assert made.failures[0].line == 1


def test_a_column_that_stays_a_column_may_hold_what_json_cannot(make_job, tmp_path):
    columns = {
        "rate": pa.array([float("nan"), float("inf")]),
        "far": pa.array([10**7, 0], pa.date32()),
        "long": pa.array([timedelta(days=1)] * 2),
    }
    source = write(tmp_path / "in.parquet", **columns)
    assert sign(make_job(source, tmp_path / "out.parquet", parquet=True)).signed == 2
    found = pq.read_table(tmp_path / "out.parquet").select(list(columns))
    assert str(found.to_string()) == str(pa.table(columns).to_string())


def several(make_job, tmp_path, sources, **given):
    job = make_job(sources[0], tmp_path / "out.parquet", parquet=True, **given)
    return replace(job, sources=tuple(map(str, sources)))


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["a", "", "c"], ["", "b", ""]])
def test_columns_of_views_stay_columns_without_the_rows_that_fail(make_job, tmp_path, ids):
    texts = pa.array([f"some words of the text {number}" for number in range(3)], pa.string_view())
    source = write(tmp_path / "in.parquet", id=pa.array(ids), body=texts)
    made = sign(make_job(source, tmp_path / "out.parquet", parquet=True))
    assert (made.signed, made.failed) == (3 - ids.count(""), ids.count(""))
    found = pq.read_table(tmp_path / "out.parquet").select(["id", "body"]).to_pylist()
    assert found == [row for row in pq.read_table(source).to_pylist() if row["id"]]


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (pa.array([3]), pa.array(["007"]), "[n] is int64 and string"),
        (pa.array(["2020-01-01"]), pa.array([0], pa.timestamp("us")), "[n] is string and timestamp[us]"),
        (pa.array([1.5]), pa.array([2**60]), "[n] is double and int64"),
        (pa.array([2**63], pa.uint64()), pa.array([-1]), "[n] is uint64 and int64"),
    ],
)
def test_columns_of_different_types_are_refused_before_the_first_row(make_job, tmp_path, one, other, why):
    sources = [write(tmp_path / "a.parquet", n=one), write(tmp_path / "b.parquet", n=other)]
    with pytest.raises(ConfigError, match="into a file each, or add --only-ids") as refused:
        sign(several(make_job, tmp_path, sources))
    assert why in str(refused.value)
    # What the message advises is not in the way of itself.
    assert sign(several(make_job, tmp_path, sources, only_ids=True)).signed == 2


def test_a_column_without_values_is_no_way_round_a_difference(make_job, tmp_path):
    columns = {"a": pa.nulls(1), "b": pa.array([1]), "c": pa.array(["one"])}
    sources = [write(tmp_path / f"{name}.parquet", n=column) for name, column in columns.items()]
    with pytest.raises(ConfigError, match=r"\[n\] is int64 and string"):
        sign(several(make_job, tmp_path, sources))


def test_a_column_that_says_all_have_values_takes_none_of_another_file(make_job, tmp_path):
    strict = pa.schema(
        [("id", pa.string()), ("body", pa.string()), pa.field("n", pa.int32(), nullable=False)]
    )
    table = pa.table({"id": ["a0"], "body": [_TEXT], "n": pa.array([1], pa.int32())}).cast(strict)
    pq.write_table(table, tmp_path / "a.parquet")
    sign(several(make_job, tmp_path, [tmp_path / "a.parquet", write(tmp_path / "b.parquet", n=[None, 2])]))
    assert pq.read_table(tmp_path / "out.parquet")["n"].to_pylist() == [1, None, 2]


def test_columns_that_others_lack_are_refused_before_the_first_row(make_job, tmp_path):
    sources = [write(tmp_path / "a.parquet", n=[1]), write(tmp_path / "b.parquet", n=[1], more=[1])]
    with pytest.raises(ConfigError, match=r"a\.parquet has no \[more\]"):
        sign(several(make_job, tmp_path, sources))
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (pa.nulls(1), pa.array([2.5]), [None, 2.5]),
        (pa.array([2.5]), pa.nulls(1), [2.5, None]),
        (pa.array([1], pa.int32()), pa.array([2**40]), [1, 2**40]),
        (pa.array([1.5], pa.float32()), pa.array([0.1]), [1.5, 0.1]),
        (pa.array(["a"]), pa.array(["b"], pa.large_string()), ["a", "b"]),
        (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), ["a", "b"]),
        (pa.array([b"a"]), pa.array([b"b"], pa.large_binary()), [b"a", b"b"]),
    ],
)
def test_columns_that_hold_each_other_become_one(make_job, tmp_path, one, other, values):
    sources = [write(tmp_path / "a.parquet", n=one), write(tmp_path / "b.parquet", n=other)]
    sign(several(make_job, tmp_path, sources))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["id"].to_pylist() == ["a0", "b0"]
    assert table["n"].to_pylist() == values


def test_two_columns_of_one_name_are_refused(make_job, tmp_path):
    table = pa.table([pa.array(["1"]), pa.array(["one"]), pa.array(["two"])], names=["id", "body", "body"])
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(InputError, match=r"two columns are called \[body\]"):
        sign(make_job(tmp_path / "in.parquet", tmp_path / "out.jsonl"))


@pytest.mark.parametrize("only_ids", [False, True])
def test_fingerprints_below_a_path_stand_where_readers_look(make_job, source, tmp_path, prints, only_ids):
    given = {"parquet": True, "target": "made._dedup", "only_ids": only_ids}
    sign(make_job(source, tmp_path / "out.parquet", **given))
    found = [row["_dedup"] for row in pq.read_table(tmp_path / "out.parquet")["made"].to_pylist()]
    assert [bare(row) for row in found] == prints
    if only_ids:
        made = tmp_path / "in.jsonl"
        sign(make_job(made, tmp_path / "again.parquet", **given))
        assert pq.read_table(tmp_path / "again.parquet").equals(pq.read_table(tmp_path / "out.parquet"))


def test_a_path_into_a_column_that_is_there_is_refused(make_job, tmp_path):
    source = write(tmp_path / "in.parquet", made=[{"by": "us"}])
    with pytest.raises(ConfigError, match=r"has a column \[made\]"):
        sign(make_job(source, tmp_path / "out.parquet", parquet=True, target="made._dedup"))
    sign(make_job(source, tmp_path / "out.jsonl", target="made._dedup"))
    (row,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (row["made"]["by"], row["made"]["_dedup"]["lang"]) == ("us", "en")


def test_a_row_group_that_workers_die_of_is_told_with_what_else_can_be_done(
    make_job, source, tmp_path, monkeypatch
):
    parent, job = os.getpid(), make_job(source, tmp_path / "out.jsonl", workers=2)

    def deadly(texts, *given):
        assert os.getpid() != parent
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(job.signer.tools.fingerprinter, "fingerprint_json", deadly)
    with pytest.raises(InputError, match=r"died of row group 1: signal 9.*; sign its rows as JSON lines"):
        sign(job)
