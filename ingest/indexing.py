"""Index a stream of documents: read, fingerprint in worker processes, bulk, count everything."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

from shinglefold.contracts import Document, Engine
from shinglefold.errors import EngineError, InputError
from shinglefold.ingest.blocks import RAW_BUDGET, blocks, weight
from shinglefold.ingest.bulk import Backoff
from shinglefold.ingest.dead_letters import DeadLetters
from shinglefold.ingest.interrupts import Interrupts
from shinglefold.ingest.ledger import Ledger
from shinglefold.ingest.mapping import ensure_index
from shinglefold.ingest.pipeline import Pipeline
from shinglefold.ingest.records import Record, to_document
from shinglefold.ingest.summary import Progress, Summary
from shinglefold.ingest.workers import Answer, process_blocks

_Records = Iterable[Record | Mapping[str, Any]]
_Report = Callable[[Progress], None]


def index_documents(
    engine: Engine,
    index: str,
    records: _Records,
    pipeline: Pipeline,
    *,
    field: str = "dedup",
    properties: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    dead_letters: str | Path | None = None,
    workers: int = 0,
    backoff: Backoff | None = None,
    progress: _Report | None = None,
) -> Summary:
    """Take documents through a pipeline into an index, which is created where it is missing.

    Ctrl-C, or an engine that can't go on, ends the run with a summary that says so and a consistent index.

    Args:
        records: from ``read`` or ``replay``, or plain documents (``_id`` or ``id`` is their id).
        pipeline: writes the fingerprints; its scheme must be the index's.
        field: where it writes them.
        properties: mappings of further fields of the index where it is created.
        settings: of the index where it is created.
        dead_letters: file for documents that fail; they are only counted where there is none.
        workers: processes for the pipeline; 0 means one a core, 1 means none but this one.
        progress: called after each block.

    Raises:
        SchemeMismatch: the index was made with another scheme.
        ConfigError: the index was not made for fingerprints, or ``workers`` is negative.
        InputError: the input can't be opened, or the dead-letter file can't be written.
    """
    ensure_index(engine, index, pipeline.scheme, field=field, properties=properties, settings=settings)
    with closing(DeadLetters(dead_letters)) as letters, Interrupts() as interrupts:
        ledger = Ledger(engine, index, letters, interrupts, backoff or Backoff())
        start = perf_counter()
        try:
            stopped = _stopped_by(lambda: _all_blocks(ledger, records, pipeline, workers, progress))
        finally:
            # Whatever happened, what was written until then is to be found.
            unfinished = _stopped_by(lambda: _commit(ledger))
        stopped = stopped or unfinished
        return ledger.summary(pipeline.scheme.id, stopped, perf_counter() - start)


def _stopped_by(work: Callable[[], None]) -> str:
    """Do the work and return what ended it early, or nothing."""
    try:
        work()
    except KeyboardInterrupt:
        return "interrupted"
    except EngineError as error:
        return str(error)
    return ""


def _commit(ledger: Ledger) -> None:
    with ledger.meter.stage("commit"), ledger.interrupts.held():
        ledger.engine.refresh(ledger.index)


def _all_blocks(
    ledger: Ledger, records: _Records, pipeline: Pipeline, workers: int, progress: _Report | None
) -> None:
    flight: list[list[Record]] = []
    with (
        closing(_documents(ledger, records, flight)) as documents,
        closing(process_blocks(pipeline, documents, workers)) as answers,
    ):
        while (answer := _next(ledger, answers)) is not None:
            block = flight.pop(0)
            # What the engine wrote must be counted, even at a Ctrl-C.
            with ledger.interrupts.held():
                ledger.settle(block, answer)
            if progress is not None:
                progress(ledger.progress(block[-1].fraction))


def _next(ledger: Ledger, answers: Iterator[Answer]) -> Answer | None:
    """Return the next answer; the time is one of waiting, but for the reading done inside."""
    seconds = ledger.meter.seconds
    before, start = seconds["read"], perf_counter()
    answer = next(answers, None)
    seconds["wait"] += perf_counter() - start - (seconds["read"] - before)  # type: ignore[assignment]
    return answer


def _documents(
    ledger: Ledger, records: _Records, flight: list[list[Record]]
) -> Generator[list[Document], None, None]:
    """Yield blocks of documents for the workers and keep their records until the answers come."""
    with closing(_records(records)) as source:
        made = blocks(source, _weight, RAW_BUDGET)
        while True:
            with ledger.meter.stage("read"):
                block = next(made, None)
            if block is None:
                return
            flight.append(block)
            yield [record.document for record in block if record.document is not None]


def _records(records: _Records) -> Generator[Record, None, None]:
    for number, record in enumerate(records, 1):
        yield record if isinstance(record, Record) else _record(record, number)


def _record(value: object, number: int) -> Record:
    try:
        return Record(to_document(value), "documents", number)
    except InputError as error:
        return Record(None, "documents", number, str(error), raw=repr(value))


def _weight(record: Record) -> int:
    return len(record.raw) if record.document is None else weight(record.document)
