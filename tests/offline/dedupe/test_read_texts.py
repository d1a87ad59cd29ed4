"""Texts are fingerprinted range by range, with the pairs of ``shinglefold.pairs``; a crash costs one line."""

import json
import os
import random
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import shinglefold
from shinglefold.ingest.field_statistics import FieldWatch
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.offline.dedupe.collect import collect
from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable
from shinglefold.offline.dedupe.link import Linking
from shinglefold.offline.dedupe.read_texts import TextReader, text_tasks
from shinglefold.offline.dedupe.slots import LinkOptions
from shinglefold.offline.sign import tasks
from shinglefold.offline.sign.signer import SignOptions

_OPTIONS = SignOptions(("title", "body"), only_ids=True)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Texts of random words, each with a copy of which some words differ."""
    chance = random.Random(25)
    vocabulary = [f"word{chance.randrange(10**6)}" for _ in range(3_000)]
    made = []
    for _ in range(150):
        words = chance.choices(vocabulary, k=100)
        copy = [one if chance.random() > 0.13 else chance.choice(vocabulary) for one in words]
        made += [" ".join(words), " ".join(copy)]
    return made


def write(path: Path, texts: list[str]) -> None:
    path.write_text("".join(json.dumps({"id": n, "body": one}) + "\n" for n, one in enumerate(texts)))


def read(table: FingerprintTable, path: Path, workers: int = 1, reader: TextReader | None = None) -> None:
    reader = reader or TextReader(table.scheme, _OPTIONS)
    every = text_tasks([str(path)], ReadOptions(), {})
    collect(every, reader, table, workers, lambda fraction: None)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_pairs_of_a_file_are_those_of_its_texts_whichever_supershingle_they_share(
    scheme, tmp_path, texts, workers, monkeypatch
):
    monkeypatch.setattr(tasks, "_SMALLEST", 5_000)
    write(tmp_path / "texts.jsonl", texts)
    expected = shinglefold.pairs(texts)
    with closing(FingerprintTable(scheme, whole=True)) as table:
        read(table, tmp_path / "texts.jsonl", workers)
        found = np.concatenate(list(Linking(table, LinkOptions(1 << 30)).pairs()))
        words = table.words.mapped()
    assert [(row["a"], row["b"]) for row in found] == [(one.a, one.b) for one in expected]
    assert found["resemblance"].tolist() == pytest.approx([one.resemblance for one in expected])
    assert found["similarity"].tolist() == pytest.approx([one.similarity for one in expected])
    shared = words[found["a"]] == words[found["b"]]
    stored, half = scheme.sketch.groups, shared.shape[1] // 2
    # Some pairs are nominated only by supershingles that no index stores, some only by the second half.
    assert (~shared[:, :stored].any(axis=1)).any()
    assert (~shared[:, :half].any(axis=1)).any()


class Deadly(TextReader):
    """Kills its process where a line says so."""

    def __call__(self, task):
        found = tasks.read_lines(task, self.options.max_bytes)
        if any(b"deadly" in line.raw for line in found.lines):
            os._exit(7)
        return super().__call__(task)


def test_a_line_that_kills_workers_is_left_out_alone(scheme, tmp_path, texts):
    write(tmp_path / "texts.jsonl", [texts[0], "deadly", texts[1]])
    with closing(FingerprintTable(scheme, whole=True)) as table:
        read(table, tmp_path / "texts.jsonl", 2, Deadly(scheme, _OPTIONS))
        assert [table.place(row).rpartition(":")[2] for row in range(len(table))] == ["1", "3"]
        assert table.failures.count == 1
        assert table.failures.first.endswith("texts.jsonl:2: the worker process died: exit code 7")


def test_fields_of_all_documents_and_a_sample_are_told(scheme, tmp_path, texts, monkeypatch):
    monkeypatch.setattr(tasks, "_SMALLEST", 5_000)
    write(tmp_path / "texts.jsonl", texts)
    watch = FieldWatch(("title", "body"))
    with closing(FingerprintTable(scheme, whole=True)) as table:
        every = partial(text_tasks, [str(tmp_path / "texts.jsonl")], ReadOptions(), {})
        collect(every(), TextReader(scheme, _OPTIONS), table, 2, lambda fraction: None, watch)
    assert (watch.documents, watch.present, len(watch.sample)) == (300, {"body"}, 200)
