"""Leaders are found without deciding every pair in doubt, and are the same as if all were decided."""

import random

import numpy as np
import pytest

from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.regroup.clustering import decisive
from shinglefold.ingest import index_documents
from shinglefold.sketch.clustering import leader_clusters
from shinglefold.testing.edits import edited


def _sides(pairs):
    columns = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return columns[0], columns[1]


class _Asked:
    """Decide by the truth, and record which pairs were decided."""

    def __init__(self, doubt, true):
        self.doubt, self.true, self.rows = doubt, true, []

    def __call__(self, rows):
        self.rows += rows.tolist()
        return np.array([(int(self.doubt[0][row]), int(self.doubt[1][row])) in self.true for row in rows])


def _led(pairs, count):
    return leader_clusters(*_sides(pairs), count).tolist()


@pytest.mark.parametrize("seed", range(120))
def test_leaders_are_the_same_as_with_all_pairs_decided(seed, monkeypatch):
    chance = random.Random(seed)
    most = chance.choice([1, 3, 32])
    monkeypatch.setattr("shinglefold.grouping.regroup.clustering._FIRST", most)
    monkeypatch.setattr("shinglefold.grouping.regroup.clustering._MOST", 8 * most)
    count = chance.randrange(2, 80)
    some = [chance.choice([0.05, 0.2, 0.5, 1.0]) for _ in range(count)]
    pairs = [(a, b) for b in range(count) for a in range(b) if chance.random() < some[a] * some[b]]
    alike = chance.choice([0.05, 0.5, 0.95])
    true = {pair for pair in pairs if chance.random() < alike}
    surely = chance.choice([0.0, 0.5, 1.0])
    sure = {pair for pair in true if chance.random() < surely}
    # The order of the two in a pair says nothing.
    turned = chance.random() < 0.5
    doubt = _sides(set(pairs) - sure)
    asked = _Asked(doubt, true)
    kept = decisive(_sides(sure), doubt[::-1] if turned else doubt, count, asked)
    found = {(int(a), int(b)) for a, b in zip(doubt[0][kept], doubt[1][kept], strict=True)}
    leaders = _led(true, count)
    assert _led(sure | found, count) == leaders
    leading = {item for item in range(count) if leaders[item] == item}
    assert found >= {pair for pair in true - sure if leading & {*pair}}
    assert found <= true
    assert len(asked.rows) == len(set(asked.rows))


@pytest.mark.long
def test_a_family_of_matching_texts_takes_few_decisions():
    count = 1000
    doubt = _sides((a, b) for b in range(count) for a in range(b))
    asked = _Asked(doubt, {(a, b) for b in range(count) for a in range(b)})
    decisive(_sides(()), doubt, count, asked)
    assert len(asked.rows) < 1.6 * count
    assert len(doubt[0]) > 400 * count


def test_a_family_without_matches_decides_every_pair_once():
    count = 150
    doubt = _sides((a, b) for b in range(count) for a in range(b))
    asked = _Asked(doubt, set())
    assert not decisive(_sides(()), doubt, count, asked).any()
    assert sorted(asked.rows) == list(range(len(doubt[0])))


@pytest.mark.long
def test_a_family_of_texts_in_doubt_is_grouped_as_by_all_of_its_pairs(engine, pipeline, text, monkeypatch):
    base = text("family", words=300)
    copies = [edited(base, "words replaced", 0.09, "en", seed=seed).text for seed in range(70)]
    documents = [{"id": f"{at:02}", "body": body} for at, body in enumerate([base, *copies])]
    assert index_documents(engine, "texts", documents, pipeline, workers=1).failed == 0
    found, asked = [], []
    for held in (1 << 24, 1):
        monkeypatch.setattr("shinglefold.grouping.regroup.clustering._HELD", held)
        summary = regroup(engine, "texts", RegroupOptions("leader", verify="text"))
        asked.append(summary.counts.by_text)
        hits = engine.search("texts", {"size": 100})["hits"]["hits"]
        found.append({hit["_id"]: hit["_source"]["_dedup"]["group"] for hit in hits})
    assert found[0] == found[1]
    # The second run reads once, as nothing is left to change, the first twice.
    assert asked[1] > 1000
    assert asked[0] < asked[1]


def test_texts_read_in_small_parts_give_the_same_groups(engine, pipeline, text, monkeypatch):
    bases = [text(kind, words=300) for kind in "ab"]
    copies = [edited(bases[n % 2], "words replaced", 0.09, "en", seed=n).text for n in range(24)]
    documents = [{"id": f"{at:02}", "body": body} for at, body in enumerate([*bases, *copies])]
    assert index_documents(engine, "texts", documents, pipeline, workers=1).failed == 0
    found = []
    for settings in ({}, {"_TILE": 3}, {"_AT_ONCE": 2}, {"_SHINGLES": 1}):
        with monkeypatch.context() as patched:
            for name, value in settings.items():
                patched.setattr(f"shinglefold.grouping.regroup.text_verdicts.{name}", value)
            options = RegroupOptions("connected", verify="text", dry_run=True)
            counts = regroup(engine, "texts", options).counts
        found.append((counts.by_text, counts.by_signature, counts.groups, counts.planned))
    assert found[0][0] > 20
    assert found == [found[0]] * 4
    assert found[0][1] == 0
