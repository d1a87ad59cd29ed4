"""A search follows the recipe and the mappings of the index, and notices stale fingerprints."""

import json
import random
import re
import tracemalloc
from dataclasses import replace

import pytest
from support.hits import SCHEME, groups
from support.maintenance import FIELDS, pages

import shinglefold
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError, InputError, PermissionDenied, RecipeMismatch
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, Scope
from shinglefold.rerank.index_fields import index_names, recipes_changed
from shinglefold.rerank.index_knowledge import IndexKnowledge
from shinglefold.rerank.index_recipes import IndexRecipes
from shinglefold.rerank.similar import SimilarOptions, SimilarSearch
from shinglefold.runtime.recent import RecentlyUsed
from shinglefold.runtime.sans_io import run


def _mapped(call):
    parts = {"type": "nested", "properties": {"name": {"type": "keyword"}, "price": {"type": "long"}}}
    return {call.arguments[0]: {**READABLE, "properties": {**READABLE["properties"], "parts": parts}}}


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "parts.name"},
        {"representative": "prefer:parts.name=a"},
        {"representative": ["longest", "newest:parts.price"]},
        {"representative": "oldest:parts.price"},
        {"representative": "shortest_url:parts.name"},
        {"representative": "https_first:parts.name"},
        {"representative": "prefer:parts*=a"},
        {"scope": "_dedup"},
        {"scope": "_dedup.*"},
    ],
)
def test_scopes_and_policies_without_values_are_refused(options):
    knowledge = IndexKnowledge(SCHEME, None, None)
    with pytest.raises(ConfigError, match="hits do not return its values"):
        run(knowledge.facts("news", FoldOptions.parse(options)), _mapped)


READABLE = recipe_mappings(replace(default_recipe(SCHEME), fields=("headline",)))


def _answer(call):
    """Answer as a server whose role may not read the mappings of ``secret``."""
    (name,) = call.arguments
    if name == "secret":
        raise PermissionDenied("403")
    return {name: READABLE}


@pytest.mark.parametrize("names", ["secret,open", "open,secret"])
def test_copies_are_looked_for_by_the_mappings_that_may_be_read(names):
    known = run(IndexRecipes(SCHEME, None, None).read(names), _answer)
    assert known.fields_by_index == {"open": ("headline",)}


@pytest.mark.parametrize("names", ["secret,open", "open,secret"])
def test_texts_decide_by_the_fields_of_the_mappings_that_may_be_read(tmp_path, names):
    options = FoldOptions(verify="text")
    with EmbeddedEngine(tmp_path, str.split) as engine:
        search = FoldedSearch(engine, SCHEME)
        stage = search._stage(options, run(search._knowledge.facts(names, options), _answer))
    assert stage.fields == ("headline",)


@pytest.mark.long
def test_what_is_known_of_two_thousand_names_takes_less_than_20_mb(tmp_path):
    properties = {f"field{at}": {"type": "text", "fields": {"raw": {"type": "keyword"}}} for at in range(200)}
    text = json.dumps({**READABLE, "properties": {**READABLE["properties"], **properties}})

    def answer(call):
        (name,) = call.arguments
        return {f"{name}-{at}": json.loads(text) for at in range(2)}

    with EmbeddedEngine(tmp_path, str.split) as engine:
        search = FoldedSearch(engine, SCHEME)
        recipes = IndexRecipes(None, None, None)
        used = []
        tracemalloc.start()
        for at in range(160):
            run(search._knowledge.facts(f"alias{at}", FoldOptions()), answer)
            run(recipes.read(f"alias{at}"), answer)
            used.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    # Most is kept once; each name adds as much as the last hundred did.
    assert used[-1] + 1_840 * (used[-1] - used[-101]) / 100 < 20_000_000


def test_the_least_recently_used_entry_goes_first():
    kept: RecentlyUsed[str, int] = RecentlyUsed(2)
    for at, name in enumerate("abac"):
        kept.put(name, at)
    assert (kept.get("a"), kept.get("b"), kept.get("c"), len(kept)) == (2, None, 3, 2)
    kept.get("a")
    kept.put("d", 4)
    assert kept.get("c") is None
    kept.drop("a")
    assert len(kept) == 1


BODY = {"query": {"match_all": {}}, "size": 3}


@pytest.fixture
def engine(tmp_path, canonicalizer, scheme):
    with EmbeddedEngine(tmp_path / "engine", canonicalizer) as opened:
        pipeline = Pipeline.from_json(default_definition("near"), scheme)
        index_documents(opened, "pages", pages(5), pipeline, properties=FIELDS, workers=1)
        yield opened


def test_a_search_in_another_field_is_refused_with_both_names(engine, scheme):
    with pytest.raises(RecipeMismatch, match="field near, not _dedup"):
        FoldedSearch(engine, scheme, on_trouble="raise").search("pages", BODY)
    assert FoldedSearch(engine, scheme, "near").search("pages", BODY)["dedup"]["groups"] >= 3


