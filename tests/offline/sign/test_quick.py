"""Lines signed by compiled code come out as those that are read one by one, and odd ones are left to that."""

import io
import json
import random
from dataclasses import replace

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.readers.streams import Line
from shinglefold.offline.sign import json_scanner as scanning
from shinglefold.offline.sign import run, tasks
from shinglefold.offline.sign.run import SignJob, sign
from shinglefold.offline.sign.signer import Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import ByteRange, LineRange

pytest.importorskip("numba")

_LINES = [
    '{"id": "1", "body": "Мама мыла раму, а папа читал газету"}',
    '  {"id":"2","title":"Заголовок","body":"дело\\nword \\"and\\" deed \\\\ \\/ \\t\\u0456жак і кіт" }  \r',
    '{"body": "тело прежде", "title": "заголовка"}',
    '{"title": "one two", "lang": "uk", "body": "и то и это, три четыре пять"}',
    '{"title": "one two", "lang": "ru-RU", "body": "мова та інша мова, три"}',
    '{"title": "one two", "lang": "uk", "body": "заводом работали директора и слова книги"}',
    '{"lang": "xx", "body": "no such language is known here"}',
    '{"lang": null, "body": "one two three four five"}',
    '{"lang": "r\\u0075", "body": "one two three four five"}',
    '{"id": 17, "price": -0.5, "n": 1.5e3, "gone": null, "new": true, "old": false, "body": "a b c d e f"}',
    '{"id": 1.5, "body": "an id that is none"}',
    '{"id": true, "body": "an id that is none"}',
    '{"id": "", "body": "an id that is empty"}',
    '{"_id": "g", "id": "h", "body": "two ids here, one given"}',
    '{"tags": ["a", {"b": [1]}], "body": "nested things stand beside the text"}',
    '{"body": ["no", "text"]}',
    '{"body": null, "title": "only a title of six words"}',
    '{"body": "twice", "body": "of two values one would be lost"}',
    '{"price"\t: 1, "body" : "twice", "body": "of two values one would be lost"}',
    '{"price": 1, "body": "of two prices one would be lost", "price": 2}',
    "{" + ", ".join(f'"n{n}": {n}' for n in range(70)) + ', "body": "so many names beside one text"}',
    '{"title": "nothing", "_dedup": {"scheme": "sf3-forged"}, "body": "one two three four"}',
    '{"_dedup.digest": "x", "body": "one two three four"}',
    '{"dedupe": 1, "body": "one two three four"}',
    '{"_source": {"body": "a hit of a search"}, "_id": "7"}',
    '{"_source": "text", "body": "a b c d e"}',
    '{"b\\u006fdy": "an escaped name of a field"}',
    '{"format": "html", "body": "<p>one <b>two</b> three four five</p>"}',
    '{"format": "text", "body": "<p>one <b>two</b> three four five</p>"}',
    '{"format": "h\\u0074ml", "body": "<p>one <b>two</b> three</p>"}',
    '{"body": "half a pair \\ud83d"}',
    '{"body": "a pair \\ud83d\\ude00 and more words"}',
    '{"body": "😀 𠀀 as it is, with a й and a й"}',
    '{"body": "lone \\udc00 half"}',
    '{"body": "the last \\udfff half"}',
    '{"body": "beside \\ud7ff the \\ue000 halves"}',
    '{"body": "nothing \\u0000 stands \\u000a for itself"}',
    '{"body": "\\x is no escape"}',
    '{"body": "\\u12G4 neither"}',
    '{"body": "a\tb raw control"}',
    '{"body": "never ends',
    '{"body": "ends" ',
    '{"body": "ends"} x',
    '{"body": "ends",}',
    '{"body" "no colon"}',
    '{"n": 01, "body": "a zero too many"}',
    '{"n": -, "body": "no digits at all"}',
    '{"n": 1., "body": "no digits behind"}',
    '{"n": 1e999, "body": "beyond all doubles"}',
    '{"n": 12345678901234567890123, "body": "very long numbers here"}',
    '{"n": NaN, "body": "no JSON"}',
    '{"n": tru, "body": "no JSON"}',
    "{}",
    '{"other": "no text at all"}',
    "[1, 2]",
    "null",
    "",
    "   ",
    "\ufeff" + '{"body": "a mark before it all, one two"}',
    '{"body": "' + "долгий текст " * 12_000 + '"}',
    '{"body": "last of all, but not the least"}',
]  # fmt: skip
_RAW = [
    b'{"body": "\xff\xfe no UTF-8 at all"}',
    b'{"body": "overlong \xc0\xaf and \xe0\x80\xaf"}',
    b'{"body": "a surrogate \xed\xa0\x80 in bytes"}',
    b'{"body": "cut \xd0"}',
    b'{"body": "cut \xf0\x9f\x98"}',
    b'{"\xff": 1, "body": "a name that is no UTF-8"}',
    b'{"body": "beyond \xf4\x90\x80\x80 all planes"}',
    b'{"body": "overlong \xf0\x80\x81\x81 in four bytes"}',
    b'{"body": "a first byte \xf9\x80\x80\x80 of five"}',
    b'{"body": "all five \xf8\x88\x80\x80\x80 of them"}',
    b'{"other": "a first byte \xf9\x80\x80\x80 of five", "body": "one two three"}',
]


