"""What is signed is what is stored: signing changes no other field, and a second run changes nothing."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

import shinglefold
from shinglefold.canon import Canonicalizer
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import InputError
from shinglefold.grouping import Gate, Policy
from shinglefold.ingest import Pipeline, default_definition, index_documents, mappings
from shinglefold.maintenance import BackfillOptions, Diagnosis, DoctorOptions, backfill, diagnose
from shinglefold.model.scheme import Scheme

_PIECES = ["<b>", "</b>", "<config>", "&lt;x&gt;", "&amp;lt;y&amp;gt;", "<script>z</script>", "\n", " "]
_WORDS = "снег выпал город the quick brown fox їжак знайшов ґанок 北京 大学 один два три чотири п'ять шість"
_TEXTS = st.lists(st.sampled_from([*_PIECES, *_WORDS.split()]), max_size=40).map(" ".join)
_DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "title": _TEXTS,
        "body": _TEXTS,
        "format": st.sampled_from(["html", "text", "HTML"]),
        "lang": st.sampled_from(["ru", "uk", "xx", ""]),
        "number": st.integers(0, 9),
    },
)
#: Steps that change their own output, each of which a user's pipeline may have before the fingerprint.
_STEPS = [
    {"html_strip": {"field": "body", "ignore_missing": True}},
    {"gsub": {"field": "body", "pattern": "снег", "replacement": "снег снег", "ignore_missing": True}},
    {"set": {"field": "body", "value": "{{{title}}} {{{body}}}"}},
    {"append": {"field": "tags", "value": "more"}},
    {"lowercase": {"field": "title", "ignore_missing": True}},
    {"set": {"if": "ctx.number == 3", "field": "title", "value": "<i>{{{title}}}</i>"}},
]


def _is_sound(found: Diagnosis) -> bool:
    """Return whether nothing is wrong but that no document has text, which may be so here."""
    return replace(found, empty=0).healthy


@pytest.fixture
def engine(tmp_path: Path, canonicalizer: Canonicalizer) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path / "engine", canonicalizer) as opened:
        yield opened


def bare(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("_dedup", "_dedup", "_id")}


def sources(engine: Any, index: str) -> dict[str, dict[str, Any]]:
    engine.refresh(index)
    hits = engine.search(index, {"size": 1000})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def by_index(engine: Any, index: str, documents: list[dict[str, Any]], pipeline: Pipeline) -> None:
    assert index_documents(engine, index, documents, pipeline, workers=1).failed == 0


def by_gate(engine: Any, index: str, documents: list[dict[str, Any]], pipeline: Pipeline) -> None:
    engine.create_index(index, mappings(pipeline.scheme), {})
    with Gate(engine, index, Policy(), pipeline=pipeline) as gate:
        gate.add_all(documents)


def by_backfill(engine: Any, index: str, documents: list[dict[str, Any]], pipeline: Pipeline) -> None:
    engine.create_index(index, mappings(pipeline.scheme), {})
    engine.bulk({"_index": index, "_id": one["_id"], "_source": bare(one)} for one in documents)
    assert backfill(engine, index, pipeline, BackfillOptions(workers=1)).counts.failed == 0


@pytest.mark.long(every=3)
@pytest.mark.parametrize("write", [by_index, by_gate, by_backfill])
def test_no_way_in_changes_a_field_that_is_not_ours(engine, scheme: Scheme, write: Callable[..., None]):
    pipeline = Pipeline.from_json(default_definition(), scheme)
    made = iter(range(1000))

    @settings(max_examples=examples(15))
    @given(st.lists(_DOCUMENTS, min_size=1, max_size=5))
    def check(given: list[dict[str, Any]]) -> None:
        index = f"index-{next(made)}"
        documents = [{"_id": str(number), **one} for number, one in enumerate(given)]
        write(engine, index, documents, pipeline)
        stored = sources(engine, index)
        assert write is by_gate or len(stored) == len(documents)
        for id_, source in stored.items():
            assert "_dedup" in source
            assert bare(source) == given[int(id_)]
        assert _is_sound(diagnose(engine, index, pipeline, DoctorOptions(workers=1)))
        engine.delete_index(index)

    check()


def test_what_a_pipeline_of_the_user_stored_is_not_stale(engine, scheme):
    made = iter(range(1000))

    @settings(max_examples=examples(25))
    @given(st.lists(_DOCUMENTS, min_size=1, max_size=5), st.lists(st.sampled_from(_STEPS), max_size=3))
    def check(given: list[dict[str, Any]], steps: list[dict[str, Any]]) -> None:
        signing = {"supershingle": {"fields": ["title", "body"], "language_field": "lang"}}
        pipeline = Pipeline.from_json({"processors": [*steps, signing]}, scheme)
        index = f"index-{next(made)}"
        assert index_documents(engine, index, given, pipeline, workers=1).failed == 0
        assert _is_sound(diagnose(engine, index, pipeline, DoctorOptions(workers=1)))
        counts = backfill(engine, index, pipeline, BackfillOptions(workers=1)).counts
        assert (counts.unchanged, counts.updated) == (len(given), 0)
        engine.delete_index(index)

    check()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_documents_are_signed_as_the_index_would_sign_them(tmp_path: Path, workers: int):
    shinglefold.setup(tmp_path, "pages", text=["title", "body"], languages=["ru"])
    given = [
        {
            "_id": str(number),
            "title": "Снег",
            "format": "html",
            "body": f"<p>{_WORDS} <config> &lt;x&gt; {number}",
        }
        for number in range(1_200)
    ]
    before = json.loads(json.dumps(given))
    with shinglefold.open(tmp_path, "pages") as pages:
        signed = list(pages.sign(iter(given), workers=workers))
        assert given == before
        assert [{**bare(one), "_id": one["_id"]} for one in signed] == given
        assert {one["_dedup"]["scheme"] for one in signed} == {pages.recipe.scheme.id}
        pages.engine.bulk(
            {"_index": "pages", "_id": one["_id"], "_source": {**bare(one), "_dedup": one["_dedup"]}}
            for one in signed
        )
        pages.engine.refresh("pages")
        assert pages.doctor().healthy
        assert list(pages.sign(signed[:3])) == signed[:3]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"_id": "odd", "body": 7}, "field [body] is a number"),
        ({"_id": "odd", "_dedup": {"note": "mine"}}, "holds 'note', no fingerprint"),
        ({"_id": "odd", "body": "x" * 20_000_001}, "characters, and a text may have at most"),
    ],
)
def test_a_document_that_cannot_be_signed_is_named_after_those_before_it(
    tmp_path: Path, document: dict[str, Any], reason: str
):
    shinglefold.setup(tmp_path, "pages", text=["title", "body"])
    with shinglefold.open(tmp_path, "pages") as pages:
        signed = pages.sign([{"body": "one"}, document, {"body": "two"}])
        assert next(signed)["body"] == "one"
        with pytest.raises(InputError, match=r"documents\[1\], 'odd', can't be signed") as told:
            next(signed)
        assert reason in str(told.value)
