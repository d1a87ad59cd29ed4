from pathlib import Path

import pytest
from support.maintenance import FIELDS, pages, store

from shinglefold.canon import facts
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable, IndexMissing
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.model.recipe import with_never_differ

ALONE = DoctorOptions(workers=1)


@pytest.fixture
def signed(engine, pipeline) -> str:
    index_documents(engine, "pages", pages(120), pipeline, workers=1, properties=FIELDS)
    return "pages"


def change(engine, index, id_, **doc):
    result = engine.bulk([{"_op_type": "update", "_index": index, "_id": id_, "doc": doc}])
    assert not result.failures
    engine.refresh(index)


def test_an_index_that_is_well(engine, signed, pipeline):
    found = diagnose(engine, signed, pipeline, ALONE)
    assert found.healthy
    assert (found.documents, found.findings, found.listed) == (120, {"sound": 120}, {})
    assert (found.mapping, found.remarks) == ((), ())


def test_a_text_updated_without_its_fingerprint_is_stale(engine, signed, pipeline):
    change(engine, signed, "page-3", body=pages(1, seed=9)[0]["body"])
    found = diagnose(engine, signed, pipeline, ALONE)
    assert not found.healthy
    assert found.findings == {"sound": 119, "stale": 1}
    assert found.listed == {"stale": ["page-3"]}


def test_a_mapped_field_that_was_removed_is_not_hidden_from_the_client(engine, signed, pipeline):
    hits = engine.search(signed, {"query": {"match_all": {}}, "size": 120})["hits"]["hits"]
    for hit in hits:
        del hit["_source"]["title"]
    engine.bulk(
        {"_op_type": "index", **{name: hit[name] for name in ("_index", "_id", "_source")}} for hit in hits
    )
    engine.refresh(signed)
    found = diagnose(engine, signed, pipeline, ALONE)
    assert (found.findings, found.unseen) == ({"stale": 120}, ())


def test_other_fields_may_change(engine, signed, pipeline):
    change(engine, signed, "page-3", views=17)
    assert diagnose(engine, signed, pipeline, ALONE).healthy


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    ("stored", "finding"),
    [
        (None, "without_fingerprint"),
        ({"scheme": "sf1-other"}, "other_scheme"),
        ({"signature": None}, "damaged"),
        ({"signature": "AAAA"}, "damaged"),
        ({"supershingles": ["A"] * 5_000, "digest": "of another text"}, "damaged"),
        ({"digest": "of another text"}, "stale"),
        ({"supershingles": None}, "damaged"),
        ({"supershingles": ["AAAAAA"]}, "damaged"),
        ({"shingles": 5_000}, "damaged"),
    ],
)
def test_each_finding_is_reported_by_name(engine, signed, pipeline, stored, finding):
    change(engine, signed, "page-3", _dedup=stored)
    found = diagnose(engine, signed, pipeline, ALONE)
    assert found.listed == {finding: ["page-3"]}
    assert sum(found.findings.values()) == found.documents == 120


def test_facts_of_the_rules_of_another_version_are_found_and_made_again(engine, scheme, monkeypatch):
    definition = with_never_differ(default_definition(), "_dedup", ["numbers", "size"])
    pipeline = Pipeline.from_json(definition, scheme)
    with monkeypatch.context() as earlier_rules:
        earlier_rules.setattr(facts, "_normal_form", lambda text, classes: ["one"])
        documents = [{**page, "size": "42"} for page in pages(5)]
        index_documents(engine, "cards", documents, pipeline, workers=1, properties=FIELDS)
    found = diagnose(engine, "cards", pipeline, ALONE)
    assert (found.findings, found.healthy) == ({"other_facts": 5}, False)
    change(engine, "cards", "page-1", _dedup={"signature": None})
    assert diagnose(engine, "cards", pipeline, ALONE).findings == {"other_facts": 4, "damaged": 1}
    backfill(engine, "cards", pipeline, BackfillOptions(workers=1))
    assert diagnose(engine, "cards", pipeline, ALONE).findings == {"sound": 5}
    change(engine, "cards", "page-3", size="43")
    assert diagnose(engine, "cards", pipeline, ALONE).findings == {"sound": 4, "other_facts": 1}


