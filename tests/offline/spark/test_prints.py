"""Stored fingerprints are read at once or one by one, to the same rows; what can't be trusted is told."""

import numpy as np
import pyarrow as pa
import pytest

from shinglefold.errors import ConfigError
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.offline.sign.parquet import print_type
from shinglefold.offline.spark.candidate_pairs import _firsts
from shinglefold.offline.spark.fingerprint_rows import _Reader

pytestmark = pytest.mark.usefixtures("installed")

TEXTS = [
    "Сонце зійшло над морем, і рибалки вийшли на берег лагодити сіті",
    "The sun rose over the sea, and fishermen came ashore to mend their nets",
    "The sun rose over the sea, and fishermen came ashore to mend their nets",
    "two words",
    "one",
    "",
]


def batch(fields):
    column = pa.array(fields, print_type(pa))
    names = ("digest", "supershingles", "signature")
    # Without a fingerprint there are no parts of it.
    parts = dict(zip((part.name for part in column.type), column.flatten(), strict=True))
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array([str(place) for place in range(len(fields))]),
            **{name: parts[name] for name in names},
        }
    )


@pytest.fixture(scope="module")
def made(scheme):
    return [one.to_field() for one in Fingerprinter(scheme).fingerprint(TEXTS)]


def rows(scheme, fields):
    (found,) = _Reader(scheme, False, False)([batch(fields)])
    return found.to_pylist()


def test_documents_without_a_signature_keep_their_digest(scheme, made):
    found = rows(scheme, made)
    assert [row["state"] for row in found] == [0, 0, 0, 1, 1, 1]
    assert [bool(row["digest"]) for row in found] == [True, True, True, True, False, False]
    assert found[1]["digest"] == found[2]["digest"]
    assert found[1]["sketch"] == found[2]["sketch"] != found[0]["sketch"]
    assert [len(row["keys"]) for row in found] == [21, 21, 21, 0, 0, 0]


def test_rows_out_of_the_ordinary_change_nothing_for_the_others(scheme, made):
    whole = rows(scheme, made)
    one_by_one = rows(scheme, [*made, None])
    assert one_by_one[:-1] == whole
    assert one_by_one[-1]["state"] == 1


@pytest.mark.parametrize(
    ("state", "change"),
    [
        (2, lambda one: one | {"signature": "?" * len(one["signature"])}),
        (2, lambda one: one | {"signature": one["signature"][:-4]}),
        (2, lambda one: one | {"supershingles": one["supershingles"][:-1]}),
        (2, lambda one: one | {"supershingles": ["x"] * 21}),
        (2, lambda one: one | {"digest": None}),
        (2, lambda one: one | {"digest": one["digest"] + ".c2VhbA"}),
        (3, lambda one: one | {"digest": one["digest"].replace("sf3-", "sf3-0"), "scheme": None}),
    ],
    ids=["no base64", "too short", "a keyword gone", "no keywords", "no digest", "sealed", "another scheme"],
)
def test_what_can_not_be_trusted_is_told_and_compared_with_nothing(scheme, made, state, change):
    found = rows(scheme, [*made, change(made[0])])
    assert found[:-1] == rows(scheme, made)
    assert (found[-1]["state"], found[-1]["digest"], found[-1]["keys"]) == (state, "", [])


def test_signatures_with_padding_are_read_too(scheme):
    scheme = scheme.with_options(values=340)
    made = [one.to_field() for one in Fingerprinter(scheme).fingerprint(TEXTS[1:4])]
    assert made[0]["signature"].endswith("=")
    found = rows(scheme, made)
    assert [row["state"] for row in found] == [0, 0, 1]
    assert found == rows(scheme, [*made, None])[:-1]


def test_a_document_without_an_id_is_refused(scheme, made):
    one = batch(made)
    nameless = one.set_column(0, "id", pa.nulls(len(made), pa.string()))
    with pytest.raises(ConfigError, match="no id"):
        list(_Reader(scheme, False, False)([nameless]))


def test_numbers_go_on_from_batch_to_batch(scheme, made):
    found = list(_Reader(scheme, False, False)([batch(made), batch(made)]))
    assert [number for one in found for number in one.column("number").to_pylist()] == list(range(12))


@pytest.mark.parametrize("cut", [1, 2, 3, 100])
def test_exact_copies_have_one_first_and_one_leader_a_sketch(cut):
    texts = ["a", "a", "a", "a", "b", "c", "c"]
    sketches = [1, 1, 1, 2, 1, 5, 6]
    signatures = [bytes([place]) for place in range(7)]
    whole = pa.RecordBatch.from_pydict(
        {
            "number": pa.array(np.arange(10, 17)),
            "digest": pa.array(texts),
            "sketch": pa.array(sketches, pa.int64()),
            "signature": pa.array(signatures, pa.binary()),
        }
    )
    found = [
        row for one in _firsts([whole.slice(at, cut) for at in range(0, 7, cut)]) for row in one.to_pylist()
    ]
    assert [row["first"] for row in found] == [10, 10, 10, 10, 14, 15, 15]
    assert [row["leads"] for row in found] == [True, False, False, True, True, True, True]
    assert [row["signature"] for row in found] == [b"\0", None, None, b"\3", b"\4", b"\5", b"\6"]
