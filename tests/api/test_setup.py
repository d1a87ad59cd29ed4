"""An index set up and opened from Python, by another version, too."""

from contextlib import closing, nullcontext

import pytest

import shinglefold
from shinglefold import registry
from shinglefold.canon import canonicalizer
from shinglefold.cli.main import main
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, IndexMissing, RecipeMismatch, SchemeMismatch
from shinglefold.examples import temporary_index


def test_fields_are_not_guessed(tmp_path):
    with pytest.raises(ConfigError, match=r'text=\["title", "body"\]'):
        shinglefold.setup(tmp_path, "news")


def test_a_second_run_changes_nothing(tmp_path):
    assert shinglefold.setup(tmp_path, "news", text=["headline"]).changes
    assert not shinglefold.setup(tmp_path, "news", text=["headline"]).changes
    with shinglefold.open(tmp_path, "news") as news:
        assert (news.recipe.groups, news.recipe.passages) == (False, False)


@pytest.mark.parametrize("target", [{}, {"target_field": "dedup"}])
@pytest.mark.parametrize("field", [{}, {"field": "dedup"}])
def test_an_index_whose_recipe_left_the_default_field_out_keeps_its_fingerprints(tmp_path, field, target):
    words = "The bridge across the river is closed for repairs in May, as the city said on Monday"
    shinglefold.setup(tmp_path, "news", text=["body"], languages=["en"], fingerprint_field="dedup")
    with shinglefold.open(tmp_path, "news") as news:
        news.index([{"id": "1", "body": words}])
    with closing(open_engine(tmp_path, lambda text: text.lower().split())) as engine:
        stored = engine.mappings("news")["_meta"]["shinglefold"]
        (step,) = stored["pipeline"]["processors"]
        options = {name: one for name, one in step["supershingle"].items() if name != "target_field"}
        pipeline = {"processors": [{"supershingle": {**options, **target}}]}
        stored = {name: one for name, one in stored.items() if name != "field"}
        engine.put_mappings("news", {"_meta": {"shinglefold": {**stored, **field, "pipeline": pipeline}}})
    assert not shinglefold.setup(tmp_path, "news", text=["body"]).changes
    with shinglefold.open(tmp_path, "news") as news:
        news.index([{"id": "2", "body": words}])
        page = news.search({"query": {"match": {"body": "bridge"}}})
        assert (page["dedup"]["mode"], page["dedup"]["folded"]) == ("window", 1)
        assert all("digest" in hit["_source"]["dedup"] for hit in page["hits"]["hits"])
        assert news.backfill().counts.updated == 0
        assert news.doctor().healthy
    assert shinglefold.remove(tmp_path, "news", dry_run=True).documents == {"news": 2}


def test_an_index_that_exists_is_set_up_and_backfilled(tmp_path):
    engine = open_engine(tmp_path, lambda text: [])
    engine.create_index("old", {"properties": {"headline": {"type": "text"}}}, {})
    engine.bulk(
        [{"_op_type": "index", "_index": "old", "_id": "1", "headline": "Мост закрыли на ремонт в мае"}]
    )
    engine.close()
    with pytest.raises(ConfigError, match="has text in headline"):
        shinglefold.setup(tmp_path, "old")
    with pytest.raises(ConfigError, match="headlines"):
        shinglefold.setup(tmp_path, "old", text=["headlines"])
    plan = shinglefold.setup(tmp_path, "old", text=["headline"])
    assert dict(plan.backfills) == {"old": 1}
    with shinglefold.open(tmp_path, "old") as old:
        assert old.recipe.fields == ("headline",)
        assert old.backfill().counts.updated == 1
        assert old.doctor().healthy


def test_languages_and_scheme_are_chosen(tmp_path):
    shinglefold.setup(tmp_path, "news", text=["body"], languages=["en"], preset="compact")
    with shinglefold.open(tmp_path, "news", languages=["en"]) as news:
        assert [ref.code for ref in news.recipe.scheme.languages] == ["any", "en"]
        assert news.recipe.scheme.name == "compact"


