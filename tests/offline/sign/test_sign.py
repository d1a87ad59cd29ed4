"""sign: the same documents with the fingerprints that index stores, whatever the form of the input."""

import gzip
import io
import json
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.offline.sign import run
from shinglefold.offline.sign.run import sign
from shinglefold.offline.sign.tasks import ByteRange, read_lines
from shinglefold.sketch.minhash import batch_minima

_TEXT = "Съешь же ещё этих мягких французских булок, да выпей чаю; the quick brown fox jumps over the dog"
_PAGE = f"<html><head><title>x</title></head><body><p>{_TEXT}</p><script>no()</script></body></html>"


def signed_lines(job) -> list[bytes]:
    stream = io.BytesIO()
    from dataclasses import replace

    sign(replace(job, target=stream))
    return stream.getvalue().splitlines()


def stored(documents, scheme) -> list[dict]:
    pipeline = Pipeline.from_json(default_definition(), scheme)
    return [outcome.document["_dedup"] for outcome in pipeline.run(documents)]


@pytest.fixture
def varied() -> list[dict]:
    """Documents in all languages; pages and plain; declared languages; short, empty and long ones."""
    return [
        *articles(),
        {"id": "page", "format": "html", "title": "a <b> c", "body": _PAGE},
        {"id": "plain", "body": _PAGE},
        {"id": "declared", "lang": "uk", "body": _TEXT},
        {"id": "dialect", "lang": "ru-RU", "body": _TEXT},
        {"id": "nobody's", "lang": "xx", "title": "", "body": _TEXT},
        {"id": "null", "title": None, "body": _TEXT},
        {"id": "short", "title": "слово"},
        {"id": "empty"},
        {"id": "long", "body": " ".join(f"слово{n} the" for n in range(3_000))},
        {"id": 'quo"te', "title": "ё\u2028\\n", "body": f'"{_TEXT}"\t\u0301 \u200b x\U0001f600'},
    ]


@pytest.fixture
def file(varied, tmp_path: Path) -> Path:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in varied), "utf-8")
    return path


@pytest.mark.long(every=3)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_fingerprints_are_those_that_index_stores_in_order(make_job, file, varied, scheme, workers):
    found = [json.loads(line) for line in signed_lines(make_job(file, "-", workers=workers))]
    assert [one.pop("_dedup") for one in found] == stored(varied, scheme)
    assert found == varied


@pytest.mark.usefixtures("small")
def test_the_line_of_a_document_stays_as_it_is_byte_for_byte(make_job, tmp_path):
    given = [
        b'{ "id" : 1.50e3, "body":"\\u0441\\u043b\\u043e\\u0432\\u043e \\/ and more words" , "n": 1E400}',
        b'{"id":12345678901234567890123, "body": "  words of this document  ", "a": {"b": [1.0, -0.0]} }',
    ]
    given[0] = given[0].replace(b'"id" : 1.50e3', b'"id" : "x"').replace(b"1E400", b"1E30")
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\r\n".join(given))
    lines = signed_lines(make_job(path, "-"))
    for line, before in zip(lines, given, strict=True):
        assert line.startswith(before[:-1] + b',"_dedup":{"scheme":')


@pytest.mark.long(every=6)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", ["gz", "utf-16", "cp1251", "bom", "csv", "folder"])
def test_other_forms_of_input_give_the_same_fingerprints(make_job, tmp_path, scheme, form):
    documents = [{"id": str(n), "body": f"{_TEXT} {'слово ' * n}{n}"} for n in range(40)]
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents)
    path, more = tmp_path / "d.jsonl", {}
    if form == "gz":
        path = tmp_path / "d.jsonl.gz"
        path.write_bytes(gzip.compress(text.encode()))
    elif form == "csv":
        path = tmp_path / "d.csv"
        rows = [f'{one["id"]},"{one["body"]}"' for one in documents]
        path.write_text("id,body\n" + "\n".join(rows), "utf-8")
    elif form == "folder":
        path = tmp_path / "pages"
        path.mkdir()
        documents = [{**one, "id": f"{int(one['id']):02}.txt"} for one in documents]
        for one in documents:
            (path / one["id"]).write_text(one["body"], "utf-8")
        more["fields"] = ("body",)
    else:
        path.write_bytes(text.encode("utf-8-sig" if form == "bom" else form))
    job = make_job(path, "-", workers=2, **more)
    if form == "cp1251":
        from dataclasses import replace

        options = job.signer.options
        job.signer.options = replace(options, reading=replace(options.reading, encoding="cp1251"))
    found = [json.loads(line) for line in signed_lines(job)]
    assert [one["_dedup"] for one in found] == stored(documents, scheme)
    assert [one["_id" if form == "folder" else "id"] for one in found] == [one["id"] for one in documents]
    assert all(("_id" in one) == (form == "folder") for one in found)


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_long_sources_are_signed_by_compiled_code_that_workers_share(make_job, file, monkeypatch):
    pytest.importorskip("numba")
    expected = signed_lines(make_job(file, "-"))
    monkeypatch.setattr(run, "_LONG", 1)
    for workers in (1, 2):
        job = make_job(file, "-", workers=workers)
        assert signed_lines(job) == expected
        assert job.signer.tools.fingerprinter.sketcher.documents is not batch_minima


