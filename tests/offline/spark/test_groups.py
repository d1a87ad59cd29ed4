"""Candidates, components and groups by Spark are those of one machine."""

import gzip
import json
import random
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.copied_texts import copied_texts, groups_by_what_is_stored
from support.servers.choose import examples

from shinglefold.cli.main import main
from shinglefold.errors import ConfigError, InputError, SchemeMismatch
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.model.scheme import Decision
from shinglefold.offline.sign.parquet import print_type
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark import Bounds, GroupOptions, groups, sign
from shinglefold.offline.spark.candidate_pairs import _Nominate
from shinglefold.offline.spark.grouping import _Star, connected_components
from shinglefold.settings import load_settings
from shinglefold.sketch.clustering import connected_components as joined

FIELDS = ("title", "body")


def as_sets(grouped):
    found = {}
    for row in grouped.groups.collect():
        found.setdefault(row.group, set()).add(row._id)
    assert all(least == min(ids) for least, ids in found.items())
    return {frozenset(ids) for ids in found.values()}


def stored(spark, tmp_path, texts, scheme):
    """Fingerprints as `sign --only-ids` writes them."""
    prints = [one.to_field() for one in Fingerprinter(scheme).fingerprint(texts)]
    ids = [f"d{place:05}" for place in range(len(texts))]
    table = pa.table({"_id": ids, "_dedup": pa.array(prints, print_type(pa))})
    pq.write_table(table, tmp_path / "stored.parquet", row_group_size=50)
    return spark.read.parquet(str(tmp_path / "stored.parquet"))


@pytest.mark.corpus
def test_the_groups_of_a_corpus_are_those_of_groups(spark, work, tmp_path, scheme, corpus_path, capsys):
    source = corpus_path("gnome-uk")
    documents = [json.loads(line) for line in gzip.decompress(source.read_bytes()).splitlines()]
    pq.write_table(pa.Table.from_pylist(documents), tmp_path / "pages.parquet")
    pages = spark.read.parquet(str(tmp_path / "pages.parquet"))
    signed = work.keep(sign(pages, scheme, SignOptions(FIELDS), beside=True), "signed")
    grouped = groups(signed, scheme, work)
    assert as_sets(grouped) == groups_alone(source, capsys)
    assert grouped.summary.read == len(documents)
    assert not grouped.summary.crowded
    # Rows come in another order than documents were given.
    prints = {row.id: row._dedup.asDict() for row in signed.select("id", "_dedup").collect()}
    made = {one.document["id"]: json.loads(own) for one, own in signed_alone(documents, scheme)}
    assert {id_: {k: v for k, v in one.items() if v is not None} for id_, one in prints.items()} == made


def groups_alone(source, capsys):
    assert main(["--json", "groups", "--linkage", "connected", str(source)]) == 0
    return {frozenset(json.loads(line)["ids"]) for line in capsys.readouterr().out.splitlines()}


def signed_alone(documents, scheme):
    from shinglefold.offline.sign.signer import ParsedLine, Signer, SignTally

    plain = [ParsedLine(one, None, "", place) for place, one in enumerate(documents)]
    return Signer(scheme, SignOptions(FIELDS)).sign_documents(plain, SignTally())


@pytest.mark.parametrize("options", [{"verify": "signature"}, {"min_shared": 2, "verify": "keywords"}])
def test_random_texts_are_grouped_by_what_is_stored_as_find_pairs_does(
    spark, work, tmp_path, scheme, options
):
    scheme = scheme.with_options(**options)
    texts = copied_texts(400, 11)
    grouped = groups(stored(spark, tmp_path, texts, scheme), scheme, work)
    wanted = groups_by_what_is_stored(texts, scheme)
    assert as_sets(grouped) == {frozenset(f"d{one:05}" for one in places) for places in wanted}
    assert grouped.summary.members == sum(map(len, wanted))


