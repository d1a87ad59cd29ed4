"""What an executor of Spark reads of an index, slice by slice, without Spark."""

import pyarrow as pa
import pytest
from support.numbered import mappings, store
from support.random_pages import COUNT

from shinglefold.offline.spark.read_index import _Read


@pytest.mark.parametrize("parts", [1, 3])
def test_slices_are_the_whole_index_once(server, engine, new_index, parts):
    index = new_index(mappings(), {"number_of_shards": 3, "number_of_replicas": 0})
    store(engine, index, range(COUNT))
    read = _Read(server.url, index, parts, "_dedup")
    slices = [pa.RecordBatch.from_pydict({"id": pa.array([part])}) for part in range(parts)]
    rows = [[row for batch in read([one]) for row in batch.to_pylist()] for one in slices]
    assert all(rows)
    found = {row["_id"]: row for part in rows for row in part}
    assert sorted(found) == sorted(f"p{number}" for number in range(COUNT))
    assert sum(map(len, rows)) == COUNT
    assert {row["_index"] for row in found.values()} == {index}
    assert all(row["_dedup"]["digest"] for row in found.values())
