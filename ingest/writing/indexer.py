"""Index a stream of documents: read, fingerprint in worker processes, send bulk requests, count results."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from shinglefold.contracts.engine import Document, Engine, GroupNumbers
from shinglefold.contracts.exclusive_writes import PrepareDocuments
from shinglefold.documents import RAW_BUDGET, REQUEST_BUDGET, blocks, too_long, weight, with_id
from shinglefold.errors import ConfigError, EngineError, InputError, quote
from shinglefold.ingest.pipeline.pipeline import Pipeline
from shinglefold.ingest.readers.record import Record, to_document, with_routing
from shinglefold.ingest.writing.accounting import InFlightBatches, Progress, RunAccounting, Summary
from shinglefold.ingest.writing.batch import Action, Batch, ReadBack, make_batch
from shinglefold.ingest.writing.dead_letters import DeadLetters, DeadLettersLost
from shinglefold.ingest.writing.target_index import IndexWatch, TargetIndex, released_after
from shinglefold.ingest.writing.worker_pool import BlockAnswer, process_blocks
from shinglefold.model.recipe import Recipe
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.options.validation import check_engine, check_object, check_str, check_type, expected
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff, retry_unavailable
from shinglefold.runtime.signals import Interrupts

_Records = Iterable[Record | Mapping[str, Any]]
_Report = Callable[[Progress], None]
_NO_ROUTING = "it has a routing, and this engine has none: leave it out (_routing, the routing field)"


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
    routing_field: str = "",
    noted: Recipe | None = None,
) -> Summary:
    """Run documents through a pipeline and index them; a missing index is created for the first one.

    An index that is deleted, recreated or set up differently meanwhile ends the run with a reason.

    Ctrl-C, SIGTERM and a failure of the engine end the run early, with a summary that says so and a
    consistent index. The first Ctrl-C waits for requests in flight, a second one does not.

    Args:
        records: from ``read`` or ``replay``, or plain documents with ``_id`` or ``id``. One with a text of
            more than ``MAX_TEXT`` characters fails.
        pipeline: writes the fingerprints; its scheme must be that of the index.
        field: the fingerprint field of the index; the pipeline's own if None.
        properties: mappings of further fields, if the index is created.
        settings: settings of the index, if it is created.
        dead_letters: file for failed documents; None only counts them.
        workers: processes for the pipeline; 0 for one per core, 1 for the current process alone.
        progress: called after each block.
        groups: assigns group numbers to documents; the index then notes that it has them.
        routing_field: the field of the routing of documents; ``_routing`` if empty.
        noted: a recipe whose profile, ``fold`` and ``gate`` the index notes if it is created.

    Raises:
        SchemeMismatch: the index was made with another scheme.
        RecipeMismatch: it was made with another pipeline, or the pipeline writes to another field.
        ConfigError: the index was not made for fingerprints, or ``workers`` is negative.
        InputError: the input can't be opened, or the dead-letter file can't be written.
    """
    check_engine(engine)
    check_str("index", index)
    check_str("routing_field", routing_field, empty=True)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…)")
    check_type("backoff", backoff, Backoff, "Backoff(…)", optional=True)
    check_type("noted", noted, Recipe, "pipeline.recipe()", optional=True)
    check_documents(records)
    for name, given in (("properties", properties), ("settings", settings)):
        if given is not None:
            check_object(name, given, "an object, as engines take it")
    recipe = replace(pipeline.recipe(field), groups=groups is not None)
    if noted is not None:
        recipe = replace(recipe, profile=noted.profile, fold=noted.fold, gate=noted.gate)
    start = perf_counter()
    released = released_after(engine, index)
    with closing(DeadLetters(dead_letters)) as letters, Interrupts() as interrupts, released:
        letters.check()
        watch = IndexWatch(engine, index, recipe)
        target = TargetIndex(engine, index, recipe, watch, properties, settings)
        target.check()
        accounting = RunAccounting(engine, index, letters, interrupts, watch, ReadBack(engine, index, recipe))
        patience = backoff or DEFAULT_BACKOFF
        in_flight = InFlightBatches(accounting, patience)
        run = _IndexRun(
            accounting, in_flight, target, pipeline, recipe.field, progress, groups, patience, routing_field
        )
        try:
            stopped = _stopped_by(lambda: run.all_blocks(records, workers))
        finally:
            # Count and commit what was written, whatever happened.
            unfinished = _stopped_by(run.commit)
        if target.refusal is not None:
            raise target.refusal
        stopped = interrupts.reason or stopped or unfinished
        summary = accounting.summary(pipeline.scheme.id, stopped, perf_counter() - start)
        return replace(summary, made=target.created)


def check_documents(documents: object) -> None:
    """Raise ``ConfigError`` for an argument that is one document, a name, or no iterable."""
    if isinstance(documents, str | bytes | PathLike):
        raise ConfigError(
            f"documents: a name instead of documents; those of a file: from shinglefold.ingest import read; "
            f"read({quote(documents)})"
        )
    if isinstance(documents, Mapping) or not isinstance(documents, Iterable):
        raise expected("documents", "a list or an iterator of documents, such as [{…}, …]", documents)


def _stopped_by(work: Callable[[], None]) -> str:
    """Do the work; return the reason if it ends early, else an empty string."""
    try:
        work()
    except KeyboardInterrupt as error:
        return str(error) or "interrupted"
    except (EngineError, DeadLettersLost) as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class _IndexRun:
    """One run of ``index_documents``: reads, processes and sends blocks, and commits."""

    accounting: RunAccounting
    in_flight: InFlightBatches
    target: TargetIndex
    pipeline: Pipeline
    field: str
    progress: _Report | None
    groups: GroupNumbers | None
    backoff: Backoff
    routing_field: str

    def all_blocks(self, records: _Records, workers: int) -> None:
        """Process and send all blocks."""
        pending: list[list[Record]] = []
        prepare_documents = self.target.document_preparer()
        given = _records(records, self.accounting.interrupts, self.routing_field)
        many = len(records) if isinstance(records, Sized) else 0

        def expect(first: Sequence[Record]) -> None:
            tools = self.pipeline.tools
            if tools.fingerprinter.expect(_estimate_characters(first, many)):
                tools.warm()

        with (
            closing(_documents(self.accounting, given, self.field, pending, expect)) as documents,
            closing(self._answers(documents, workers, prepare_documents)) as answers,
        ):
            while (answer := _next(self.accounting, answers)) is not None:
                self._put(make_batch(self.accounting.index, pending.pop(0), answer, self.target.verb))
        while not self.in_flight.is_empty:
            self._finish_oldest()

    def _answers(
        self, documents: Iterator[list[Document]], workers: int, prepare_documents: PrepareDocuments | None
    ) -> Generator[BlockAnswer, None, None]:
        # Group numbers are added to the document, which therefore must not be JSON yet.
        as_json = self.accounting.engine.can.takes_json and self.groups is None
        check = self.accounting.interrupts.check
        return process_blocks(
            self.pipeline, documents, workers, as_json, check, prepare_documents=prepare_documents
        )

    def _put(self, batch: Batch) -> None:
        if batch.actions or batch.dropped:
            self.target.create()
            self.accounting.read_back.find_pipelines()
        self.accounting.note_ids(batch)
        # A request that is sent again must not store its documents under other ids.
        given = batch.actions
        batch.actions = [with_id(action) for action in given]
        batch.made_ids = {
            one["_id"] for one, action in zip(batch.actions, given, strict=True) if "_id" not in action
        }
        while not self.in_flight.can_send(batch):
            self._finish_oldest()
        self._number(batch)
        self.in_flight.put(batch)
        while self.in_flight.oldest_is_done:
            self._finish_oldest()

    def _number(self, batch: Batch) -> None:
        if self.groups is None:
            return
        number, interrupts = self.groups.number, self.accounting.interrupts
        try:
            with self.accounting.meter.stage("groups"):
                numbered = retry_unavailable(
                    lambda: number(batch.actions), self.backoff, lambda: interrupts.pending
                )
            batch.actions = [_without_json(action) for action in numbered]
        except EngineError as error:
            self.accounting.add_batch(batch, error)

    def _finish_oldest(self) -> None:
        batch = self.in_flight.finish_oldest()
        if self.target.exists:
            self.target.watch.check_if_due()
        if self.progress is not None:
            self.progress(self.accounting.progress(batch.fraction))

    def commit(self) -> None:
        """Finish the batches in flight, and make everything written visible to searches."""
        self.in_flight.drain()
        if not self.target.exists:
            return
        self.target.watch.check()
        with self.accounting.meter.stage("commit"), self.accounting.interrupts.breakable(at_once=False):
            try:
                self.accounting.engine.refresh(self.accounting.index)
            except EngineError as error:
                self.accounting.add_lost(error)
                raise


def _without_json(action: Action) -> Action:
    """Return an action without the prepared JSON, which lacks the group number."""
    ready = action.get("_ready")
    return action if ready is None else {**action, "_ready": ready._replace(source_and_head=None)}


def _next(accounting: RunAccounting, answers: Iterator[BlockAnswer]) -> BlockAnswer | None:
    """Return the next answer; count the time as waiting, without the time spent on reading."""
    accounting.interrupts.check()
    seconds = accounting.meter.seconds
    before, start = seconds["read"], perf_counter()
    with accounting.interrupts.breakable(at_once=False):
        answer = next(answers, None)
    seconds["wait"] += perf_counter() - start - (seconds["read"] - before)  # type: ignore[assignment]
    return answer


def _documents(
    accounting: RunAccounting,
    records: Generator[Record, None, None],
    field: str,
    pending: list[list[Record]],
    expect: Callable[[Sequence[Record]], None],
) -> Generator[list[Document], None, None]:
    """Yield blocks of documents for the workers, and append their records to ``pending``.

    Fingerprints that come with a document are left out, as the pipeline makes new ones. Other data in the
    fingerprint field fails the document, because it would be lost.

    Args:
        expect: called with the first block before any worker starts.
    """
    interrupts = accounting.interrupts
    first = True
    with closing(records) as source:
        source_blocks = blocks(
            source, _weight, REQUEST_BUDGET if accounting.engine.can.takes_json else RAW_BUDGET
        )
        while True:
            with accounting.meter.stage("read"), interrupts.breakable():
                block = next(source_blocks, None)
            if block is None:
                return
            if first:
                expect(block)
                first = False
            kept: list[Document] = []
            for place, record in enumerate(block):
                if record.document is None or record.reason:
                    continue
                if "_routing" in record.document and not accounting.engine.can.routing:
                    block[place] = replace(record, reason=_NO_ROUTING)
                    continue
                # A document with such a long text is always in a separate block.
                if len(block) == 1 and (reason := too_long(record.document)):
                    block[place] = replace(record, reason=reason)
                    continue
                bare = without_fingerprint(record.document, field)
                if bare is not record.document:
                    if reason := overwrite_refusal(record.document, field):
                        block[place] = replace(record, reason=reason)
                        continue
                    accounting.meter.counts["fingerprints_left_out"] += 1
                kept.append(bare)
            pending.append(block)
            yield kept


def _records(records: _Records, interrupts: Interrupts, routing_field: str) -> Generator[Record, None, None]:
    """Yield records and plain documents as records."""
    for number, given in enumerate(records, 1):
        interrupts.check()
        record = given if isinstance(given, Record) else _record(given, number)
        yield with_routing(record, routing_field)


def _record(value: object, number: int) -> Record:
    try:
        return Record(to_document(value), "documents", number)
    except InputError as error:
        return Record(None, "documents", number, str(error), raw=repr(value))


def _estimate_characters(first: Sequence[Record], many: int) -> int:
    """Estimate the number of characters of a source from its first block; 0 if that is impossible.

    Args:
        many: number of records, 0 if unknown.
    """
    share = first[-1].fraction or (len(first) / many if many else 0.0)
    return round(sum(map(_weight, first)) / share) if share else 0


def _weight(record: Record) -> int:
    return len(record.raw) if record.document is None else weight(record.document)
