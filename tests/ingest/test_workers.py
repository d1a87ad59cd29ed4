import os
import signal
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline
from shinglefold.ingest.processors.context import Options, Tools
from shinglefold.ingest.writing.worker_pool import (
    BlockAnswer,
    WorkerProcess,
    answers_in_order,
    process_blocks,
)
from shinglefold.model.scheme import Scheme


class Deadly:
    """A processor that kills its process, as a crash in a C library or the kernel short of memory would."""

    type: ClassVar[str] = "deadly"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.parent = os.getpid()

    def apply(self, documents: Sequence[Document]) -> list[Document | Exception | None]:
        assert os.getpid() != self.parent
        if any(document.get("poison") for document in documents):
            os.kill(os.getpid(), signal.SIGKILL)
        return [{**document, "pid": os.getpid()} for document in documents]


@pytest.fixture
def deadly(scheme: Scheme) -> Pipeline:
    definition = {"processors": [{"deadly": {}}, {"supershingle": {"field": "body"}}]}
    return Pipeline.from_json(definition, scheme, processors={"deadly": Deadly})


def documents_of(answers: list[BlockAnswer]) -> list[list[Any]]:
    return [[o.document and o.document["n"] for o in answer.outcomes] for answer in answers]


def blocks_of(count: int, size: int, poison: Sequence[int] = ()) -> list[list[Document]]:
    documents = [{"n": n, "poison": n in poison, "body": "a b c d"} for n in range(count * size)]
    return [documents[at : at + size] for at in range(0, len(documents), size)]


@pytest.mark.parametrize("workers", [2, 3])
def test_answers_come_in_order_from_several_processes(deadly: Pipeline, workers: int):
    answers = list(process_blocks(deadly, iter(blocks_of(10, 5)), workers))
    assert documents_of(answers) == [list(range(n, n + 5)) for n in range(0, 50, 5)]
    processes = {outcome.document["pid"] for answer in answers for outcome in answer.outcomes}
    assert len(processes) == workers
    assert sum(answer.meter.languages["en"] for answer in answers) == 50


def test_no_more_blocks_are_read_ahead_than_there_are_workers(deadly: Pipeline):
    read = 0

    def blocks():
        nonlocal read
        for block in blocks_of(20, 2):
            read += 1
            yield block

    for answered, _ in enumerate(process_blocks(deadly, blocks(), 2), 1):
        assert read <= answered + 2


def test_a_worker_that_dies_costs_the_guilty_document_only(deadly: Pipeline):
    answers = list(process_blocks(deadly, iter(blocks_of(6, 4, poison=[9])), 2))
    assert documents_of(answers)[2] == [8, None, 10, 11]
    assert [n for block in documents_of(answers) for n in block if n is not None] == [
        n for n in range(24) if n != 9
    ]
    guilty = answers[2].outcomes[1]
    assert guilty.status == "failed"
    assert "the worker process died: signal 9, perhaps out of memory" in guilty.failure.reason
    assert answers[2].meter.counts["crashes"] == 1


def test_where_every_document_kills_the_block_is_given_up_soon(deadly: Pipeline):
    (answer,) = process_blocks(deadly, iter(blocks_of(1, 50, poison=range(50))), 2)
    assert [outcome.status for outcome in answer.outcomes] == ["failed"] * 50
    assert answer.meter.counts["crashes"] == 3


def test_workers_end_with_the_generator(deadly: Pipeline):
    answers = process_blocks(deadly, iter(blocks_of(50, 2)), 2)
    pids = {next(answers).outcomes[0].document["pid"] for _ in range(4)}
    answers.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_word_forms_the_workers_learn_are_kept(scheme: Scheme):
    pipeline = Pipeline.from_json({"processors": [{"supershingle": {"field": "body"}}]}, scheme)
    lexicon = Canonicalizer.of(scheme).lexicon
    lexicon.clear()
    list(process_blocks(pipeline, iter([[{"body": f"слово{chr(1072 + n)} других"}] for n in range(8)]), 2))
    assert len(lexicon) >= 9


def test_a_negative_number_of_workers_is_refused(deadly: Pipeline):
    with pytest.raises(ConfigError, match="0 for one per core"):
        process_blocks(deadly, iter([]), -1)


class Told(list[int]):
    """An answer that can be watched."""


class Here(WorkerProcess):
    """One that answers in this process."""

    def ask(self, question: object) -> None:
        self.asked = question

    def answer(self, patient: bool = False) -> Any:
        return Told([self.asked])


def test_a_consumed_answer_has_no_other_reference():
    answers = answers_in_order([Here(id), Here(id)], iter(range(6)), lambda worker, question: Told())
    for number in range(6):
        answer = next(answers)
        watched = weakref.ref(answer)
        assert answer == [number]
        del answer
        assert watched() is None