def test_a_backfill_repairs_every_finding_it_can(engine, signed, pipeline):
    change(engine, signed, "page-1", _dedup=None)
    change(engine, signed, "page-2", _dedup={"scheme": "sf1-other"})
    change(engine, signed, "page-3", _dedup={"signature": None})
    change(engine, signed, "page-4", body="короче")
    change(engine, signed, "page-5", body=["не", "текст"])
    assert diagnose(engine, signed, pipeline, ALONE).findings["sound"] == 115
    backfill(engine, signed, pipeline, BackfillOptions(workers=1))
    found = diagnose(engine, signed, pipeline, ALONE)
    assert found.findings == {"sound": 119, "unreadable": 1}
    assert found.listed == {"unreadable": ["page-5"]}


def test_what_no_backfill_can_sign_is_not_left_to_one(engine, pipeline, unsigned):
    change(engine, unsigned, "page-5", title=["a list", "of titles"])
    found = diagnose(engine, unsigned, pipeline, ALONE)
    assert found.findings == {"without_fingerprint": found.documents - 1, "unreadable": 1}
    assert backfill(engine, unsigned, pipeline, BackfillOptions(workers=1)).counts.failed == 1
    found = diagnose(engine, unsigned, pipeline, ALONE)
    assert found.listed == {"unreadable": ["page-5"]}


def test_a_language_noted_after_it_was_found_is_no_change(engine, scheme):
    noting = {"set": {"field": "lang", "copy_from": "_dedup.lang", "override": False}}
    definition = default_definition()
    definition["processors"].append(noting)
    pipeline = Pipeline.from_json(definition, scheme)
    # Nothing is declared when it is indexed; read again, it declares what was found.
    quoted = {"id": "1", "body": f"{pages(1)[0]['body']} «Її їжак знайшов ґанок і м'яту під вікном»"}
    index_documents(engine, "mixed", [quoted], pipeline, workers=1, properties=FIELDS)
    assert engine.get("mixed", "1")["_source"]["lang"] == "ru"
    assert diagnose(engine, "mixed", pipeline, ALONE).healthy


def test_mappings_of_another_scheme_or_of_none_are_reported(engine, signed, scheme, pipeline):
    meta = {"shinglefold": scheme.with_options(values=84, groups=20).to_json()}
    engine.put_mappings(signed, {"_meta": meta})
    (told,) = diagnose(engine, signed, pipeline, ALONE).mapping
    assert told == f"the mappings name the scheme {meta['shinglefold']['id']}, the settings make {scheme.id}"
    engine.create_index("bare", {"properties": FIELDS}, {})
    store(engine, "bare", pages(2))
    found = diagnose(engine, "bare", pipeline, ALONE)
    assert "the mappings name no scheme (_meta.shinglefold)" in found.mapping
    assert "_dedup.signature is not mapped" in found.mapping
    assert found.findings == {"without_fingerprint": 2}


def test_a_missing_index_is_an_error(engine, pipeline):
    with pytest.raises(IndexMissing):
        diagnose(engine, "nowhere", pipeline, ALONE)


def test_damaged_files_of_an_index_are_named(engine, pipeline, unsigned, tmp_path: Path, monkeypatch):
    assert diagnose(engine, unsigned, pipeline, ALONE).documents
    engine.close()
    # As large as it may be: only the ends of files are looked at when it is opened.
    monkeypatch.setattr("shinglefold.engines.embedded.store.snapshots._CHECKED", 0)
    file = next((tmp_path / "engine" / unsigned / "tantivy").glob("*.store"))
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 4
    file.write_bytes(content)
    told = pytest.raises(EngineUnavailable, match=f"damaged: {file.name} has changed")
    with EmbeddedEngine(tmp_path / "engine", str.split) as again, told:
        diagnose(again, unsigned, pipeline, ALONE)
