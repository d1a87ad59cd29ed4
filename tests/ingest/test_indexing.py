import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from shinglefold import __version__
from shinglefold.contracts.engine import BulkFailure, BulkResult, Engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, EngineUnavailable, RecipeMismatch, SchemeMismatch
from shinglefold.ingest import Pipeline, default_definition, index_documents, mappings, read
from shinglefold.ingest.writing import target_index
from shinglefold.ingest.writing.accounting import Progress, Summary
from shinglefold.ingest.writing.dead_letters import replay
from shinglefold.model.recipe import Recipe
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Fingerprint
from shinglefold.runtime.backoff import Backoff

Make = Callable[..., Pipeline]
TEXT = "Сегодня в городе выпал первый снег, и стало совсем тихо, только вороны кричали над рекой"


@pytest.fixture
def pages(scheme: Scheme) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme)


class Moody:
    """A real engine with a list of moods, one for each bulk request."""

    def __init__(self, engine: Engine, *moods: Callable[[list[Any]], BulkResult | None]) -> None:
        self._engine = engine
        self._moods = list(moods)
        self.requests: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def bulk(self, actions: Iterable[Mapping[str, Any]]) -> BulkResult:
        given = list(actions)
        self.requests.append(len(given))
        answer = self._moods.pop(0)(given) if self._moods else None
        return self._engine.bulk(given) if answer is None else answer


def busy(status: int) -> Callable[[list[Any]], BulkResult]:
    return lambda given: BulkResult(0, tuple(BulkFailure(dict(one), status, "busy") for one in given))


def away(_: list[Any]) -> BulkResult:
    raise EngineUnavailable("no answer; is it running?")


def adds_up(summary: Summary) -> bool:
    return summary.read == summary.indexed + summary.dropped + summary.failed


def count(engine: Engine, index: str) -> int:
    return engine.search(index, {"query": {"match_all": {}}, "size": 0, "track_total_hits": True})["hits"][
        "total"
    ]["value"]


def sources(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"_id": str(n), "title": f"Заметка {n}", "body": f"{TEXT} {n}"} for n in range(start, start + count)
    ]


QUICK = Backoff(retries=3, first=0.01)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_documents_end_in_the_index_with_their_fingerprints(
    engine: EmbeddedEngine, pages: Pipeline, scheme: Scheme, workers: int
):
    seen: list[Progress] = []
    summary = index_documents(engine, "notes", sources(2_500), pages, workers=workers, progress=seen.append)
    assert (summary.read, summary.indexed, summary.dropped, summary.failed) == (2_500, 2_500, 0, 0)
    assert count(engine, "notes") == 2_500
    stored = engine.get("notes", "7")["_source"]
    assert stored.keys() == {"title", "body", "_dedup"}
    assert Fingerprint.from_field(stored["_dedup"]).scheme == scheme.id == summary.scheme
    assert summary.languages == {"ru": 2_500}
    assert {"read", "canon", "sketch", "index", "commit", "total"} <= summary.seconds.keys()
    assert [step.read for step in seen] == sorted(step.read for step in seen)
    assert seen[-1].indexed == 2_500
    json.dumps(summary.to_json())


def test_the_mapping_keeps_the_recipe_and_the_field(engine: EmbeddedEngine, pages: Pipeline, scheme: Scheme):
    index_documents(engine, "i", [{"body": TEXT}], pages, workers=1, properties={"host": {"type": "keyword"}})
    made = engine.mappings("i")
    noted = made["_meta"]["shinglefold"]
    assert noted.items() >= json.loads(json.dumps(scheme.to_json())).items()
    assert (noted["field"], noted["fields"], noted["product"]) == ("_dedup", ["title", "body"], __version__)
    assert noted["pipeline"]["processors"][-1]["supershingle"]["language_field"] == "lang"
    assert Recipe.of(made, "i") == pages.recipe()
    assert len(json.dumps(noted)) < 1_700
    assert made["properties"]["host"] == {"type": "keyword"}
    stored = made["properties"]["_dedup"]["properties"]
    assert stored["supershingles"] == {"type": "keyword", "doc_values": False, "norms": True}
    assert mappings(scheme, "a.b")["properties"]["a"]["properties"]["b"]["properties"]["scheme"]


def test_an_index_of_another_scheme_is_refused_with_both_names_and_the_remedy(
    engine: EmbeddedEngine, pages: Pipeline, scheme: Scheme
):
    other = scheme.with_options(values=84)
    engine.create_index("old", mappings(other), {})
    with pytest.raises(SchemeMismatch) as told:
        index_documents(engine, "old", sources(1), pages, workers=1)
    for part in (scheme.id, other.id, "'old'", "index all documents again"):
        assert part in str(told.value)