def test_hundreds_of_copies_meet_though_all_their_supershingles_are_crowded(spark, work, tmp_path, scheme):
    chosen = random.Random(3)
    body = copied_texts(40, 5)
    long = max(body, key=len)
    texts = [f"{long} edition {chosen.randrange(10**6)}" for _ in range(300)] + body
    options = GroupOptions(bounds=Bounds(most=40, centres=4))
    grouped = groups(stored(spark, tmp_path, texts, scheme), scheme, work, options)
    assert frozenset(f"d{place:05}" for place in range(300)) <= max(as_sets(grouped), key=len)
    assert grouped.summary.crowded
    assert grouped.summary.skipped > 0


def test_documents_that_can_not_be_signed_say_why(spark, scheme):
    rows = [
        ("1", "one two three four five six", "en"),
        ("2", "seven eight nine ten", "xx"),
        ("3", None, None),
    ]
    pages = spark.createDataFrame(rows, "id string, body string, lang string")
    found = {row.id: row for row in sign(pages, scheme, SignOptions(FIELDS)).collect()}
    assert found["1"]._dedup.scheme == scheme.id
    assert found["1"].sign_problem is None
    assert found["3"]._dedup.digest.startswith(scheme.id)
    with pytest.raises(ConfigError, match="no column 'text'; there are: id, body, lang"):
        sign(pages, scheme, SignOptions(("text",)))


def test_what_can_not_be_grouped_is_refused(spark, work, tmp_path, scheme):
    other = load_settings(None).scheme().with_options(seed=9)
    with pytest.raises(SchemeMismatch, match="sign the documents again"):
        groups(stored(spark, tmp_path, copied_texts(5, 1), other), scheme, work)
    nothing = stored(spark, tmp_path, [], scheme)
    with pytest.raises(InputError, match="no documents"):
        groups(nothing, scheme, work)
    with pytest.raises(ConfigError, match="no column 'name'"):
        groups(nothing, scheme, work, GroupOptions(id_field="name"))


ANY_LENGTH = Decision(min_length_ratio=0.0)


def nominated(rows, bounds, cut, decision=ANY_LENGTH):
    """Return pairs and the sizes of crowded keys, of rows (key, number, shingles) in batches cut anywhere."""
    rows = np.array(sorted(rows), np.int64).reshape(-1, 3)
    batches = [
        pa.RecordBatch.from_arrays([pa.array(column) for column in part.T], ["key", "number", "shingles"])
        for part in np.array_split(rows, range(cut, len(rows), cut))
    ]
    found = [row for batch in _Nominate(decision, bounds)(batches) for row in batch.to_pylist()]
    pairs = [(row["a"], row["b"]) for row in found if row["held"] is None]
    return pairs, sorted(row["held"] for row in found if row["held"] is not None)


buckets = st.dictionaries(st.integers(-5, 5), st.sets(st.integers(0, 40), max_size=25), max_size=8)


@given(buckets, st.integers(1, 40))
@settings(max_examples=examples(150), deadline=None)
def test_every_two_documents_of_a_supershingle_are_a_pair(held, cut):
    rows = [(key, number, 50) for key, numbers in held.items() for number in numbers]
    pairs, crowded = nominated(rows, Bounds(most=30), cut)
    assert sorted(pairs) == sorted(pair for one in held.values() for pair in combinations(sorted(one), 2))
    assert not crowded


@given(buckets, st.integers(1, 40), st.integers(2, 10), st.integers(1, 2))
@settings(max_examples=examples(150), deadline=None)
def test_a_crowded_supershingle_links_its_documents_to_its_centres_and_is_told(held, cut, most, centres):
    rows = [(key, number, 50) for key, numbers in held.items() for number in numbers]
    pairs, crowded = nominated(rows, Bounds(most, centres), cut)
    wanted = []
    for numbers in map(sorted, held.values()):
        first = numbers if len(numbers) <= most else numbers[:centres]
        wanted += [(one, other) for one, other in combinations(numbers, 2) if one in first]
    assert sorted(pairs) == sorted(wanted)
    assert crowded == sorted(len(one) for one in held.values() if len(one) > most)


