"""Bulk indexing and its dead letters on real servers: every document is in exactly one count."""

import json
from pathlib import Path

import pytest
from support.maintenance import mapped, pages, stored, wrongly_signed

from shinglefold.ingest import index_documents
from shinglefold.maintenance.retry import retry

COUNT = 300
#: Documents a server refuses (no date), and such as the pipeline fails on (no text).
REFUSED, FAILED = {f"page-{n}" for n in (3, 77, 150)}, {"page-8"}


@pytest.fixture
def dated(new_index, scheme) -> str:
    return new_index(
        mapped(scheme, published={"type": "date"}), {"number_of_shards": 3, "number_of_replicas": 0}
    )


def documents():
    for page in pages(COUNT):
        page["published"] = "yesterday" if page["id"] in REFUSED else "2026-03-01"
        yield {**page, "body": 5} if page["id"] in FAILED else page


@pytest.mark.parametrize("workers", [1, 2])
def test_counts_add_up_and_mended_letters_are_indexed(engine, dated, pipeline, tmp_path: Path, workers):
    path = tmp_path / "failed.jsonl"
    summary = index_documents(engine, dated, documents(), pipeline, workers=workers, dead_letters=path)
    letters = [json.loads(line) for line in path.read_text().splitlines()]
    assert (summary.read, summary.indexed, summary.failed) == (COUNT, COUNT - 4, 4)
    assert {(letter["document"]["_id"], letter["stage"]) for letter in letters} == {
        *((id_, "index") for id_ in REFUSED),
        *((id_, "pipeline") for id_ in FAILED),
    }
    assert all("published" in letter["reason"] for letter in letters if letter["stage"] == "index")
    assert len(stored(engine, dated)) == COUNT - 4

    path.write_text(path.read_text().replace("yesterday", "2026-02-28"))
    again = retry(engine, dated, path, pipeline, workers=1)
    assert (again.read, again.indexed, again.failed) == (4, 3, 1)
    (left,) = map(json.loads, path.read_text().splitlines())
    assert left["document"]["_id"] in FAILED
    found = stored(engine, dated)
    assert len(found) == COUNT - 1
    assert not list(wrongly_signed(found, pipeline.tools.fingerprinter))