def test_an_index_that_was_not_made_for_fingerprints_is_refused(
    engine: EmbeddedEngine, pages: Pipeline, scheme: Scheme
):
    engine.create_index("plain", {"properties": {}}, {})
    with pytest.raises(ConfigError, match="not made for fingerprints"):
        index_documents(engine, "plain", sources(1), pages, workers=1)
    engine.create_index("other-field", mappings(scheme, "copies"), {})
    with pytest.raises(RecipeMismatch, match="field copies, not _dedup"):
        index_documents(engine, "other-field", sources(1), pages, workers=1)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_bad_input_is_counted_and_kept_with_its_lines(
    engine: EmbeddedEngine, pages: Pipeline, tmp_path: Path, workers: int
):
    lines = [
        json.dumps({"id": "good", "body": TEXT}),
        "{broken",
        json.dumps({"id": "number", "body": 5}),
        json.dumps({"id": "list", "body": ["a"]}),
        json.dumps({"id": "surrogate", "body": f"\ud800{TEXT}"}),
        json.dumps({"id": "nul", "body": f"{TEXT}\0{TEXT}"}),
        json.dumps({"id": "empty", "body": ""}),
        json.dumps({"id": "word", "body": "слово"}),
        json.dumps({"id": "html", "format": "html", "body": f"<p><b>{TEXT}</i><div"}),
        json.dumps({"id": "long", "body": "щ" * 10_000_000}),
        json.dumps({"id": "klingon", "lang": "tlh", "body": TEXT}),
        json.dumps({"id": ["x"], "body": TEXT}),
        "[1, 2]",
    ]
    path, dead = tmp_path / "in.jsonl", tmp_path / "dead.jsonl"
    path.write_text("\n".join(lines))
    summary = index_documents(engine, "i", read(path), pages, dead_letters=dead, workers=workers)
    assert adds_up(summary)
    assert (summary.read, summary.indexed, summary.failed) == (13, 8, 5)
    assert summary.counts["replaced"] == 1
    assert summary.counts["unknown_language"] == 1
    assert summary.counts["without_signature"] == 3
    letters = [json.loads(line) for line in dead.read_text().splitlines()]
    assert [(one["line"], one["stage"]) for one in letters] == [
        (2, "read"),
        (3, "pipeline"),
        (4, "pipeline"),
        (12, "read"),
        (13, "read"),
    ]
    assert sum(summary.reasons.values()) == 5
    assert summary.dead_letters == str(dead)
    for name in ("empty", "word", "long"):
        assert "signature" not in engine.get("i", name)["_source"]["_dedup"]
    assert engine.get("i", "surrogate")["_source"]["body"].startswith("\ufffd")
    assert engine.get("i", "klingon")["_source"]["_dedup"]["lang"] == "ru"


def test_dead_letters_can_be_indexed_once_the_pipeline_is_corrected(
    engine: EmbeddedEngine, make_pipeline: Make, tmp_path: Path
):
    strict = make_pipeline({"fail": {"message": "no"}})
    dead = tmp_path / "dead.jsonl"
    index_documents(engine, "i", sources(3), strict, dead_letters=dead, workers=1)
    mended = make_pipeline({"supershingle": {"field": "body"}})
    summary = index_documents(engine, "i", replay(dead), mended, workers=1)
    assert (summary.indexed, summary.failed) == (3, 0)
    assert engine.get("i", "1")["_source"]["title"] == "Заметка 1"


def test_dropped_documents_are_counted(engine: EmbeddedEngine, make_pipeline: Make):
    odd = make_pipeline({"drop": {"if": "ctx.odd"}})
    documents = [{"_id": str(n), "odd": n % 2 == 1} for n in range(11)]
    summary = index_documents(engine, "i", documents, odd, workers=1)
    assert (summary.read, summary.indexed, summary.dropped) == (11, 6, 5)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_the_engine_is_too_busy_for_is_sent_again(engine: EmbeddedEngine, pages: Pipeline, status: int):
    moody = Moody(engine, busy(status), busy(status))
    summary = index_documents(moody, "i", sources(5), pages, workers=1, backoff=QUICK)
    assert (summary.indexed, summary.failed, summary.counts["sent_again"]) == (5, 0, 10)
    assert moody.requests == [5, 5, 5]


def test_only_what_was_refused_is_sent_again_or_kept(engine: EmbeddedEngine, pages: Pipeline, tmp_path: Path):
    def some(given: list[Any]) -> BulkResult:
        wrong, late = given[1], given[3]
        engine.bulk([given[0], given[2], given[4]])
        return BulkResult(3, (BulkFailure(wrong, 400, "bad mapping"), BulkFailure(dict(late), 429, "busy")))

    dead = tmp_path / "dead.jsonl"
    moody = Moody(engine, some)
    summary = index_documents(moody, "i", sources(5), pages, workers=1, backoff=QUICK, dead_letters=dead)
    assert moody.requests == [5, 1]
    assert (summary.indexed, summary.failed) == (4, 1)
    (letter,) = replay(dead)
    assert letter.document == sources(5)[1]
    assert summary.reasons == {"400: bad mapping": 1}


