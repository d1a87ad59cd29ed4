"""Signed lines are read behind a byte order mark, and signed columns of any type that holds their values."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.offline.dedupe.decode import SignatureLayout, TaskAnswer
from shinglefold.offline.dedupe.read_signed import SignedReader, is_signed
from shinglefold.offline.sign.parquet import print_type
from shinglefold.offline.sign.signer import Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import tasks
from shinglefold.registry import make_scheme

_LINE = b'{"id":"%d","body":"the grey heron waits by the slow river with fish %d and reeds"}\n'


@pytest.mark.parametrize("lines", [1, 3])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_byte_order_mark_costs_no_document(tmp_path: Path, lines, suffix):
    scheme, reading = make_scheme(), ReadOptions()
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(b"".join(_LINE % (number, number) for number in range(lines)))
    signer = Signer(scheme, SignOptions(("body",)))
    (task,) = tasks([str(plain)], reading, {})
    marked = b"\xef\xbb\xbf" + b"".join(signer.signed_lines(task, SignTally()))
    signed = tmp_path / f"signed.jsonl{suffix}"
    signed.write_bytes(gzip.compress(marked) if suffix else marked)
    assert is_signed(str(signed), "_dedup", reading) is True
    (task,) = tasks([str(signed)], reading, {})
    answer = SignedReader(SignatureLayout.of(scheme), "_dedup", reading)(task)
    assert (sum(map(len, answer.blocks)), list(answer.left_out)) == (lines, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"id":"1",', b'{"id":"1","id":"2",'),
        (b'{"id":"1",', b'{"_id":"1","_id":"2",'),
        (b',"_dedup":{', b',"_dedup":{"scheme":"x"},"_dedup":{'),
        (b'"scheme":', b'"digest":"x","scheme":'),
        (b'"shingles":', b'"shingles" : 5 , "shingles":'),
        (b'"supershingles":', b'"supershingles":[],"supershingles":'),
        (b'"signature":', b'"signature":"","signature":'),
    ],
)
def test_a_line_with_two_values_for_a_key_is_left_out_as_by_sign(tmp_path: Path, old, new):
    scheme, reading = make_scheme(), ReadOptions()
    plain, signed = tmp_path / "plain.jsonl", tmp_path / "signed.jsonl"
    plain.write_bytes(b"".join(_LINE % (number, number) for number in range(3)))
    (task,) = tasks([str(plain)], reading, {})
    lines = [*Signer(scheme, SignOptions(("body",))).signed_lines(task, SignTally())]
    assert b"".join(lines).count(old) in (1, 3)
    signed.write_bytes(
        b"\n".join(
            line.replace(old, new) if line.startswith(b'{"id":"1"') else line
            for line in b"".join(lines).splitlines()
        )
    )
    (task,) = tasks([str(signed)], reading, {})
    answer = SignedReader(SignatureLayout.of(scheme), "_dedup", reading)(task)
    ((source, number, why),) = answer.left_out
    assert (sum(map(len, answer.blocks)), source, number) == (2, str(signed), 2)
    assert "occurs twice in an object" in why


def _signed_column(count: int) -> pa.StructArray:
    texts = [
        f"the grey heron waits by the slow river with fish {number} and reeds" for number in range(count)
    ]
    made = [one.to_field() for one in Fingerprinter(make_scheme()).fingerprint(texts)]
    return pa.array(made, print_type(pa))


def _answer(folder: Path, ids: pa.Array, column: pa.Array) -> TaskAnswer:
    file = folder / "signed.parquet"
    pq.write_table(pa.table({"id": ids, "_dedup": column}), file)
    (task,) = tasks([str(file)], ReadOptions(), {})
    return SignedReader(SignatureLayout.of(make_scheme()), "_dedup", ReadOptions())(task)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("digest", lambda part: part.dictionary_encode()),
        ("signature", lambda part: part.dictionary_encode()),
        ("scheme", lambda part: part.dictionary_encode()),
        (
            "supershingles",
            lambda part: pa.ListArray.from_arrays(part.offsets, part.flatten().dictionary_encode()),
        ),
    ],
)
def test_columns_of_few_values_are_read_as_others(tmp_path: Path, name, change):
    column = _signed_column(3)
    parts = {field.name: column.field(field.name) for field in column.type}
    parts[name] = change(parts[name])
    answer = _answer(
        tmp_path, pa.array(["a", "b", "c"]), pa.StructArray.from_arrays([*parts.values()], [*parts])
    )
    assert (sum(map(len, answer.blocks)), list(answer.left_out)) == (3, [])
    (expected,) = _answer(tmp_path, pa.array(["a", "b", "c"]), column).blocks
    assert np.array_equal(answer.blocks[0].words, expected.words)
    assert (answer.blocks[0].ids, answer.blocks[0].digests.tobytes()) == (b"abc", expected.digests.tobytes())


@pytest.mark.parametrize("odd", [["b", "c"], b"\xff", {"of": "b"}])
def test_an_id_that_is_no_text_is_told(tmp_path: Path, odd):
    kind = pa.array([odd]).type
    ids = pa.array([None, odd, None], kind)
    answer = _answer(tmp_path, ids, _signed_column(3))
    ((_, line, reason),) = answer.left_out
    assert (line, sum(map(len, answer.blocks))) == (2, 2)
    assert "the id in [id] must be text or a whole number" in reason


def test_keywords_that_are_no_list_are_told(tmp_path: Path):
    column = _signed_column(2)
    parts = {field.name: column.field(field.name) for field in column.type}
    parts["supershingles"] = pa.array(["one", "two"])
    made = pa.StructArray.from_arrays([*parts.values()], [*parts])
    assert len(_answer(tmp_path, pa.array(["a", "b"]), made).left_out) == 2
