import json
from pathlib import Path

import pytest
from support.maintenance import FIELDS, pages, stored, wrongly_signed

from shinglefold.errors import EngineUnavailable, InputError
from shinglefold.ingest import Backoff, index_documents
from shinglefold.ingest.maintenance import retry


@pytest.fixture
def failed(engine, pipeline, tmp_path: Path) -> Path:
    """A dead-letter file of an index run in which 5 of 50 documents failed."""
    documents = [{**page, "body": 5} if n % 10 == 0 else page for n, page in enumerate(pages(50))]
    path = tmp_path / "failed.jsonl"
    summary = index_documents(
        engine, "pages", documents, pipeline, workers=1, properties=FIELDS, dead_letters=path
    )
    assert (summary.indexed, summary.failed) == (45, 5)
    return path


def mend(path: Path, ids: set[str]) -> None:
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    for letter in letters:
        if letter["document"]["_id"] in ids:
            letter["document"]["body"] = pages(1, seed=5)[0]["body"]
    path.write_text("".join(json.dumps(letter) + "\n" for letter in letters))


def letters_in(path: Path) -> list[str]:
    return [json.loads(line)["document"]["_id"] for line in path.read_text().splitlines()]


def test_what_was_mended_is_indexed_and_the_rest_stays(engine, failed, pipeline):
    mend(failed, {"page-0", "page-20"})
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.read, summary.indexed, summary.failed) == (5, 2, 3)
    assert letters_in(failed) == ["page-10", "page-30", "page-40"]
    assert not list(wrongly_signed(stored(engine, "pages"), pipeline.tools.fingerprinter))
    assert sorted(failed.parent.glob("failed*")) == [failed]


def test_the_file_is_gone_when_nothing_fails_again(engine, failed, pipeline):
    mend(failed, {f"page-{n}" for n in range(50)})
    assert retry(engine, "pages", failed, pipeline, workers=1).failed == 0
    assert not list(failed.parent.glob("failed*"))
    with pytest.raises(InputError, match="check the path"):
        retry(engine, "pages", failed, pipeline)


def test_letters_a_killed_run_put_aside_are_tried_first(engine, failed, pipeline):
    mend(failed, {"page-0", "page-10", "page-20"})
    lines = failed.read_text().splitlines(keepends=True)
    aside = failed.with_name("failed.jsonl.retrying")
    aside.write_text("".join(lines[:2]))
    failed.write_text("".join(lines[2:]))
    summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.read, summary.indexed) == (5, 3)
    assert letters_in(failed) == ["page-30", "page-40"]
    assert not aside.exists()


def test_an_engine_that_is_gone_loses_no_letter(engine, failed, pipeline, monkeypatch):
    before = letters_in(failed)

    def gone(_):
        raise EngineUnavailable("gone; start it")

    mend(failed, set(before))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "bulk", gone)
        summary = retry(engine, "pages", failed, pipeline, workers=1, backoff=Backoff(0))
    assert summary.stopped == "gone; start it"
    assert summary.read == summary.failed == 5
    assert letters_in(failed) == before
    assert retry(engine, "pages", failed, pipeline, workers=1).indexed == 5


def test_a_run_stopped_before_its_first_letter_leaves_them_all_aside(engine, failed, pipeline, monkeypatch):
    before = letters_in(failed)
    with monkeypatch.context() as patch:
        patch.setattr("shinglefold.ingest.writing.indexing._Run.all_blocks", _interrupted)
        summary = retry(engine, "pages", failed, pipeline, workers=1)
    assert (summary.stopped, summary.read) == ("interrupted", 0)
    assert letters_in(failed.with_name("failed.jsonl.retrying")) == before
    assert retry(engine, "pages", failed, pipeline, workers=1).read == 5


def _interrupted(*_):
    raise KeyboardInterrupt
