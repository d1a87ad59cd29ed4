"""Signed lines are read as texts are, also those behind the mark that programs of Windows write first."""

import gzip
from pathlib import Path

import pytest

from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.offline.dedupe.decode import SignatureLayout
from shinglefold.offline.dedupe.read_signed import SignedReader, is_signed
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
