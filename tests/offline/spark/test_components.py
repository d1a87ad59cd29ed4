"""Large stars and small stars in turn: the components of union-find, in few rounds."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.offline.spark.grouping import _Star, connected
from shinglefold.sketch.clustering import connected as joined


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
    found = connected(frame, work, lambda number, changed: told.append((number, changed)))
    rows = {row.number: row.root for row in found.collect()}
    wanted = joined(edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64), 1_128)
    linked = set(edges[edges[:, 0] != edges[:, 1]].ravel().tolist())
    assert rows == {one: int(wanted[one]) for one in linked}
    assert told[-1][1] == 0
    assert len(told) <= 2 + np.log2(1_128)


def pa_table(edges):
    return pa.table({"a": edges[:, 0].astype(np.int64), "b": edges[:, 1].astype(np.int64)})
