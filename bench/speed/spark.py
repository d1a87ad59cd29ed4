"""Grouping and signing on Spark, on this machine: CPU of all processes, shuffled bytes by Spark's count."""

import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench import corpora
from bench.speed.planted import Planted, write_signed
from bench.table import Row
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark import StageStore, groups, sign
from shinglefold.offline.spark.session import Session, session
from shinglefold.registry import make_scheme

#: Documents with made-up fingerprints that are grouped; texts that are signed, and their words.
SIZES, TEXTS, WORDS = (10_000, 100_000, 1_000_000), 10_000, 500
_CONF = {
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
}
_PHASES = ("reading", "looking", "connecting", "naming")


def measure() -> list[Row]:
    """Return what grouping takes a document at each size, and what signing does beside the kernel."""
    scheme = make_scheme().with_options(verify="signature")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, local_spark(folder) as spark:
        # Spark compiles and loads on the way: the first job is nobody's.
        _grouped(spark, scheme, 1_000, Path(folder))
        for size in SIZES:
            rows += _grouped(spark, scheme, size, Path(folder))
        rows += _signed(spark, scheme, TEXTS, Path(folder))
    return rows


@contextmanager
def local_spark(folder: str, **more: str) -> Iterator[Session]:
    found = session({**_CONF, **more, "spark.local.dir": folder}, "local[2]")
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


def _grouped(spark: Session, scheme: Scheme, size: int, folder: Path) -> list[Row]:
    planted = Planted.of(scheme, size)
    write_signed(planted, folder / "signed.parquet")
    work = StageStore(spark, str(folder / "work"))
    context = spark.sparkContext
    begun, cpu, start = jobs_of(spark), _cpu(), time.perf_counter()
    signed = spark.read.parquet(str(folder / "signed.parquet"))
    context.setJobDescription("reading")
    found = groups(signed, scheme, work, report=context.setJobDescription)
    seconds, used = time.perf_counter() - start, _cpu() - cpu
    summary = found.summary
    _assert_together(planted, found.groups)
    note = (
        f"{size:,} made-up fingerprints, {summary.pairs:,} pairs, {summary.copies:,} exact copies, "
        f"{summary.groups:,} groups, {summary.rounds} rounds; {summary.crowded} crowded supershingles, "
        f"{summary.skipped:,} pairs of them skipped"
    )
    shuffled = shuffled_since(spark, begun)
    work.remove()
    name = f"groups, {size:,}"
    return [
        Row(f"{name}: clock", seconds, "s", note),
        Row(f"{name}: CPU a document", used / size * 1e6, "µs", "driver, executors and Python workers"),
        Row(f"{name}: nominations a document", summary.nominated / size, "pairs", "of one supershingle each"),
        *(
            Row(f"{name}: shuffled a document, {phase}", shuffled[phase] / size, "bytes", "compressed by lz4")
            for phase in _PHASES
        ),
        Row(f"{name}: shuffled a document", sum(shuffled.values()) / size, "bytes", "all stages"),
    ]


def _assert_together(planted: Planted, found: Any) -> None:  # noqa: ANN401 - a frame
    """Nearly all documents of a planted group must be in one, and next to no other one with them."""
    rows = found.toPandas()
    documents = rows["_id"].str[1:].astype(int).to_numpy()
    planted_groups = planted.groups[documents]
    _, label = np.unique(rows["group"].to_numpy(), return_inverse=True)
    pairs = np.unique(np.stack((label, planted_groups), axis=1), axis=0)
    strangers = len(pairs) - label.max() - 1
    assert strangers <= len(rows) / 1_000, f"{strangers} groups hold documents of several texts"
    copies = int(planted.sizes[planted.sizes > 1].sum())
    assert len(rows) >= 0.9 * copies, f"{len(rows)} of {copies} copies were found"


def _signed(spark: Session, scheme: Scheme, count: int, folder: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = list(corpora.generated("ru", 2_000, WORDS))
    whole = [texts[place % len(texts)] for place in range(count)]
    table = pa.table({"id": [str(place) for place in range(count)], "body": whole})
    pq.write_table(table, folder / "pages.parquet", row_group_size=1_000)
    pages = spark.read.parquet(str(folder / "pages.parquet"))
    made = sign(pages, scheme, SignOptions(("body",))).select("_dedup.digest")
    first = made.limit(len(texts)).collect()
    fingerprinter = Fingerprinter(scheme)
    expected = [json.loads(one)["digest"] for one in fingerprinter.fingerprint_json(texts[:100])]
    assert [row.digest for row in first[:100]] == expected
    # The first time the workers learn the words.
    for _ in range(2):
        cpu = _cpu()
        made.write.mode("overwrite").parquet(str(folder / "digests"))
        used = (_cpu() - cpu) / count
    start = time.process_time()
    fingerprinter.fingerprint_json(texts)
    kernel = (time.process_time() - start) / len(texts)
    note = f"{count:,} Russian texts of {WORDS} words, from Parquet, warm"
    return [
        Row("sign: CPU a document, all processes", used * 1e6, "µs", note),
        Row("sign: kernel alone, the same texts", kernel * 1e6, "µs", "one process, warm"),
        Row("sign ÷ kernel", used / kernel, "times"),
    ]


def jobs_of(spark: Session) -> set[int]:
    return {job["jobId"] for job in _asked(spark, "jobs")}


def shuffled_since(spark: Session, before: set[int]) -> dict[str, int]:
    """Return the bytes that stages wrote for others since, by what was being done."""
    written = {stage["stageId"]: stage["shuffleWriteBytes"] for stage in _asked(spark, "stages")}
    found = dict.fromkeys(_PHASES, 0)
    seen: set[int] = set()
    for job in sorted(_asked(spark, "jobs"), key=lambda job: job["jobId"]):
        if job["jobId"] in before:
            continue
        phase = next(one for one in _PHASES if job.get("description", "reading").startswith(one))
        # A job names the stages of others, too, whose output it reads.
        fresh = set(job["stageIds"]) - seen
        found[phase] += sum(written.get(stage, 0) for stage in fresh)
        seen |= fresh
    return found


def _asked(spark: Session, what: str) -> list[dict[str, Any]]:
    context = spark.sparkContext
    place = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{what}"
    with urllib.request.urlopen(place, timeout=60) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def _cpu() -> float:
    """Return the seconds of CPU of this process and all below it, those that ended included."""
    ticks, wanted = 0, {os.getpid()}
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    size = 0
    while size < len(wanted):
        size = len(wanted)
        wanted |= {pid for pid, (parent, _) in stats.items() if parent in wanted}
    ticks = sum(stats[pid][1] for pid in wanted if pid in stats)
    return ticks / os.sysconf("SC_CLK_TCK")
