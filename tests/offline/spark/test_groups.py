"""Signing and grouping on Spark: the same bytes and the same groups as on one machine."""

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.copied_texts import copied_texts, groups_by_what_is_stored

from shinglefold.cli.main import main
from shinglefold.errors import ConfigError, InputError, SchemeMismatch
from shinglefold.ingest.fingerprinter import Fingerprinter
from shinglefold.offline.sign.parquet import print_type
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark import Bounds, GroupOptions, groups, sign
from shinglefold.settings import load_settings

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
    return Signer(scheme, SignOptions(FIELDS)).signed(plain, SignTally())


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