def test_a_field_that_came_with_a_later_document_is_known_at_once(engine, scheme):
    search = FoldedSearch(engine, scheme, "near")
    body = {**BODY, "ext": {"dedup": {"scope": "site"}}}
    with pytest.raises(ConfigError, match="'site'"):
        search.search("pages", body)
    new = {"_index": "pages", "_id": "new", "_source": {"site": 7}}
    assert not engine.bulk([new]).failures
    engine.refresh("pages")
    assert search.search("pages", body)["dedup"]["groups"] >= 3


def test_copies_are_narrowed_by_a_field_that_came_with_a_later_document(engine, scheme):
    search, options = SimilarSearch(engine, scheme, "near"), SimilarOptions(scope=(Scope("site"),))
    (hit, *_) = engine.search("pages", BODY)["hits"]["hits"]
    with pytest.raises(ConfigError, match="'site'"):
        search.find("pages", hit["_id"], options)
    assert not engine.bulk([{"_index": "pages", "_id": "new", "_source": {"site": 7}}]).failures
    engine.refresh("pages")
    assert search.find("pages", hit["_id"], options).stopped_by == "end_of_results"


@pytest.mark.parametrize(
    ("asked", "looked_at"),
    [
        (None, []),
        ("", []),
        ("pages", ["pages"]),
        ("pages,,news-*", ["pages", "news-*"]),
        # Names that leave others out mean something only together.
        ("logs-*,-logs-old", ["logs-*,-logs-old"]),
        # Another cluster tells no mappings; a date in angle brackets may have a colon.
        ("pages,remote:logs", ["pages"]),
        ("<logs-{now/d{yyyy-MM-dd|+12:00}}>", ["<logs-{now/d{yyyy-MM-dd|+12:00}}>"]),
        ("a-*,-a-old,remote:a-*", ["a-*,-a-old"]),
    ],
)
def test_mappings_are_asked_for_by_names_that_mean_something_alone(asked, looked_at):
    assert index_names(asked) == looked_at


_WORDS = re.findall(
    r"\w+", "bridge river closed until monday because water rises buses take another way north station"
)


def _text(seed: int, words: int = 60) -> str:
    chance = random.Random(seed)
    return " ".join(f"{chance.choice(_WORDS)}{chance.randrange(9)}" for _ in range(words))


def _documents() -> list[dict]:
    """Three copies of one text, and another text."""
    return [{"id": f"copy-{n}", "title": "Bridge", "body": _text(1)} for n in range(3)] + [
        {"id": "other", "title": "Bridge", "body": _text(2)}
    ]


@pytest.fixture
def site(tmp_path):
    shinglefold.setup(tmp_path, "site", text=["title", "body"], languages=["en"])
    with shinglefold.open(tmp_path, "site") as site:
        site.index(_documents())
        yield site


def _replace(site, id_: str, **changed) -> None:
    site.engine.bulk([{"_op_type": "update", "_index": "site", "_id": id_, "doc": changed}])
    site.engine.refresh("site")


def _search(site, **options):
    body = {"query": {"match": {"title": "bridge"}}, "sort": [{"id": "asc"}], "size": 10}
    page = site.search({**body, "ext": {"dedup": {"verify": "text", **options}}})
    return groups(page), page["dedup"]


@pytest.mark.parametrize(
    ("stale", "expected"),
    [
        ((), [["copy-0", "copy-1", "copy-2"], ["other"]]),
        (("copy-1",), [["copy-0", "copy-2"], ["copy-1"], ["other"]]),
        (("copy-0",), [["copy-0"], ["copy-1", "copy-2"], ["other"]]),
        (("copy-0", "copy-1", "copy-2"), [["copy-0"], ["copy-1"], ["copy-2"], ["other"]]),
    ],
)
@pytest.mark.parametrize("linkage", ["leader", "connected"])
def test_a_stale_hit_stands_alone_and_is_counted(site, stale, expected, linkage):
    for number, id_ in enumerate(stale):
        _replace(site, id_, body=_text(10 + number))
    found, counters = _search(site, linkage=linkage)
    assert (found, counters["stale"]) == (expected, len(stale))
    assert (counters["groups"], counters["folded"]) == (len(expected), 4 - len(expected))
    assert counters["groups_total"]["value"] == len(expected)


def test_a_stale_representative_gives_way_to_a_member_that_was_not_fetched(site):
    _replace(site, "copy-0", body=_text(10))
    _replace(site, "copy-1", body=_text(11))
    found, counters = _search(site, members=0)
    assert (found, counters["stale"]) == ([["copy-0"], ["copy-1"], ["copy-2"], ["other"]], 2)


