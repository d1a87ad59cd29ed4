"""What becomes of a task that a worker died of: its lines are tried one by one, and the guilty ones fail."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from shinglefold.errors import InputError
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.worker_process import WorkerProcess
from shinglefold.offline.sign.part_writer import Question, tell, write
from shinglefold.offline.sign.signer import SignOptions, SignTally
from shinglefold.offline.sign.spans import read_lines
from shinglefold.offline.sign.tasks import RowGroup

#: Lines of one task that workers die of, after which its other lines are given up.
_PATIENCE = 3


def line_by_line(options: SignOptions, parquet: bool, worker: WorkerProcess, question: Question) -> SignTally:
    """Return the answer to a question a worker died of: the guilty lines failed, the others as usual.

    Args:
        parquet: parts are tables, which do not become one by standing one behind another.

    Raises:
        InputError: it was a row group, which has no lines.
    """
    task = question.task
    if isinstance(task, RowGroup):
        raise InputError(
            f"{task.source}: a worker process died of row group {task.number + 1}: {worker.fate}; "
            "sign its rows as JSON lines, of which the guilty ones alone fail, or write smaller row groups"
        )
    whole, crashes = SignTally(), 0
    read = read_lines(task, options.reading.max_bytes)
    made: list[bytes] = []
    alone = Path(f"{question.path}.one")
    with _told(whole, question.path):
        for place, line in enumerate(read.lines):
            found = None
            if crashes < _PATIENCE:
                worker.ask(replace(question, path=str(alone), hold=False, alone=place))
                found = worker.answer()
            if found is None:
                crashes += 1
                reason = f"the worker process died: {worker.fate}"
                raw = line.raw.decode("utf-8", "surrogateescape")
                record = Record(None, line.file or task.source, line.number, reason, raw)
                whole.refused.append(("worker", reason, record))
                continue
            _add(whole, found)
            if found.problem:
                break
            made.append(alone.read_bytes())
        whole.size = _joined(made, question.path, options.target if parquet else None)
        alone.unlink(missing_ok=True)
    whole.lines = read.count
    whole.meter.counts["crashes"] += min(crashes, _PATIENCE)
    return whole


@contextmanager
def _told(whole: SignTally, path: str) -> Iterator[None]:
    """Let the answer say why its part could not be written."""
    try:
        yield
    except OSError as error:
        tell(whole, error, path)


def _joined(made: Sequence[bytes], path: str, target: str | None) -> int:
    """Make one part of those of single lines; return its bytes.

    Args:
        target: the column of the fingerprints where the parts are tables.
    """
    if target is not None:
        from shinglefold.offline.sign.parquet import join

        join(made, target, path)
    else:
        write(made, path)
    return Path(path).stat().st_size


def _add(whole: SignTally, one: SignTally) -> None:
    whole.signed += one.signed
    whole.refused += one.refused
    whole.meter.add(one.meter)
    whole.present |= one.present
    whole.problem = whole.problem or one.problem
    whole.unwritten = whole.unwritten or one.unwritten
