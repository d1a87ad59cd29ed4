"""Index a stream of documents: read, fingerprint in worker processes, bulk, count everything."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from shinglefold.contracts.engine import Document, Engine, GroupNumbers
from shinglefold.contracts.exclusive_writes import PrepareDocuments
from shinglefold.errors import ConfigError, EngineError, InputError
from shinglefold.ingest.batching import RAW_BUDGET, REQUEST_BUDGET, blocks, too_long, weight
from shinglefold.ingest.foreign_field import refusal
from shinglefold.ingest.pipeline.pipeline import Pipeline
from shinglefold.ingest.readers.record import Record, to_document
from shinglefold.ingest.writing.accounting import Ledger, Progress, Summary, Unkept
from shinglefold.ingest.writing.batch import Batch, make_batch
from shinglefold.ingest.writing.bulk_retry import Action
from shinglefold.ingest.writing.dead_letters import DeadLetters
from shinglefold.ingest.writing.in_flight import Outbox
from shinglefold.ingest.writing.target_index import Destination
from shinglefold.ingest.writing.worker_pool import BlockAnswer, process_blocks
from shinglefold.model.stored_fingerprint import without_fingerprint
from shinglefold.options.validation import check_engine, check_object, check_str, check_type, expected
from shinglefold.runtime.backoff import Backoff, retry_unavailable
from shinglefold.runtime.signals import Interrupts

_Records = Iterable[Record | Mapping[str, Any]]
_Report = Callable[[Progress], None]


def index_documents(
    engine: Engine,
    index: str,
    records: _Records,
    pipeline: Pipeline,
    *,
    field: str | None = None,
    properties: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    dead_letters: str | Path | None = None,
    workers: int = 0,
    backoff: Backoff | None = None,
    progress: _Report | None = None,
    groups: GroupNumbers | None = None,
) -> Summary:
    """Take documents through a pipeline into an index, which the first of them creates where it is missing.

    Ctrl-C, SIGTERM, or an engine that can't go on, ends the run with a summary that says so and a consistent
    index. The first Ctrl-C waits for what the engine is doing, a second one does not.

    Args:
        records: from ``read`` or ``replay``, or plain documents (``_id`` or ``id`` is their id). One
            with a text of more than ``MAX_TEXT`` characters fails.
        pipeline: writes the fingerprints; its scheme must be the index's.
        field: where the index keeps them; by default where the pipeline writes them.
        properties: mappings of further fields of the index where it is created.
        settings: of the index where it is created.
        dead_letters: file for documents that fail; they are only counted where there is none.
        workers: processes for the pipeline; 0 means one per core, 1 means none but this one.
        progress: called after each block.
        groups: numbers the groups of documents; the index then notes that it has such numbers.

    Raises:
        SchemeMismatch: the index was made with another scheme.
        RecipeMismatch: it was made with another pipeline, or the pipeline writes to another field.
        ConfigError: the index was not made for fingerprints, or ``workers`` is negative.
        InputError: the input can't be opened, or the dead-letter file is in a place that can't be written to.
    """
    check_engine(engine)
    check_str("index", index)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…)")
    check_type("backoff", backoff, Backoff, "Backoff(…)", optional=True)
    _check_records(records)
    for name, given in (("properties", properties), ("settings", settings)):
        if given is not None:
            check_object(name, given, "an object, as engines take it")
    recipe = replace(pipeline.recipe(field), groups=groups is not None)
    start = perf_counter()
    with closing(DeadLetters(dead_letters)) as letters, Interrupts() as interrupts:
        letters.check()
        destination = Destination(engine, index, recipe, properties, settings)
        destination.check()
        ledger = Ledger(engine, index, letters, interrupts)
        patience = backoff or Backoff()
        outbox = Outbox(ledger, patience)
        run = _Indexing(ledger, outbox, destination, pipeline, recipe.field, progress, groups, patience)
        try:
            stopped = _stopped_by(lambda: run.all_blocks(records, workers))
        finally:
            # Whatever happened, what was written until then is to be counted and found.
            unfinished = _stopped_by(run.commit)
        if destination.refusal is not None:
            raise destination.refusal
        stopped = interrupts.reason or stopped or unfinished
        summary = ledger.summary(pipeline.scheme.id, stopped, perf_counter() - start)
        return replace(summary, made=destination.made)


def _check_records(records: object) -> None:
    if isinstance(records, str | bytes | PathLike):
        raise ConfigError("records: a name instead of documents; read(path) yields those of a file")
    if isinstance(records, Mapping) or not isinstance(records, Iterable):
        raise expected("records", "documents, such as [{…}, …] or read(path)", records)


def _stopped_by(work: Callable[[], None]) -> str:
    """Do the work and return what ended it early, or nothing."""
    try:
        work()
    except KeyboardInterrupt as error:
        return str(error) or "interrupted"
    except (EngineError, Unkept) as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class _Indexing:
    ledger: Ledger
    outbox: Outbox
    destination: Destination
    pipeline: Pipeline
    field: str
    progress: _Report | None
    groups: GroupNumbers | None
    backoff: Backoff

    def all_blocks(self, records: _Records, workers: int) -> None:
        """Take every block through the workers and the outbox."""
        flight: list[list[Record]] = []
        make_ready = self.destination.make_ready()
        given = _records(records, self.ledger.interrupts)
        many = len(records) if isinstance(records, Sized) else 0

        def expect(first: Sequence[Record]) -> None:
            self.pipeline.tools.expect(_characters(first, many))

        with (
            closing(_documents(self.ledger, given, self.field, flight, expect)) as documents,
            closing(self._answers(documents, workers, make_ready)) as answers,
        ):
            while (answer := _next(self.ledger, answers)) is not None:
                self._put(make_batch(self.ledger.index, flight.pop(0), answer, self.destination.verb))
        while not self.outbox.empty:
            self._book()

    def _answers(
        self, documents: Iterator[list[Document]], workers: int, make_ready: PrepareDocuments | None
    ) -> Generator[BlockAnswer, None, None]:
        # Numbers go into the document as it is.
        as_json = self.ledger.engine.can.takes_json and self.groups is None
        check = self.ledger.interrupts.check
        return process_blocks(self.pipeline, documents, workers, as_json, check, make_ready=make_ready)

    def _put(self, batch: Batch) -> None:
        if batch.actions or batch.dropped:
            self.destination.prepare()
        self.ledger.see(batch)
        while not self.outbox.takes(batch):
            self._book()
        self._number(batch)
        self.outbox.put(batch)
        while self.outbox.answered:
            self._book()

    def _number(self, batch: Batch) -> None:
        if self.groups is None:
            return
        number = self.groups.number
        try:
            with self.ledger.meter.stage("groups"):
                numbered = retry_unavailable(lambda: number(batch.actions), self.backoff, self._ends)
            batch.actions = [_without_json(action) for action in numbered]
        except EngineError as error:
            self.ledger.book(batch, error)

    def _ends(self) -> bool:
        return self.ledger.interrupts.pending

    def _book(self) -> None:
        batch = self.outbox.book()
        if self.progress is not None:
            self.progress(self.ledger.progress(batch.fraction))

    def commit(self) -> None:
        """Account for what is still on its way, and make everything written visible."""
        self.outbox.finish()
        if not self.destination.there:
            return
        with self.ledger.meter.stage("commit"), self.ledger.interrupts.breakable(at_once=False):
            try:
                self.ledger.engine.refresh(self.ledger.index)
            except EngineError as error:
                self.ledger.lose(error)
                raise


def _without_json(action: Action) -> Action:
    """Return an action without the JSON that was made of its document before this had a number."""
    ready = action.get("_ready")
    return action if ready is None else {**action, "_ready": ready._replace(source_and_head=None)}


def _next(ledger: Ledger, answers: Iterator[BlockAnswer]) -> BlockAnswer | None:
    """Return the next answer; the time is one of waiting, but for the reading done inside.

    Raises:
        Interrupted: the run is to end.
    """
    ledger.interrupts.check()
    seconds = ledger.meter.seconds
    before, start = seconds["read"], perf_counter()
    with ledger.interrupts.breakable(at_once=False):
        answer = next(answers, None)
    seconds["wait"] += perf_counter() - start - (seconds["read"] - before)  # type: ignore[assignment]
    return answer


def _documents(
    ledger: Ledger,
    records: Generator[Record, None, None],
    field: str,
    flight: list[list[Record]],
    expect: Callable[[Sequence[Record]], None],
) -> Generator[list[Document], None, None]:
    """Yield blocks of documents for the workers and keep their records until the answers come.

    The pipeline alone writes fingerprints: what comes with a document, in whatever form, is left out. What
    stands in their place and is none fails the document, as it would be lost.

    Args:
        expect: is shown the first block before any worker is asked.
    """
    interrupts = ledger.interrupts
    first = True
    with closing(records) as source:
        made = blocks(source, _weight, REQUEST_BUDGET if ledger.engine.can.takes_json else RAW_BUDGET)
        while True:
            with ledger.meter.stage("read"), interrupts.breakable():
                block = next(made, None)
            if block is None:
                return
            if first:
                expect(block)
                first = False
            kept: list[Document] = []
            for place, record in enumerate(block):
                if record.document is None:
                    continue
                # A document with so long a text is a block of its own.
                if len(block) == 1 and (reason := too_long(record.document)):
                    block[place] = replace(record, reason=reason)
                    continue
                bare = without_fingerprint(record.document, field)
                if bare is not record.document:
                    if reason := refusal(record.document, field):
                        block[place] = replace(record, reason=reason)
                        continue
                    ledger.meter.counts["fingerprints_left_out"] += 1
                kept.append(bare)
            flight.append(block)
            yield kept


def _records(records: _Records, interrupts: Interrupts) -> Generator[Record, None, None]:
    """Yield what was given as records."""
    for number, given in enumerate(records, 1):
        interrupts.check()
        yield given if isinstance(given, Record) else _record(given, number)


def _record(value: object, number: int) -> Record:
    try:
        return Record(to_document(value), "documents", number)
    except InputError as error:
        return Record(None, "documents", number, str(error), raw=repr(value))


def _characters(first: Sequence[Record], many: int) -> int:
    """Return about how many characters a source has, given its first block; 0 where nothing tells.

    Args:
        many: how many records there are, 0 where that is unknown.
    """
    share = first[-1].fraction or (len(first) / many if many else 0.0)
    return round(sum(map(_weight, first)) / share) if share else 0


def _weight(record: Record) -> int:
    return len(record.raw) if record.document is None else weight(record.document)
