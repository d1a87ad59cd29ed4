"""``shinglefold sign`` as it is typed, beside the kernel inside it."""

import json
import multiprocessing
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

from bench import corpora
from bench.clock import COMMAND, Typed, ran, typed
from bench.table import Row
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme

#: Documents of the file; of one just long enough for compiled code; of the kernel's share; of a file so
#: short that starting is all.
DOCUMENTS, SOME, OWN, FEW, WORDS = 60_000, 12_000, 2_000, 10, 500
#: Times the kernel takes its share in a round.
_TIMES = 15


def measure() -> list[Row]:
    """Return documents a second, µs of CPU a document of the whole way, and beside it the kernel's."""
    texts = corpora.generated("ru", OWN, WORDS)
    with tempfile.TemporaryDirectory() as folder, _lexicon(Path(folder) / "lexicon"):
        source = Path(folder) / "texts.jsonl"
        _write(source, texts, DOCUMENTS)
        few, some = Path(folder) / "few.jsonl", Path(folder) / "some.jsonl"
        _write(few, texts, FEW)
        _write(some, texts, SOME)
        _sign(few, Path(folder) / "warm.jsonl")
        _assert_answers(few, Path(folder) / "warm.jsonl", texts)
        first = min(_first_line(source) for _ in range(3))
        start = min(_sign(few, Path(folder) / "few.out").cpu for _ in range(3))
        kernels, together = [], []
        runs, shorter, singly, singly_shorter = [], [], [], []
        for number in range(3):
            kernels.append(_kernel(texts))
            together.append(_kernels(texts))
            shorter.append(_sign(some, Path(folder) / "some.out").cpu)
            runs.append(_sign(source, Path(folder) / f"{number}.out"))
            singly_shorter.append(_sign(some, Path(folder) / "some.out", "--workers", "1").cpu)
            singly.append(_sign(source, Path(folder) / "alone.out", "--workers", "1"))
        assert (Path(folder) / "alone.out").read_bytes() == (Path(folder) / "0.out").read_bytes()
        memory = ran([COMMAND, "sign", str(source)], Path(folder) / "memory.out")
        del os.environ["SHINGLEFOLD_LEXICON_FILE"]
        cold = _sign(source, Path(folder) / "cold.out")
        whole, kernel = min(run.cpu for run in runs), min(kernels)
        alone = min(run.cpu for run in singly)
        clock = min(run.seconds for run in runs)
    note = f"{DOCUMENTS:,} generated Russian texts of {WORDS} words, JSONL to JSONL, warm"
    own = (whole - min(shorter)) / (DOCUMENTS - SOME) * 1e6
    own_alone = (alone - min(singly_shorter)) / (DOCUMENTS - SOME) * 1e6
    loading = min(shorter) - own * SOME / 1e6
    return [
        Row(
            "sign: documents a second of the clock",
            DOCUMENTS / clock,
            "documents/s",
            f"{note}, start included",
        ),
        Row("sign: CPU a document, all processes", own, "µs", f"{note}; each more beyond {SOME:,}"),
        Row("sign: CPU a document with all that starting takes", whole / DOCUMENTS * 1e6, "µs", note),
        Row("kernel: CPU a document", kernel, "µs", "text → fingerprint as JSON, in turns with the above"),
        Row("kernel, two processes at once: CPU a document", min(together), "µs", "they share caches"),
        Row("sign ÷ kernel, two processes at once", own / min(together), "times", "CPU; asked 1.4"),
        Row("sign, one process ÷ kernel", own_alone / kernel, "times", "CPU; asked 1.4"),
        Row("sign: documents/s two such cores have CPU for", 2e6 / own, "documents/s", "asked 13,900"),
        Row("sign: CPU of starting", start, "s", f"{FEW} documents"),
        Row("sign: CPU of starting and loading compiled code", loading, "s", "once a run of more than 64 MB"),
        Row("sign: first document out", first, "s", "of the clock, to standard output; asked 1"),
        Row(
            "sign: most memory",
            memory.anonymous,
            "MB",
            f"own, of two workers and their parent; with mapped files {memory.together:,.0f}",
        ),
        Row(
            "sign, one process: documents a second of the clock",
            DOCUMENTS / min(run.seconds for run in singly),
            "documents/s",
        ),
        Row("sign, one process: CPU a document", own_alone, "µs", f"each more beyond {SOME:,}"),
        Row("sign, no word known: CPU a document", (cold.cpu - start) / (DOCUMENTS - FEW) * 1e6, "µs"),
        Row(
            "sign, no word known: documents a second", DOCUMENTS / cold.seconds, "documents/s", "of the clock"
        ),
    ]


def _sign(source: Path, target: Path, *options: str) -> Typed:
    return typed([COMMAND, "sign", source, "-o", target, "--overwrite", *options])


def _first_line(source: Path) -> float:
    start = time.perf_counter()
    with subprocess.Popen(
        [COMMAND, "sign", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        seconds = time.perf_counter() - start
        process.kill()
    return seconds


def _kernel(texts: tuple[str, ...]) -> float:
    """Return the µs of processor time a document that the kernel takes, its fastest time counting."""
    return min(_kernel_times(texts))


def _kernels(texts: tuple[str, ...]) -> float:
    """Return the same of two processes at once, as workers of a command are: the middle of their times."""
    context = multiprocessing.get_context("fork")
    ready, told = context.Barrier(2), context.SimpleQueue()
    processes = [context.Process(target=_time_kernel, args=(texts, ready, told)) for _ in range(2)]
    for process in processes:
        process.start()
    times = [told.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(times) / len(times)


def _time_kernel(texts: tuple[str, ...], ready: Barrier, told: "multiprocessing.SimpleQueue[float]") -> None:
    told.put(median(_kernel_times(texts, ready)))


def _kernel_times(texts: tuple[str, ...], ready: Barrier | None = None) -> list[float]:
    fingerprinter = Fingerprinter(make_scheme())
    assert fingerprinter.compile(), "the extra fast is not installed"
    fingerprinter.fingerprint_json(texts)
    if ready is not None:
        ready.wait()
    times = []
    for _ in range(_TIMES):
        start = time.process_time()
        fingerprinter.fingerprint_json(texts)
        times.append((time.process_time() - start) / len(texts) * 1e6)
    return times


def _write(path: Path, texts: tuple[str, ...], count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            document = {
                "id": str(number),
                "url": f"https://example.org/{number}",
                "body": texts[number % len(texts)],
            }
            file.write(json.dumps(document, ensure_ascii=False) + "\n")


def _assert_answers(source: Path, target: Path, texts: tuple[str, ...]) -> None:
    made = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    given = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    prints = [one.pop("_dedup") for one in made]
    assert made == given
    assert prints == [one.to_field() for one in Fingerprinter(make_scheme()).fingerprint(texts[:FEW])]


@contextmanager
def _lexicon(path: Path) -> Iterator[None]:
    """Keep the words for the next command."""
    os.environ["SHINGLEFOLD_LEXICON_FILE"] = str(path)
    try:
        yield
    finally:
        os.environ.pop("SHINGLEFOLD_LEXICON_FILE", None)
