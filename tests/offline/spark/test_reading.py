"""Out of an index: what it stores is grouped as it is from a file."""

from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from support.copied_texts import copied_texts, groups_by_what_is_stored

from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.offline.spark import groups, stored
from shinglefold.offline.spark.fingerprint_rows import FOREIGN, UNREADABLE, UNSIGNED, _Reader
from shinglefold.offline.spark.read_index import _whole

_TYPES = {"digest": pa.string(), "supershingles": pa.list_(pa.string()), "signature": pa.string()}


@pytest.fixture
def recipe(scheme):
    return default_recipe(scheme.with_options(verify="signature"))


def test_an_index_is_grouped_by_what_it_stores(spark, work, tmp_path, recipe):
    texts = copied_texts(120, 4)
    prints = Fingerprinter(recipe.scheme).fingerprint(texts)
    with closing(open_engine(tmp_path / "engine")) as engine:
        engine.create_index("pages", recipe_mappings(recipe), {})
        actions = [
            {"_index": "pages", "_id": f"p{place}", "_source": {"_dedup": one.to_field(), "n": place}}
            for place, one in enumerate(prints)
        ]
        assert not engine.bulk([*actions, {"_index": "pages", "_id": "bare", "_source": {"n": 1}}]).failures
        engine.refresh("pages")
    frame = work.keep(stored(spark, str(tmp_path / "engine"), "pages", recipe), "stored")
    grouped = groups(frame, recipe.scheme, work)
    found = {}
    for row in grouped.groups.collect():
        found.setdefault(row.group, set()).add(int(row._id[1:]))
    assert {frozenset(one) for one in found.values()} == groups_by_what_is_stored(texts, recipe.scheme)
    assert grouped.summary.read == len(texts) + 1
    assert frame.where("_id = 'bare'").collect()[0]._dedup is None


def test_sealed_fingerprints_are_refused(recipe):
    sealed = replace(default_recipe(recipe.scheme), sealed="0123456789abcdef")
    with pytest.raises(ConfigError, match="sealed, and Spark gets no keys"):
        stored(None, "nowhere", "pages", sealed)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "damaged", [{"digest": 5}, {"supershingles": [1]}, {"shingles": "many"}, {"signature": ["a", "b"]}]
)
def test_parts_of_another_type_are_a_damaged_fingerprint(damaged, scheme):
    whole = {"scheme": "sf3-x", "digest": "sf3-x.en.3.abc", "supershingles": ["Aabcde"]}
    read = [_whole(one) for one in ({}, whole, whole | damaged)]
    assert read[0] is None
    columns = {name: pa.array([(one or {}).get(name) for one in read], kind) for name, kind in _TYPES.items()}
    (rows,) = _Reader(scheme, False, False)([pa.RecordBatch.from_pydict({"id": pa.array("abc"), **columns})])
    assert rows.column("state").to_pylist() == [UNSIGNED, FOREIGN, UNREADABLE]
