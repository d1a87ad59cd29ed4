"""The demo's articles: what they promise, and that the default scheme folds them as they are labelled."""

from collections import Counter, defaultdict
from datetime import date
from itertools import combinations

import pytest

from shinglefold.canon import strip_html
from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme

NOTES = {
    "original",
    "no copies",
    "looks similar, another text",
    "reprint with other endings",
    "function words added or dropped",
    "sentences in another order",
    "another apostrophe",
    "Latin look-alike letters",
    "Cyrillic look-alike letters",
    "soft hyphens and zero-width characters",
    "Traditional characters",
    "full-width forms and punctuation",
    "marked-up page",
    "ё written as е",
    "upper-case heading",
    "small revision",
}


@pytest.fixture(scope="module")
def corpus():
    return list(articles())


@pytest.fixture(scope="module", params=["body", "title and body"])
def prints(corpus, request):
    texts = [strip_html(a["body"]) if a["format"] == "html" else a["body"] for a in corpus]
    if request.param != "body":
        texts = [f"{a['title']}\n{text}" for a, text in zip(corpus, texts, strict=True)]
    return Fingerprinter(make_scheme()).fingerprint_arrays(texts, [a["lang"] for a in corpus])


def folded(prints, ids):
    scheme = make_scheme()
    found = prints.pairs(scheme)
    return {frozenset((ids[a], ids[b])) for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)}


def labelled(corpus):
    stories = defaultdict(list)
    for article in corpus:
        stories[article["story"]].append(article["id"])
    return {frozenset(pair) for ids in stories.values() for pair in combinations(ids, 2)}


def test_there_are_enough_articles_in_four_languages(corpus):
    counts = Counter(article["lang"] for article in corpus)
    assert len(corpus) >= 130
    assert set(counts) == {"ru", "uk", "zh", "en"}
    assert min(counts.values()) >= 30


def test_ids_and_addresses_are_unique_and_addresses_name_their_host(corpus):
    assert len({a["id"] for a in corpus}) == len({a["url"] for a in corpus}) == len(corpus)
    assert all(a["url"].startswith(f"https://{a['host']}/") for a in corpus)


def test_hosts_are_reserved_names_so_that_nobody_is_quoted(corpus):
    assert all(a["host"].endswith((".example", ".example.org")) for a in corpus)


def test_every_article_is_dated_and_of_a_known_format(corpus):
    assert all(date.fromisoformat(a["date"]).isoformat() == a["date"] for a in corpus)
    assert {a["format"] for a in corpus} == {"html", "text"}


def test_plain_articles_are_short_but_no_snippets(corpus):
    for article in (a for a in corpus if a["format"] == "text"):
        chinese = article["lang"] == "zh"
        length = len(article["body"]) if chinese else len(article["body"].split())
        assert (120 if chinese else 60) <= length <= (250 if chinese else 140), article["id"]


def test_every_kind_of_copy_is_there_and_no_other(corpus):
    assert {article["note"] for article in corpus} == NOTES


def test_the_first_of_a_story_is_no_copy_and_the_others_are(corpus):
    first = {a["story"]: a["id"] for a in reversed(corpus)}
    alone = {"original", "no copies", "looks similar, another text"}
    assert all((a["note"] in alone) == (first[a["story"]] == a["id"]) for a in corpus)


def test_no_two_articles_are_the_same_bytes(corpus):
    assert len({(a["title"], a["body"]) for a in corpus}) == len(corpus)


@pytest.mark.long(every=2)
def test_every_article_is_long_enough_for_a_signature(prints):
    assert prints.valid.all()


def test_the_default_scheme_folds_every_pair_of_one_story(corpus, prints):
    missed = labelled(corpus) - folded(prints, [a["id"] for a in corpus])
    assert sorted(map(sorted, missed)) == []


def test_the_default_scheme_folds_no_two_stories(corpus, prints):
    wrong = folded(prints, [a["id"] for a in corpus]) - labelled(corpus)
    assert sorted(map(sorted, wrong)) == []
