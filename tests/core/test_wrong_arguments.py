"""What a caller hands in by mistake is refused where it is handed in, with words that say what to give."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import shinglefold
from shinglefold.canon import Canonicalizer, strip_html
from shinglefold.contracts.engine import Engine
from shinglefold.engines import Connection, load_connection, open_engine
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine
from shinglefold.errors import ConfigError, UnknownLanguage, UnsupportedQuery
from shinglefold.grouping import AsyncGate, Gate
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.report import make_report
from shinglefold.ingest import Fingerprinter, Pipeline, default_definition, index_documents, mappings, read
from shinglefold.ingest.index_mapping import default_recipe, ensure_index
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.writing.dead_letters import DeadLetters, replay
from shinglefold.ingest.writing.target_index import rebuild
from shinglefold.maintenance import BackfillOptions, DoctorOptions, backfill, diagnose
from shinglefold.maintenance.deletion import delete, plan_deletion
from shinglefold.maintenance.retry import retry
from shinglefold.maintenance.scan import Slice
from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan
from shinglefold.maintenance.statistics import statistics
from shinglefold.model.recipe import Recipe
from shinglefold.model.seal import Seal
from shinglefold.passages.alignment import find_passages
from shinglefold.registry import make_scheme
from shinglefold.rerank import (
    AsyncFoldedSearch,
    FoldedSearch,
    FoldOptions,
    Preference,
    Scope,
    collapse,
    duplicates,
)
from shinglefold.rerank.explanation import explain, matched_passages
from shinglefold.rerank.matching import MatchOptions
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch
from shinglefold.runtime.backoff import Backoff
from shinglefold.settings import load_settings
from shinglefold.testing.edits import edited, kinds_of


@dataclass
class Site:
    """An index of three documents, and what it was made with."""

    engine: Engine
    pipeline: Pipeline

    @property
    def scheme(self) -> Any:
        return self.pipeline.scheme

    def search(self, **options: Any) -> FoldedSearch:
        return FoldedSearch(self.engine, self.scheme, **options)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, canonicalizer: Canonicalizer) -> Iterator[Site]:
    pipeline = Pipeline.from_json(default_definition())
    with EmbeddedEngine(tmp_path_factory.mktemp("site"), canonicalizer) as engine:
        documents = [{"id": str(n), "title": f"Мост {n}", "body": f"Ремонт {n} моста"} for n in range(3)]
        index_documents(engine, "site", documents, pipeline, workers=1)
        yield Site(engine, pipeline)


#: What was meant as something else: what it does, and a part of what it is told.
WRONG: list[tuple[str, Callable[[Site], object], str]] = [
    # Engines and their addresses.
    ("an empty address", lambda _: open_engine(""), "address: expected a path that is not empty"),
    ("no address", lambda _: open_engine(None), "address: expected a path that is not empty, got None"),
    ("an engine to open", lambda s: open_engine(s.engine), "which only shinglefold.open takes"),
    (
        "an engine to set up",
        lambda s: shinglefold.setup(s.engine, "site"),
        "which only shinglefold.open takes",
    ),
    (
        "an engine to await",
        lambda s: asyncio.run(shinglefold.open_async(s.engine, "site")),
        "which only shinglefold.open takes",
    ),
    (
        "letters in a number",
        lambda s: shinglefold.open(s.engine, "site").index([], dead_letters=5),
        "dead_letters: expected a path that is not empty, got 5",
    ),
    (
        "a checkpoint in a number",
        lambda s: shinglefold.open(s.engine, "site").backfill(checkpoint=5),
        "checkpoint: expected a path that is not empty, got 5",
    ),
    (
        "more workers than cores",
        lambda s: shinglefold.open(s.engine, "site").index([], workers=5000),
        "workers (0 for one per core): expected a whole number of 0 to 1024, got 5000",
    ),
    ("a list as address", lambda _: open_engine(["x"]), "address: expected a path"),
    ("no folder", lambda _: EmbeddedEngine("", str.split), "path: expected a path that is not empty"),
    ("addresses as bytes", lambda _: load_connection(b"x"), "address: expected one"),
    ("one address as urls", lambda _: Connection("http://a:9200"), "load_connection(address) takes one"),
    ("a key as number", lambda _: Connection(("http://a:1",), api_key=31), "api_key: expected text, got int"),
    ("verify as text", lambda _: Connection(("http://a:1",), verify="no"), "verify: expected true or false"),
    ("a body as text", lambda s: s.engine.search("site", "мост"), "search: expected an object with query"),
    # Folded searches.
    ("an address to search", lambda s: FoldedSearch("http://a:1", s.scheme), "open it: open_engine"),
    ("nothing to search", lambda s: FoldedSearch(None, s.scheme), "open_engine (from shinglefold.engines)"),
    (
        "a preset to search by",
        lambda s: FoldedSearch(s.engine, "default"),
        "is not a Scheme; give that",
    ),
    ("no scheme to search by", lambda s: FoldedSearch(s.engine, None), "make_scheme"),
    (
        "a preset to await by",
        lambda s: AsyncFoldedSearch(s.engine, "default"),
        "is not a Scheme; give that",
    ),
    ("a preset to fold hits by", lambda _: collapse([], "default"), "is not a Scheme"),
    ("a canonicalizer as text", lambda s: Fingerprinter(s.scheme, "ru"), "Canonicalizer.of(scheme)"),
    ("a seal as key", lambda s: s.search(seal=b"0" * 32), "seal: expected Seal(key)"),
    ("a tiebreaker as truth", lambda s: s.search(tiebreaker=True), "tiebreaker: expected text"),
    ("a key of cursors as text", lambda s: s.search(cursor_key="secret"), "cursor_key: expected bytes"),
    ("no span", lambda s: s.search(keep_alive=5), "keep_alive: expected text"),
    ("an index as list", lambda s: s.search().search(["site"], {}), "index: expected text, got ['site']"),
    (
        "options as object",
        lambda s: s.search().search("site", {}, {"window": 5}),
        "options: expected FoldOptions",
    ),
    (
        "a body as text beside parameters",
        lambda s: s.search().search("site", "мост", routing="a"),
        "expected a search request, an object, got 'мост'",
    ),
    ("empty options", lambda s: s.search().search("site", {}, {}), "options: expected FoldOptions"),
    ("parameters as text", lambda s: s.search().search("site", {}, params="routing=a"), "params: expected"),
    ("no searches", lambda s: s.search().msearch(None), "searches: expected a list"),
    ("a name for hits", lambda s: collapse([], s.scheme, {"window": 5}), "options: expected FoldOptions"),
    ("a seal for hits", lambda s: collapse([], s.scheme, seal="x"), "seal: expected Seal(key)"),
    ("an answer for a hit", lambda s: duplicates(s.search().search("site", {})), "hit: expected one hit"),
    ("no hit", lambda _: duplicates(None), "hit: expected one hit"),
    ("no hit to explain", lambda s: explain(None, {}, s.scheme), "hit: expected a hit"),
    ("a preset to explain", lambda _: explain({}, {}, "default"), "'default' is not a Scheme"),
    (
        "a hit for its source",
        lambda _: matched_passages({"_source": {}}, {}, ["body"], list),
        'hit["_source"]',
    ),
    (
        "letters as fields",
        lambda _: matched_passages({}, {}, "body", list),
        "fields: expected a list of strings",
    ),
    (
        "a width of nothing",
        lambda _: find_passages([], [], width=0),
        "width: expected a whole number of 1 to 10",
    ),
    ("a scope as number", lambda _: Scope(5), "scope: expected text, got 5"),
    ("a span as text", lambda _: Scope("date", "7d"), "within (seconds): expected a number"),
    ("a value for values", lambda _: Preference("prefer", "host", "a.org"), "expected a list of strings"),
    ("members by name", lambda _: FoldOptions(inner_hits=["copies"]), "inner_hits: expected a tuple"),
    # Copies and passages.
    (
        "nothing wanted",
        lambda s: SimilarSearch(s.engine).find("site", None),
        "expected an id as text, (index, id)",
    ),
    (
        "three wanted",
        lambda s: SimilarSearch(s.engine).find("site", ("a", "b", "c")),
        "expected an id as text, (index, id)",
    ),
    (
        "a number wanted",
        lambda s: SimilarSearch(s.engine).find("site", 5),
        "expected an id as text, (index, id)",
    ),
    (
        "another's options",
        lambda s: SimilarSearch(s.engine).find("site", "1", FoldOptions()),
        "SimilarOptions",
    ),
    ("an id to look up", lambda s: SimilarSearch(s.engine).look_up("site", "abc"), "a list of fingerprints"),
    ("a filter alone", lambda _: SimilarOptions(filters={"term": {}}), "filters: expected a list"),
    ("filters as number", lambda _: MatchOptions(filters=5), "filters: expected a list"),
    # Documents in.
    (
        "a file for documents",
        lambda s: index_documents(s.engine, "new", "pages.jsonl", s.pipeline),
        "from shinglefold.ingest import read",
    ),
    (
        "one document",
        lambda s: index_documents(s.engine, "new", {"id": 1}, s.pipeline),
        "documents: expected",
    ),
    (
        "a definition",
        lambda s: index_documents(s.engine, "new", [], default_definition()),
        "Pipeline.from_json",
    ),
    ("an address to index", lambda s: index_documents("there", "new", [], s.pipeline), "open_engine"),
    (
        "properties as list",
        lambda s: index_documents(s.engine, "new", [], s.pipeline, properties=["a"]),
        "properties",
    ),
    (
        "letters of a field",
        lambda _: default_definition("_dedup", "body"),
        "fields: expected a list of strings",
    ),
    (
        "a preset for a scheme",
        lambda _: Pipeline.from_json(default_definition(), "default"),
        "is not a Scheme",
    ),
    ("a name of languages", lambda _: make_scheme("default", "ru"), "such as ['ru', 'zh']"),
    ("presets", lambda _: make_scheme(["default"]), "unknown preset"),
    ("languages for a scheme", lambda _: Canonicalizer.of(["ru"]), "is not a Scheme"),
    ("codes of languages", lambda _: Canonicalizer(["ru"]), "Canonicalizer.of(scheme) takes one"),
    ("no text", lambda s: s.pipeline.tools.canonicalizer.tokens(None), "a text: expected text, got None"),
    (
        "languages of a text",
        lambda s: s.pipeline.tools.canonicalizer.tokens("мост", ["ru"]),
        "language: expected a code",
    ),
    ("no markup", lambda _: strip_html(None), "html: expected text, got None"),
    ("texts that are none", lambda s: Fingerprinter(s.scheme).fingerprint([None]), "a text: expected text"),
    ("no texts", lambda s: Fingerprinter(s.scheme).fingerprint(5), "texts: expected a list of texts"),
    ("a preset to sign by", lambda _: Fingerprinter("default"), "'default' is not a Scheme"),
    ("a name to run", lambda s: list(s.pipeline.run("pages.jsonl")), "documents: expected a list"),
    ("options of reading", lambda _: read("-", {"format": "csv"}), "options: expected ReadOptions"),
    ("a header as text", lambda _: ReadOptions(header="no"), "header: expected true or false"),
    ("no letters", lambda _: list(replay(None)), "path: expected a path"),
    (
        "an empty file of letters",
        lambda _: DeadLetters(""),
        "dead_letters: expected a path that is not empty",
    ),
    ("fewer than no retries", lambda _: Backoff(-1), "retries: expected a whole number of at least 0"),
    ("mappings of a preset", lambda _: mappings("default"), "'default' is not a Scheme"),
    ("a scheme for a recipe", lambda s: ensure_index(s.engine, "new", s.scheme), "pipeline.recipe()"),
    ("nothing to build by", lambda s: rebuild(s.engine, "site", None), "build: expected"),
    ("mappings by name", lambda _: Recipe.of("site", "site"), "engine.mappings(index)"),
    ("a key as text", lambda _: Seal("0123456789abcdef"), "Seal.parse takes it as text"),
    ("settings as list", lambda _: load_settings(["a"]), "path: expected a path"),
    # Gates and groups.
    ("the name of a policy", lambda s: Gate(s.engine, "site", "refuse"), 'such as Policy("refuse")'),
    ("an empty policy", lambda s: Gate(s.engine, "site", {}), 'such as Policy("refuse")'),
    ("an address for a gate", lambda _: Gate("there", "site"), "open_engine"),
    ("no lease", lambda s: Gate(s.engine, "site", lease=0), "lease (seconds): expected a number above 0"),
    ("letters of a scope", lambda _: RegroupOptions(scope="host"), "scope: expected a list of strings"),
    ("a dry run as text", lambda _: RegroupOptions(dry_run="no"), "dry_run: expected true or false"),
    ("no options of regrouping", lambda s: regroup(s.engine, "site", None), "RegroupOptions(…)"),
    (
        "names of a report",
        lambda s: make_report(s.engine, "site", {"host": "url"}),
        "names: expected ReportFields",
    ),
    # Maintenance.
    (
        "letters of an index",
        lambda s: SetupRequest(default_recipe(s.scheme), indices="pages"),
        "indices: expected a list",
    ),
    ("a preset to set up", lambda _: SetupRequest("default", indices=("a",)), "pipeline.recipe()"),
    ("no plan to carry out", lambda s: carry_out(s.engine, None), "what make_plan returns"),
    ("no request", lambda s: make_plan(s.engine, None), "request: expected SetupRequest"),
    ("letters of an id", lambda s: plan_deletion(s.engine, "site", "012"), "ids: expected a list of strings"),
    ("no ids", lambda s: plan_deletion(s.engine, "site", []), "leave ids out to delete the whole index"),
    ("no plan to delete", lambda s: delete(s.engine, None), "what plan_deletion returns"),
    ("workers as text", lambda _: BackfillOptions(workers="2"), "workers: expected a whole number"),
    ("a part as text", lambda _: DoctorOptions(part="1/2"), "part: expected Slice(number, of)"),
    ("half a part", lambda _: Slice(1, 2.5), "of: expected a whole number"),
    ("a definition to backfill", lambda s: backfill(s.engine, "site", {}), "Pipeline.from_json"),
    ("a definition to examine", lambda s: diagnose(s.engine, "site", {}), "Pipeline.from_json"),
    ("no letters to retry", lambda s: retry(s.engine, "site", "", s.pipeline), "path: expected a path"),
    ("no pattern", lambda s: statistics(s.engine, None), "pattern: expected text"),
    # Edits.
    ("no share", lambda _: edited("a b", "words swapped", "half", "en"), "share: expected a number"),
    ("a language of edits", lambda _: kinds_of("xx"), "unknown language 'xx'"),
]


@pytest.mark.parametrize(("wrong", "told"), [(w, t) for _, w, t in WRONG], ids=[name for name, _, _ in WRONG])
def test_what_was_meant_as_something_else_is_refused_with_what_to_give(
    site: Site, wrong: Callable[[Site], object], told: str
) -> None:
    # Engines refuse what they are asked as servers do, all else is a matter of options.
    with pytest.raises((ConfigError, UnsupportedQuery)) as refused:
        wrong(site)
    assert told in str(refused.value)


def test_an_address_is_not_quoted_as_it_may_hold_a_password() -> None:
    with pytest.raises(ConfigError) as refused:
        SimilarSearch("https://user:secret@localhost:9200")
    assert "secret" not in str(refused.value)


def test_engines_that_block_and_that_are_awaited_are_told_apart(site: Site, tmp_path: Path) -> None:
    awaited = AsyncEmbeddedEngine(tmp_path, site.pipeline.tools.canonicalizer)
    for wrong in (lambda: FoldedSearch(awaited, site.scheme), lambda: Gate(awaited, "site")):
        with pytest.raises(ConfigError, match="methods of AsyncEmbeddedEngine are awaited"):
            wrong()
    with pytest.raises(ConfigError, match="EmbeddedEngine blocks; give one whose methods are awaited"):
        asyncio.run(AsyncFoldedSearch(site.engine, site.scheme).search("site", {}))


def test_an_awaited_gate_takes_no_name_of_a_policy(site: Site, tmp_path: Path) -> None:
    engine = AsyncEmbeddedEngine(tmp_path, site.pipeline.tools.canonicalizer)
    with pytest.raises(ConfigError, match="such as Policy"):
        asyncio.run(AsyncGate.open(engine, "site", "refuse"))


def test_documents_of_a_gate_are_objects(site: Site) -> None:
    with Gate(site.engine, "site") as gate:
        for wrong in (None, "a-1", ["a-1"]):
            with pytest.raises(ConfigError, match="document: expected an object of its fields"):
                gate.add(wrong)
        with pytest.raises(ConfigError, match="documents: expected a list"):
            gate.add_all({"id": "a-1"})


def test_a_language_that_is_no_code_is_unknown(site: Site) -> None:
    with pytest.raises(UnknownLanguage, match="unknown language"):
        make_scheme("default", [5])


def test_what_was_refused_made_no_index(site: Site) -> None:
    assert [one.name for one in site.engine.indices()] == ["site"]