@pytest.mark.usefixtures("small")
def test_what_fails_is_counted_and_named_and_the_others_are_signed(make_job, tmp_path):
    lines = [
        b'{"id": "1", "body": "one two three"}',
        b"",
        b"[1, 2]",
        b'{"id": "2", "body": ["no", ["text"]]}',
        b'{"id": "3", "body": "one two three", "_dedup": {"scheme": "sf3-forged"}}',
        b'{"id": "4", "body": "lone \\ud800 surrogate"}',
        b'{"id": true, "body": "x"}',
        b'{"_id": "5", "_source": {"body": "a hit of a search"}}',
        b'{"id": "6", "body": NaN}',
        b'{"id": "7", "_dedup.scheme": "x", "body": "one two three"}',
        b"{}",
        b'{"id": "8", "body": "' + b"long " * 400 + b'"}',
        b'{"id": "9", "body": "last" ',
    ]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\n".join(lines))
    letters = tmp_path / "letters.jsonl"
    target = tmp_path / "out.jsonl"
    for workers in (1, 2):
        target.unlink(missing_ok=True)
        letters.unlink(missing_ok=True)
        made = sign(make_job(path, target, workers=workers, dead_letters=str(letters), max_bytes=1_500))
        assert (made.read, made.signed, made.failed) == (12, 6, 6)
        found = [json.loads(line) for line in target.read_bytes().splitlines()]
        assert [one.get("id", one.get("_id")) for one in found] == ["1", "3", "4", "5", "7", None]
        assert all(one["_dedup"]["scheme"] == made.scheme for one in found)
        assert found[2]["body"] == "lone \ufffd surrogate"
        assert "_dedup.scheme" not in found[4]
        assert made.counts["fingerprints_left_out"] == 2
        assert made.counts["replaced"] == 1
        told = [json.loads(line) for line in letters.read_bytes().splitlines()]
        assert sorted(one["line"] for one in told) == [3, 4, 7, 9, 12, 13]
        assert {one["source"] for one in told} == {str(path)}
        assert sum(made.reasons.values()) == 6


def test_only_ids_are_written_where_these_are_asked_for(make_job, tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": 7, "body": "one two three four"}\n{"body": "nobody named me"}\n')
    job = make_job(path, tmp_path / "out.jsonl", only_ids=True)
    made = sign(job)
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(line).keys() == {"_id", "_dedup"}
    assert json.loads(line)["_id"] == "7"
    assert (made.signed, made.failed) == (1, 1)
    assert "--id-field" in next(iter(made.reasons))


@given(
    st.lists(st.sampled_from([b"", b"a", b"\r", b"bc", b"dddddddd", b"\xff" * 40]), max_size=30),
    st.booleans(),
    st.lists(st.integers(0, 300), max_size=8),
)
@settings(max_examples=examples(100), deadline=None)
def test_wherever_a_file_is_cut_each_line_is_read_once(tmp_path_factory, lines, ended, cuts):
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    path = tmp_path_factory.mktemp("cut") / "file"
    path.write_bytes(data)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found = []
    for begin, end in pairwise(places):
        read = read_lines(ByteRange(str(path), begin, end, "utf-8", 0.0), 1 << 20)
        assert [line.number for line in read.lines] == list(range(1, read.count + 1))
        found += [line.raw for line in read.lines]
    whole = data.split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    assert found == [line.rstrip(b"\r") for line in whole]


def test_a_line_longer_than_may_be_is_refused_and_not_held(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"short\n" + b"x" * 5_000_000 + b"\nend\n")
    read = read_lines(ByteRange(str(path), 0, 100, "utf-8", 0.0), 1_000)
    assert [line.reason for line in read.lines] == ["", "longer than 1,000 bytes"]
    assert read.lines[1].raw == b""


@pytest.mark.long(every=2)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_crash_costs_the_documents_that_made_it(make_job, tmp_path, monkeypatch, form):
    parent = os.getpid()
    path = tmp_path / "d.jsonl"
    bodies = ["poison" if n in {7, 60} else f"some words of document {n}" for n in range(80)]
    path.write_text("".join(json.dumps({"id": n, "body": body}) + "\n" for n, body in enumerate(bodies)))
    as_table = form == "parquet"
    job = make_job(path, tmp_path / f"out.{form}", workers=2, parquet=as_table, only_ids=as_table)
    made_by = job.signer.tools.fingerprinter.fingerprint_json

    def deadly(texts, *given):
        if "poison" in texts and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return made_by(texts, *given)

    monkeypatch.setattr(job.signer.tools.fingerprinter, "fingerprint_json", deadly)
    made = sign(job)
    assert (made.signed, made.failed, made.counts["crashes"]) == (78, 2, 2)
    if as_table:
        table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "out.parquet")
        found = list(map(int, table["_id"].to_pylist()))
    else:
        found = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert found == [n for n in range(80) if n not in {7, 60}]
    assert {one.line for one in made.failures} == {8}