def test_a_new_representative_is_explained_by_its_passages(site):
    _replace(site, "copy-2", body=_text(10))
    options = {"members": 1, "representative": "prefer:id=copy-2,copy-1", "explain": {"passages": True}}
    found, counters = _search(site, **options)
    assert found == [["copy-1", "copy-0"], ["copy-2"], ["other"]]
    (member,) = counters["explain"][0]["members"]
    assert member["passages"]


@pytest.mark.parametrize("changed", [{}, {"body": _text(20)}])
def test_a_writer_that_clears_the_fingerprint_shows_the_document(site, changed):
    _replace(site, "copy-1", _dedup=None, **changed)
    assert _search(site)[0] == [["copy-0", "copy-2"], ["copy-1"], ["other"]]
    assert _search(site)[1]["stale"] == 0


def test_texts_that_are_not_shown_are_read(site):
    _replace(site, "copy-1", body=_text(10))
    body = {"query": {"match": {"title": "bridge"}}, "_source": ["title"]}
    page = site.search({**body, "ext": {"dedup": {"verify": "text"}}})
    assert (page["dedup"]["stale"], len(page["hits"]["hits"])) == (1, 3)


def test_explanations_and_similar_documents_know_it(site):
    _replace(site, "copy-1", body=_text(10))
    told = site.explain("copy-0", "copy-1")
    assert (told["folds"], told["text"]["folds"], told["b"].get("stale")) == (False, False, True)
    assert site.explain("copy-0", "copy-2")["folds"]
    with pytest.raises(InputError, match="'copy-1' is of another text"):
        site.similar("copy-1")


@pytest.mark.parametrize("format_", [None, "html"])
def test_markup_and_declared_languages_make_no_fingerprint_stale(tmp_path, format_):
    shinglefold.setup(tmp_path, "site", text=["title", "body"], languages=["en", "ru"])
    with shinglefold.open(tmp_path, "site") as site:
        site.engine.bulk(
            {
                "_op_type": "index", "_index": "site", "_id": f"{n}", "id": f"{n}", "title": "Bridge",
                "body": f"<p>{_text(1)} река &amp; мост</p>", "lang": lang,
                **({"format": format_} if format_ else {}),
            }
            for n, lang in enumerate(("en", "ru", "xx", None))
        )  # fmt: skip
        site.engine.refresh("site")
        site.backfill()
        assert site.doctor().healthy
        assert _search(site)[1]["stale"] == 0


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        ({"representative": "newest:day"}, {"type": "date"}, {"type": "boolean"}),
        ({"scope": "day:7d"}, {"type": "date"}, {"type": "text"}),
        ({"scope": "day"}, {"type": "date"}, None),
        ({"scope": "day"}, {"type": "keyword"}, {"type": "text"}),
        (
            {"representative": "newest:day.first"},
            {"properties": {"first": {"type": "date"}}},
            {"type": "date"},
        ),
    ],
)
def test_a_field_is_checked_again_if_an_index_of_the_name_has_other_mappings(
    tmp_path, canonicalizer, wanted, before, after
):
    with EmbeddedEngine(tmp_path, canonicalizer) as opened:

        def create(day):
            made = recipe_mappings(default_recipe(SCHEME))
            made["properties"] |= {} if day is None else {"day": day}
            opened.create_index("pages", made, {})

        search, options = FoldedSearch(opened, SCHEME), FoldOptions.parse(wanted)
        create(before)
        search.search("pages", BODY, options)
        opened.delete_index("pages")
        create(after)
        recipes_changed()
        # A request without the field reads the mappings again.
        search.search("pages", BODY)
        with pytest.raises(ConfigError, match="day"):
            search.search("pages", BODY, options)


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"representative": [{"prefer": {"field": "day", "values": ["05.01.2026"]}}]}, True),
        ({"representative": ["newest:day"], "scope": "plain"}, True),
        ({"representative": ["newest:plain", "prefer:plain=2026"], "scope": "plain"}, True),
        ({"representative": ["prefer:day=05.01.2026", "newest:day"]}, False),
        ({"representative": ["oldest:day", "shortest_url:day"]}, False),
        ({"representative": "prefer:day=05.01.2026", "scope": "day:7d"}, False),
        ({"representative": "newest:day", "scope": "day"}, False),
        ({"scope": ["day", "day:7d"]}, False),
    ],
)
def test_a_date_with_a_format_is_read_by_its_time_or_as_written(options, known):
    made = recipe_mappings(default_recipe(SCHEME))
    made["properties"] |= {"day": {"type": "date", "format": "dd.MM.yyyy"}, "plain": {"type": "date"}}
    steps = IndexKnowledge(SCHEME, None, None).facts("pages", FoldOptions.parse(options))
    if known:
        assert run(steps, lambda _: {"pages": made}).dates <= {"day"}
        return
    with pytest.raises(ConfigError, match="'day' is a date with a format: a search reads it either"):
        run(steps, lambda _: {"pages": made})
