"""A scan whose documents go through a pipeline in worker processes."""

from collections.abc import Collection, Generator
from contextlib import closing

from shinglefold.contracts import Document
from shinglefold.ingest.maintenance.scan import Page, Place, Scan
from shinglefold.ingest.maintenance.stored import Key, document_of, key_of
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.workers import process_blocks


def scan_with_pipeline(
    scan: Scan, place: Place, pipeline: Pipeline, field: str, *, workers: int, without: Collection[Key] = ()
) -> Generator[tuple[Page, list[Outcome]], None, None]:
    """Yield each page behind a place with what the pipeline makes of its documents, in order.

    Args:
        field: where fingerprints are; the pipeline sees documents that have none yet.
        without: documents to leave out.

    Raises:
        PitExpired: the point in time was closed or ran out.
        EngineError: the engine can't go on.
    """
    waiting: list[Page] = []
    with (
        closing(_documents(scan, place, field, without, waiting)) as documents,
        closing(process_blocks(pipeline, documents, workers)) as answers,
    ):
        for answer in answers:
            yield waiting.pop(0), answer.outcomes


def _documents(
    scan: Scan, place: Place, field: str, without: Collection[Key], waiting: list[Page]
) -> Generator[list[Document], None, None]:
    """Yield the documents of each page and keep its hits until the pipeline has answered."""
    for page in scan.pages(place):
        hits = [hit for hit in page.hits if key_of(hit) not in without]
        waiting.append(Page(hits, page.place))
        yield [document_of(hit, field) for hit in hits]