def test_a_seal_is_set_and_asked_for(tmp_path):
    key = "0123456789abcdef0123"
    shinglefold.setup(tmp_path, "news", text=["body"], languages=["en"], seal_key=key)
    with pytest.raises(ConfigError, match="sealed with the key"):
        shinglefold.open(tmp_path, "news")
    with shinglefold.open(tmp_path, "news", seal_key=key) as news:
        assert news.index([{"id": "1", "body": "The bridge is closed for repairs in May."}]).indexed == 1
        assert news.doctor().healthy


def test_a_recipe_that_is_gone_is_restored_and_a_poorer_backfill_stops(tmp_path):
    words = ["мост", "река", "город", "улица", "весна", "поезд", "вокзал", "рынок", "театр", "школа"]
    texts = [" ".join(words[number:] + words[:number]) for number in range(10)]
    shinglefold.setup(tmp_path, "news", text=["headline", "story"], languages=["ru"], preset="compact")
    with shinglefold.open(tmp_path, "news") as news:
        news.index({"id": str(at), "headline": "Новости", "story": text} for at, text in enumerate(texts))
        noted = news.recipe
        news.engine.put_mappings("news", {"_meta": {"owner": "somebody else"}})
    with pytest.raises(ConfigError, match=r"To restore the recipe.*shinglefold.setup\(…, 'news', text="):
        shinglefold.open(tmp_path, "news")
    shinglefold.setup(tmp_path, "news", text=["headline", "story"])
    with shinglefold.open(tmp_path, "news") as news:
        assert news.recipe == noted
        assert news.backfill().counts.unchanged == 10
    shinglefold.setup(tmp_path, "news", text=["headline"])
    with shinglefold.open(tmp_path, "news") as news:
        stopped = news.backfill()
        assert (stopped.poorer, stopped.counts.updated) == (10, 0)
        assert "--allow-poorer" in stopped.stopped
        assert news.backfill(allow_poorer=True).counts.updated == 10


def test_what_was_set_up_is_removed(tmp_path):
    shinglefold.setup(tmp_path, "site", text=["title", "body"])
    with shinglefold.open(tmp_path, "site") as site:
        site.index([{"id": "1", "title": "a", "body": "the bridge is closed until the middle of July"}])
    assert shinglefold.remove(tmp_path, "site", dry_run=True).documents == {"site": 1}
    assert shinglefold.remove(tmp_path, "site").mapped == {"site": "_dedup"}
    with pytest.raises(ConfigError, match="nothing to remove"):
        shinglefold.remove(tmp_path, "site")
    with pytest.raises(IndexMissing, match=r"no index 'sites'; there are: site\. Did you mean 'site'"):
        shinglefold.remove(tmp_path, "sites")


@pytest.mark.parametrize("command", [False, True])
def test_another_profile_undoes_what_the_one_before_decided(tmp_path, command):
    def setup(*, least, **options):
        if command:
            flags = [part for name, value in options.items() for part in (f"--{name}", value)]
            where = ["--field", "body", "--engine", str(tmp_path)]
            assert main(["setup", "cards", *where, *flags]) == 0
        else:
            shinglefold.setup(tmp_path, "cards", text=["body"], **options)
        with shinglefold.open(tmp_path, "cards") as index:
            decision = index.recipe.scheme.decision
        assert (decision.min_resemblance, decision.verify) == (least, "signature" if least == 0.4 else "text")

    setup(profile="products", least=0.4)
    setup(preset="compact", least=0.4)
    setup(least=0.4)
    setup(profile="messages", least=0.61)
    setup(profile="products", least=0.4)
    setup(profile="pages", least=0.61)


@pytest.mark.parametrize(
    "options", [{"never_differ": []}, {"profile": ""}, {"text": []}, {"profile": "pages"}], ids=str
)
def test_nothing_contradicts_something(tmp_path, options):
    shinglefold.setup(tmp_path, "cards", text=["body"], profile="products")
    with pytest.raises(RecipeMismatch, match=", not "):
        shinglefold.open(tmp_path, "cards", **options)


