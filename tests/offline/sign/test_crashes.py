"""Documents that workers die of: they fail, and what else their lines were read with is as without them."""

import io
import json
import os
import re
import resource
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from shinglefold.offline.sign.run import Signed, SignJob, sign

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def signed(make_job, monkeypatch) -> Callable[..., Signed]:
    """Signs by workers that die of poison."""
    parent = os.getpid()

    def run(source: Path, target: object, **given: object) -> Signed:
        job: SignJob = make_job(source, target, workers=2, **given)
        fingerprinter = job.signer.tools.fingerprinter
        made_by = fingerprinter.fingerprint_json

        def deadly(texts, *given):
            if os.getpid() != parent and any("poison" in text for text in texts):
                os.kill(os.getpid(), signal.SIGKILL)
            return made_by(texts, *given)

        with monkeypatch.context() as patch:
            patch.setattr(fingerprinter, "fingerprint_json", deadly)
            return sign(job)

    return run


def written(path: Path, documents: list[object]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in documents))
    return path


def test_where_workers_die_of_many_lines_of_a_range_its_others_are_given_up_and_no_other_range(
    signed, tmp_path
):
    bodies = ["poison" if 2 <= n < 8 else f"some words of document {n}" for n in range(120)]
    source = written(tmp_path / "d.jsonl", [{"id": n, "body": body} for n, body in enumerate(bodies)])
    made = signed(source, tmp_path / "out.jsonl")
    found = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert made.counts["crashes"] == 3
    assert (made.read, made.signed) == (120, len(found))
    assert found[:2] == [0, 1]
    assert found[2:] == [*range(found[2], 120)]
    # Three of six are tried.
    assert 8 < found[2] < 60


def test_what_stood_beside_the_guilty_line_is_told_as_without_it(signed, tmp_path):
    beside: list[object] = [
        {"id": "titled", "title": "a title that no other has", "body": "and some words"},
        {"id": "list", "body": ["no", ["text"]]},
        {"id": "again", "body": "some words that came along", "_dedup": {"scheme": "sf3-forged"}},
        [1, 2],
        {"id": "Ukrainian", "body": "кілька слів цього документа, яких досить для мови"},
    ]
    many = [{"id": n, "body": f"some words of document {n}"} for n in range(80)]
    many.append({"id": "late", "body": True})
    bare = signed(written(tmp_path / "bare.jsonl", [*beside, *many]), tmp_path / "bare")
    letters = tmp_path / "letters.jsonl"
    source = written(tmp_path / "d.jsonl", [{"id": "guilty", "body": "poison"}, *beside, *many])
    made = signed(source, tmp_path / "out", dead_letters=str(letters))
    assert (tmp_path / "out").read_bytes() == (tmp_path / "bare").read_bytes()
    assert Counter(made.counts) - Counter(bare.counts) == {"crashes": 1}
    assert (made.languages, made.present) == (bare.languages, bare.present)
    told = [json.loads(line) for line in letters.read_text().splitlines()]
    assert sorted((one["line"], one["stage"]) for one in told) == [
        (1, "worker"),
        (3, "sign"),
        (5, "read"),
        (87, "sign"),
    ]
    assert any("poison" in json.dumps(one) for one in told if one["line"] == 1)


def test_a_page_that_workers_die_of_is_named_by_its_file(signed, tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(6):
        (pages / f"{number}.txt").write_text("poison" if number == 4 else f"some words of page {number}")
    made = signed(pages, tmp_path / "out.jsonl", fields=("body",))
    assert (made.signed, made.failed) == (5, 1)
    assert made.failures[0].source == str(pages / "4.txt")


@pytest.mark.long(every=2)
@pytest.mark.parametrize("share", [0.3, 0.8], ids=["no line", "one line"])
def test_a_part_for_which_there_is_no_room_ends_the_run_where_a_worker_died_of_it_too(
    signed, tmp_path, share
):
    bodies = ["some words of a text", "poison", "some words of another text"]
    source = written(tmp_path / "d.jsonl", [{"id": n, "body": body} for n, body in enumerate(bodies)])
    whole, before = io.BytesIO(), resource.getrlimit(resource.RLIMIT_FSIZE)
    signed(source, whole)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * len(whole.getvalue())), before[1]))
    try:
        stopped = signed(source, io.BytesIO()).stopped
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert re.fullmatch(
        r"cannot write temporary files to /.*: File too large; look after .*, or set TMPDIR .*", stopped
    )
