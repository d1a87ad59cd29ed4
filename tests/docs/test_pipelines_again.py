"""The pipelines in docs/pipelines.md: what they stored goes through them again, to the same fingerprint."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.maintenance import pages

from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, index_documents
from shinglefold.ingest.pipeline.steps import rerun_problems
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.model.scheme import Scheme

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text("utf-8")
DEFINITIONS = [
    json.loads(block)
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    if '"processors"' in block
]


@pytest.fixture
def engine(tmp_path: Path, canonicalizer: Canonicalizer) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path / "engine", canonicalizer) as opened:
        yield opened


def documents() -> Iterator[dict[str, Any]]:
    """Plain pages, and such as are HTML, for each of the two pipelines."""
    for page in pages(40):
        html = f"<p>{page['body']} a &lt; b</p><script>x</script>"
        yield {**page, "article": {"html": html}, "status": "published"}
        yield {**page, "id": f"{page['id']}-html", "body": html, "format": "html", "text": page["body"]}


@pytest.mark.parametrize("number", range(len(DEFINITIONS)))
def test_a_pipeline_of_the_page_goes_through_index_doctor_backfill_and_doctor(
    engine: EmbeddedEngine, scheme: Scheme, number: int
):
    pipeline = Pipeline.from_json(DEFINITIONS[number], scheme)
    assert not rerun_problems(pipeline.steps, "_dedup")
    summary = index_documents(engine, "pages", documents(), pipeline, workers=1)
    assert (summary.indexed, summary.failed) == (80, 0)
    first = diagnose(engine, "pages", pipeline, DoctorOptions(workers=1))
    assert first.healthy, first
    done = backfill(engine, "pages", pipeline, BackfillOptions(workers=1))
    assert (done.counts.unchanged, done.counts.updated, done.remaining) == (80, 0, 0)
    assert diagnose(engine, "pages", pipeline, DoctorOptions(workers=1)).healthy


def test_there_are_pipelines_on_the_page():
    assert len(DEFINITIONS) == 3