@pytest.mark.parametrize("index", [None, 5, ""])
def test_a_name_that_is_no_text_is_refused(tmp_path, index):
    for call in (shinglefold.open, shinglefold.remove, shinglefold.setup):
        with pytest.raises(ConfigError, match="index: expected text"):
            call(tmp_path, index, **({"text": ["body"]} if call is shinglefold.setup else {}))


def test_values_of_other_types_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="profile"):
        shinglefold.setup(tmp_path, "cards", text=["body"], profile=["products"])
    shinglefold.setup(tmp_path, "cards", text=["body"], passages=True)
    with shinglefold.open(tmp_path, "cards") as site:
        assert site.index([{5: "one of these names of fields is no text"}]).failed == 1
        for call in (
            lambda: site.explain(5, "a"),
            lambda: site.similar("a", scope=5),
            lambda: site.matches("some text", filters=5),
        ):
            with pytest.raises(ConfigError, match=r"(wanted|scope|filters): expected"):
                call()


@pytest.mark.parametrize(("other", "alike"), [("pages", True), ("products", False), ("messages", False)])
def test_indices_whose_profiles_decide_otherwise_are_no_one_index(tmp_path, other, alike):
    shinglefold.setup(tmp_path, "cards-1", text=["body"])
    shinglefold.setup(tmp_path, "cards-2", text=["body"], profile=other, never_differ=[])
    opened = nullcontext() if alike else pytest.raises(ConfigError, match="different recipes")
    with opened:
        shinglefold.open(tmp_path, "cards-*").close()


def test_a_gate_opened_after_a_change_of_the_recipe_writes_nothing_by_the_earlier_one(tmp_path):
    shinglefold.setup(tmp_path, "cards", text=["body"])
    with shinglefold.open(tmp_path, "cards") as site:
        shinglefold.setup(tmp_path, "cards", text=["body"], never_differ=["numbers"])
        with pytest.raises(RecipeMismatch, match="Open the index again"):
            site.add({"id": "1", "body": "Running shoes of size 42 for men, in black, with spare laces"})


BODY = {"query": {"match_all": {}}, "sort": [{"date": "desc"}], "size": 50}
WORDS = {"query": {"match": {"title": "мост"}}}


@pytest.fixture
def site(monkeypatch):
    where = temporary_index("site")
    with shinglefold.open(where, "site") as opened:
        folded = opened.search(BODY)["dedup"]["folded"]
    russian = registry.language_class("ru", registry.installed_languages())
    monkeypatch.setattr(russian, "version", classmethod(lambda _: "9-of-tomorrow"))
    monkeypatch.setattr(russian, "made_as", classmethod(lambda _, __: None))
    # As in a new process, which has loaded no language.
    canonicalizer._shared_canonicalizer.cache_clear()
    with shinglefold.open(where, "site") as opened:
        yield opened, folded


def test_what_stored_fingerprints_decide_needs_no_dictionary(site):
    opened, folded = site
    page = opened.search(BODY)
    assert page["dedup"]["folded"] == folded > 0
    assert page["dedup"]["mode"] == "window"
    assert sum(len(one["hits"]["hits"]) for one in opened.pages(BODY)) == page["dedup"]["groups"]
    shown = next(
        hit for hit in page["hits"]["hits"] if len(hit["inner_hits"]["duplicates"]["hits"]["hits"]) > 1
    )
    assert opened.similar(shown["_id"]).matches


@pytest.mark.long(every=8)
@pytest.mark.parametrize(
    "needs_words",
    [
        lambda opened: opened.search(WORDS),
        lambda opened: opened.search({**BODY, "ext": {"dedup": {"verify": "text"}}}),
        lambda opened: opened.search({**BODY, "ext": {"dedup": {"explain": {"passages": True}}}}),
        lambda opened: opened.similar({"title": "Мост", "body": "Мост через реку закроют на ремонт"}),
        lambda opened: opened.index([{"id": "new", "title": "Мост", "body": "Мост закроют на ремонт"}]),
    ],
    ids=["text query", "verify", "passages", "similar of a text", "index"],
)
def test_what_makes_words_is_refused(site, needs_words):
    with pytest.raises(SchemeMismatch, match="9-of-tomorrow"):
        needs_words(site[0])