def test_an_engine_that_stays_busy_fails_the_documents_in_the_end(engine: EmbeddedEngine, pages: Pipeline):
    moody = Moody(engine, *[busy(429)] * 4)
    summary = index_documents(moody, "i", sources(3), pages, workers=1, backoff=QUICK)
    assert (summary.indexed, summary.failed, summary.reasons) == (0, 3, {"429: busy": 3})


def test_an_engine_that_comes_back_is_waited_for(engine: EmbeddedEngine, pages: Pipeline):
    summary = index_documents(Moody(engine, away, away), "i", sources(3), pages, workers=1, backoff=QUICK)
    assert (summary.indexed, summary.failed, summary.stopped) == (3, 0, "")


def lost(engine: EmbeddedEngine) -> Callable[[list[Any]], BulkResult]:
    def answer(given: list[Any]) -> BulkResult:
        engine.bulk(given)
        raise EngineUnavailable("the answer came too late")

    return answer


def test_documents_without_ids_are_stored_once_however_often_they_are_sent(
    engine: EmbeddedEngine, pages: Pipeline
):
    documents = [{"text": f"{TEXT} {n}"} for n in range(3)]
    moody = Moody(engine, lost(engine), lost(engine))
    index_documents(moody, "i", documents, pages, workers=1, backoff=QUICK)
    assert count(engine, "i") == 3


def test_what_a_data_stream_stored_already_under_an_id_made_here_is_no_conflict(
    engine: EmbeddedEngine, pages: Pipeline, monkeypatch
):
    documents = [{"_id": "given", "text": TEXT}, *({"text": f"{TEXT} {n}"} for n in range(3))]
    index_documents(engine, "i", documents[:1], pages, workers=1)
    monkeypatch.setattr(target_index, "is_append_only", lambda *_: True)
    moody = Moody(engine, lost(engine))
    summary = index_documents(moody, "i", documents, pages, workers=1, backoff=QUICK)
    assert (summary.indexed, summary.failed, count(engine, "i")) == (3, 1, 4)


def test_an_engine_that_is_gone_ends_the_run_with_numbers_that_add_up(
    engine: EmbeddedEngine, pages: Pipeline, tmp_path: Path
):
    dead = tmp_path / "dead.jsonl"
    moody = Moody(engine, lambda _: None, *[away] * 4)
    documents = sources(2_500)
    summary = index_documents(moody, "i", documents, pages, workers=1, backoff=QUICK, dead_letters=dead)
    assert "is it running" in summary.stopped
    assert adds_up(summary)
    assert (summary.indexed, summary.failed) == (1_000, 1_000)
    assert [record.document["_id"] for record in replay(dead)] == [str(n) for n in range(1_000, 2_000)]


def test_an_error_in_the_input_still_commits_what_came_before(engine: EmbeddedEngine, pages: Pipeline):
    def breaking() -> Iterator[dict[str, Any]]:
        yield from sources(1_200)
        raise ValueError("from outside")

    with pytest.raises(ValueError, match="from outside"):
        index_documents(engine, "i", breaking(), pages, workers=1)
    assert count(engine, "i") == 1_000


def test_things_that_are_no_documents_are_failures(engine: EmbeddedEngine, pages: Pipeline):
    summary = index_documents(engine, "i", [{"body": TEXT}, 5, {"id": []}], pages, workers=1)  # type: ignore[list-item]
    assert (summary.read, summary.indexed, summary.failed) == (3, 1, 2)


def test_indexing_again_replaces(engine: EmbeddedEngine, pages: Pipeline):
    for _ in range(2):
        index_documents(engine, "i", sources(10), pages, workers=1)
    assert count(engine, "i") == 10


@pytest.mark.long
@pytest.mark.parametrize("megabytes", [10, pytest.param(30, marks=pytest.mark.long)])
def test_a_document_of_thirty_megabytes_is_indexed(engine: EmbeddedEngine, pages: Pipeline, megabytes: int):
    body = (TEXT + "\n") * (megabytes * 1_000_000 // len(TEXT.encode()))
    # Not searchable: making it so is the engine's part, and takes longer than all the rest.
    unsearchable = {"body": {"type": "text", "index": False}}
    summary = index_documents(
        engine, "i", [{"_id": "1", "body": body}, *sources(1)], pages, workers=2, properties=unsearchable
    )
    assert (summary.indexed, summary.failed) == (2, 0)
    assert summary.counts.get("without_signature", 0) == 0