def test_documents_of_other_lengths_are_no_candidates():
    rows = [(1, 0, 100), (1, 1, 90), (1, 2, 30)]
    assert nominated(rows, Bounds(), 2, Decision())[0] == [(0, 1)]
    assert len(nominated(rows, Bounds(), 2, Decision(verify="keywords"))[0]) == 3


@pytest.mark.parametrize("bounds", [{"most": 1}, {"centres": 0}, {"most": 5, "centres": 6}])
def test_bounds_that_can_not_be_are_refused(bounds):
    with pytest.raises(ConfigError):
        Bounds(**bounds)


def starred(edges, large, cut):
    """Do what Spark does for a star: equal edges stay, all are sorted, and batches cut them anywhere."""
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    batches = [
        pa.RecordBatch.from_arrays([pa.array(column) for column in part.T], ["a", "b", "moved"])
        for part in np.array_split(edges, range(cut, len(edges), cut))
    ]
    found = list(_Star(large)(batches))
    return np.concatenate(
        [np.stack([column.to_numpy() for column in batch.columns], axis=1) for batch in found]
    )


def settled(edges, cut=7):
    """Return the edges that are left, each once, and after how many rounds."""
    for rounds in range(1, 100):
        both = np.vstack((edges[:, :2], edges[:, 1::-1]))
        large = starred(np.column_stack((both, np.zeros(len(both), np.int64))), True, cut)
        edges = starred(large, False, cut)
        if not edges[:, 2].any():
            return np.unique(edges[:, :2], axis=0), rounds
    raise AssertionError("never settled")


def labels(edges, count):
    found = np.arange(count)
    found[edges[:, 0]] = edges[:, 1]
    return found


graphs = st.integers(2, 40).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), min_size=1, max_size=80),
        st.integers(1, 30),
    )
)


@given(graphs)
@settings(max_examples=examples(200), deadline=None)
def test_stars_are_the_components_of_union_find(graph):
    count, pairs, cut = graph
    edges = np.array([(max(pair), min(pair)) for pair in pairs if pair[0] != pair[1]], np.int64).reshape(
        -1, 2
    )
    if len(edges):
        found, _ = settled(edges, cut)
        assert (labels(found, count) == joined(edges[:, 0], edges[:, 1], count)).all()


@pytest.mark.parametrize("length", [10, 100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_the_rounds_of_a_path_grow_with_its_logarithm(length, order):
    names = np.arange(length) if order == "in order" else np.random.default_rng(length).permutation(length)
    edges = np.sort(np.stack((names[:-1], names[1:]), axis=1), axis=1)[:, ::-1].astype(np.int64)
    found, rounds = settled(edges, 4_096)
    assert (labels(found, length) == 0).all()
    assert rounds <= 2 + np.log2(length)


def test_a_node_with_many_neighbours_takes_two_rounds():
    edges = np.stack((np.arange(1, 50_001), np.full(50_000, 0)), axis=1)
    edges[:, 1] = 25_000
    edges = np.sort(edges[edges[:, 0] != 25_000], axis=1)[:, ::-1].astype(np.int64)
    found, rounds = settled(edges, 4_096)
    assert len(np.unique(found[:, 1])) == 1
    assert rounds <= 3


def test_spark_connects_a_random_graph_and_a_long_path(spark, work):
    generator = np.random.default_rng(5)
    random = generator.integers(0, 400, (300, 2))
    path = np.stack((np.arange(1_000, 1_127), np.arange(1_001, 1_128)), axis=1)
    edges = np.vstack((random, path, path[:3]))
    told = []
    frame = spark.createDataFrame(pa_table(edges).to_pandas())
    found = connected_components(frame, work, lambda number, changed: told.append((number, changed)))
    rows = {row.number: row.root for row in found.collect()}
    wanted = joined(edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64), 1_128)
    linked = set(edges[edges[:, 0] != edges[:, 1]].ravel().tolist())
    assert rows == {one: int(wanted[one]) for one in linked}
    assert told[-1][1] == 0
    assert len(told) <= 2 + np.log2(1_128)


def pa_table(edges):
    return pa.table({"a": edges[:, 0].astype(np.int64), "b": edges[:, 1].astype(np.int64)})
