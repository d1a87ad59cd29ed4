"""Another version of a language on the searching side: stored fingerprints are compared without it."""

import pytest

import shinglefold
from shinglefold import registry
from shinglefold.errors import SchemeMismatch
from shinglefold.examples import temporary_index

BODY = {"query": {"match_all": {}}, "sort": [{"date": "desc"}], "size": 50}
WORDS = {"query": {"match": {"title": "мост"}}}


@pytest.fixture
def site(monkeypatch):
    where = temporary_index("site")
    with shinglefold.open(where, "site") as opened:
        folded = opened.search(BODY)["dedup"]["folded"]
    russian = registry.language_class("ru", registry.installed())
    monkeypatch.setattr(russian, "version", classmethod(lambda _: "9-of-tomorrow"))
    monkeypatch.setattr(russian, "made_as", classmethod(lambda _, __: None))
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
