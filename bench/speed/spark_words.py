"""Grouping by texts on Spark: how many bytes are shuffled where the words of documents decide."""

import random
import tempfile
from pathlib import Path

from bench import corpora
from bench.speed.spark import jobs_of, local_spark, shuffled_since
from bench.table import Row
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark import StageStore, groups, sign
from shinglefold.offline.spark.session import Session
from shinglefold.registry import make_scheme

#: Texts that are grouped, their words, and the share of them that is an edited copy.
TEXTS, WORDS, COPIES = 4_000, 500, 0.2


def measure(texts: int = TEXTS) -> list[Row]:
    """Return what is shuffled a document where texts decide, as on machines that can't send all to all."""
    scheme = make_scheme()
    with (
        tempfile.TemporaryDirectory() as folder,
        # Of so few documents Spark would send everything everywhere, which no large collection allows.
        local_spark(folder, **{"spark.sql.autoBroadcastJoinThreshold": "-1"}) as spark,
    ):
        return _grouped(spark, scheme, _with_copies(texts), Path(folder))


def _with_copies(count: int) -> list[str]:
    chosen = random.Random(5)
    made = list(corpora.russian(count, WORDS))
    for place in range(1, count):
        if chosen.random() < COPIES:
            words = made[chosen.randrange(place)].split(" ")
            for _ in range(len(words) // 50):
                words[chosen.randrange(len(words))] = f"слово{chosen.randrange(10**6)}"
            made[place] = " ".join(words)
    return made


def _grouped(spark: Session, scheme: Scheme, texts: list[str], folder: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": [str(place) for place in range(len(texts))], "body": texts})
    pq.write_table(table, folder / "pages.parquet", row_group_size=500)
    pages = spark.read.parquet(str(folder / "pages.parquet"))
    work = StageStore(spark, str(folder / "work"))
    signed = work.keep(sign(pages, scheme, SignOptions(("body",)), beside=True), "signed")
    begun, context = jobs_of(spark), spark.sparkContext
    context.setJobDescription("reading")
    summary = groups(signed, scheme, work, report=context.setJobDescription).summary
    shuffled = shuffled_since(spark, begun)
    note = f"{len(texts):,} texts of {WORDS} words, {COPIES:.0%} of them copies; {summary.pairs:,} pairs"
    assert summary.members > COPIES * len(texts), f"{summary.members} of the planted copies are in groups"
    rows = [
        Row(f"shuffled a document, {phase}", size / len(texts), "bytes", "compressed by lz4")
        for phase, size in shuffled.items()
    ]
    return [*rows, Row("shuffled a document", sum(shuffled.values()) / len(texts), "bytes", note)]
