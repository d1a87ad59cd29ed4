"""What shinglefold stores changes no answer of a query that names no field, and shows in no highlight."""

from dataclasses import replace

import pytest
from support.maintenance import pages, store

from shinglefold.ingest import Pipeline, default_definition
from shinglefold.maintenance import BackfillOptions, backfill
from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan
from shinglefold.settings import Settings

pytestmark = pytest.mark.newest

FIELD = Settings().field
TEXTS = {
    "title": {"type": "text"},
    "body": {"type": "text"},
    "rank": {"type": "long"},
    "lang": {"type": "keyword"},
}
#: Words, values and patterns that stored fingerprints and groups hold: languages, schemes, numbers, flags.
WORDS = ("ru", "en", "und", "true", "7", "30", "287", "9223372036854775807")
PATTERNS = ("r*", "s*", "sf3*", "0*", "*u", "*a*", "r?", "?*", "ri~", "/r./", "/[a-z0-9.]+/", "0??????????")
RANGES = ("[1 TO 99999999]", "{* TO 8]", "[a TO zz]", "[* TO *]", "*")


def strings():
    return [*WORDS, *PATTERNS, *RANGES, f'"{WORDS[0]}"', "ru AND true", "-ru", "NOT true"]


def queries():
    """Every kind of query that may name no field."""
    yield from ({"query_string": {"query": one}} for one in strings())
    yield from ({"query_string": {"query": one, "fields": ["*"], "lenient": True}} for one in PATTERNS)
    yield from ({"query_string": {"query": one, "analyzer": "keyword"}} for one in PATTERNS)
    yield from ({"simple_query_string": {"query": one}} for one in strings())
    kinds = ("best_fields", "most_fields", "cross_fields", "phrase", "phrase_prefix", "bool_prefix")
    for kind in kinds:
        yield from ({"multi_match": {"query": one, "type": kind, "lenient": True}} for one in WORDS)
    yield from ({"multi_match": {"query": one, "fuzziness": 2, "lenient": True}} for one in WORDS)


def answers(engine, index, stored_values):
    """Return the hits of each query by rank, as scores count earlier versions, and what highlights show."""
    found = {}
    more = [{kind: {"query": one}} for one in stored_values for kind in ("query_string", "multi_match")]
    highlight = {"fields": {"*": {}}}
    searches = [
        (index, {"query": query, "size": 100, "_source": False, "sort": ["rank"], "highlight": highlight})
        for query in [*queries(), *more]
    ]
    for begin in range(0, len(searches), 100):
        part = searches[begin : begin + 100]
        for (_, body), answer in zip(part, engine.msearch(part), strict=True):
            hits = str(answer) if isinstance(answer, Exception) else answer["hits"]["hits"]
            if not isinstance(hits, str):
                hits = [(hit["_id"], hit.get("highlight")) for hit in hits]
            found[str(body["query"])] = hits
    return found


def test_no_query_without_fields_finds_or_shows_what_setup_and_backfill_store(engine, new_index, scheme):
    index = new_index({"properties": TEXTS}, {"number_of_shards": 1, "number_of_replicas": 0})
    texts = [{**page, "rank": number} for number, page in enumerate(pages(30))]
    texts[3]["body"] += " ru true 287 sf3 0"
    store(engine, index, [{name: one[name] for name in ("id", *TEXTS)} for one in texts])
    pipeline = Pipeline.from_json(default_definition(FIELD), scheme)
    recipe = replace(pipeline.recipe(FIELD), groups=True)
    (made,) = [one.document[FIELD] for one in pipeline.run([texts[0]])]
    values = [
        made["scheme"],
        made["digest"].rsplit(".", 1)[-1],
        made["supershingles"][0],
        str(made["shingles"]),
    ]
    before = answers(engine, index, values)
    carry_out(engine, make_plan(engine, SetupRequest(recipe, (index,))))
    assert backfill(engine, index, pipeline, BackfillOptions(FIELD, workers=1)).counts.updated == 30
    grouped = {"_op_type": "update", "_index": index, "doc": {FIELD: {"group": 7, "leader": True}}}
    assert not engine.bulk({**grouped, "_id": one["id"]} for one in texts).failures
    engine.refresh(index)
    named = {"query": {"term": {f"{FIELD}.scheme": scheme.id}}, "size": 0}
    assert engine.search(index, named)["hits"]["total"]["value"] == 30
    after = answers(engine, index, values)
    changed = {query: (before[query], after[query]) for query in before if before[query] != after[query]}
    assert not changed
    assert sum(bool(hits) for hits in before.values()) > 20