@pytest.fixture(scope="module")
def signers(scheme):
    """One that reads line by line in numpy, and one that is compiled."""
    options = SignOptions(("title", "body"))
    one, other = (Signer(scheme, options, Canonicalizer(scheme.languages)) for _ in range(2))
    assert other.tools.fingerprinter.compile()
    assert one.fast_path() is None
    return one, other


def alike(signers, path, data: bytes) -> None:
    path.write_bytes(data)
    made = []
    for signer in signers:
        # What lines before were guessed to be encoded in is told of the next one.
        signer.options = replace(signer.options, reading=ReadOptions())
        tally = SignTally()
        lines = b"".join(signer.signed_lines(ByteRange(str(path), 0, len(data), "utf-8", 1.0), tally))
        refused = sorted((record.line, stage, reason) for stage, reason, record in tally.refused)
        counts = {name: count for name, count in tally.meter.counts.items() if count}
        told = tally.signed, tally.lines, tally.present, refused, counts, tally.meter.languages
        made.append((lines.split(b"\n"), told))
    assert made[0][0] == made[1][0]
    for one, other in zip(made[0][1], made[1][1], strict=True):
        assert one == other


@pytest.mark.long(every=3)
@pytest.mark.parametrize("line", [*(one.encode() for one in _LINES), *_RAW])
def test_a_line_is_signed_as_if_it_were_read_by_itself(signers, tmp_path, line):
    alike(signers, tmp_path / "one", line + b"\n")
    alike(
        signers, tmp_path / "several", b'{"body": "one two three four"}\n' + line + b'\n{"id": "x"}\n' + line
    )


@pytest.mark.long
def test_any_lines_in_any_order_are(signers, tmp_path):
    chance = random.Random(5)
    lines = [*(one.encode() for one in _LINES), *_RAW]
    for _ in range(4):
        some = chance.choices(lines, k=400)
        alike(signers, tmp_path / "lines", b"\n".join(some) + chance.choice([b"", b"\n"]))


def test_lines_with_any_byte_changed_are(signers, tmp_path):
    chance = random.Random(6)
    lines = []
    for line in [one.encode() for one in _LINES if len(one) < 1_000] * 8:
        changed = bytearray(line or b" ")
        for _ in range(chance.randrange(3)):
            changed[chance.randrange(len(changed))] = chance.choice(
                b'"\\{}[]:,0-.eE \t\r\x00\x7f\xc3\xa9\xff'
            )
        lines.append(bytes(changed).replace(b"\n", b" "))
    alike(signers, tmp_path / "lines", b"\n".join(lines))


@pytest.mark.parametrize(
    ("fields", "language", "target"),
    [
        (("_dedup_text", "body"), "lang", "_dedup"),
        (("title", "body"), "_dedup_lang", "_dedup"),
        (("title", "body"), "lang", "form"),
        (("title", "body"), "lang", "i"),
    ],
)
def test_names_that_begin_as_that_of_the_fingerprint_make_a_line_odd_wherever_it_is_read(
    signers, tmp_path, fields, language, target
):
    options = SignOptions(fields, language, target=target)
    pair = [Signer(one.tools.scheme, options, one.tools.canonicalizer) for one in signers]
    assert pair[1].tools.fingerprinter.compile()
    lines = (
        '{ "dedup_text": "one two three", "body": "four five" }',
        '{ "dedup_lang": "uk", "body": "мова та інша мова, три" }',
        '{ "format": "text", "_id": "7", "body": "four five six" }',
    )
    alike(pair, tmp_path / "lines", "".join(f"{line}\n" for line in lines).encode())


def test_plain_lines_are_not_read_one_by_one(signers, tmp_path, monkeypatch):
    quick = signers[1]
    path = tmp_path / "plain"
    plain = [line for line in _LINES[:6] if "прежде" not in line]
    path.write_text("".join(f"{line}\n" for line in plain), "utf-8")
    monkeypatch.setattr(quick, "_documents", None)
    tally = SignTally()
    found = b"".join(quick.signed_lines(ByteRange(str(path), 0, path.stat().st_size, "utf-8", 1.0), tally))
    assert tally.signed == len(plain) == len(found.splitlines())


def test_a_text_that_does_not_fit_any_more_is_taken_with_the_next_ones(signers, tmp_path):
    long = json.dumps({"body": "длинный текст " * 5_000}, ensure_ascii=False)
    assert scanning.CODES // 2 < len(long) < scanning.CODES
    alike(signers, tmp_path / "long", "\n".join(['{"body": "a b c d"}', *[long] * 3, "{}", long]).encode())


def test_a_run_signs_quickly_from_the_first_compiled_task_on(scheme, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_LONG", 1)
    monkeypatch.setattr(tasks, "LARGEST", 4_000)
    monkeypatch.setattr(tasks, "_SMALLEST", 500)
    source = tmp_path / "texts.jsonl"
    source.write_text("\n".join([*_LINES[:9], ""] * 30), "utf-8")
    signer = Signer(scheme, SignOptions(("title", "body")), Canonicalizer(scheme.languages))
    out = io.BytesIO()
    made = sign(SignJob((str(source),), signer, out, workers=1))
    plain = Signer(scheme, SignOptions(("title", "body")), Canonicalizer(scheme.languages))
    read = [line for line in source.read_bytes().split(b"\n") if line]
    task = LineRange(
        "x", tuple(Line(number, raw.rstrip(b"\r"), "") for number, raw in enumerate(read)), "utf-8", 1.0
    )
    assert out.getvalue() == b"".join(plain.signed_lines(task, SignTally()))
    assert made.signed == 9 * 30
    assert signer.fast_path() is not None
