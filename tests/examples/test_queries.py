"""The demo's searches: in every language, and each over several stories with copies."""

from collections import defaultdict

import pytest

from shinglefold.canon import Canonicalizer, strip_html
from shinglefold.examples import articles, queries
from shinglefold.registry import make_scheme


@pytest.fixture(scope="module")
def canonicalizer():
    return Canonicalizer.of(make_scheme())


def stories_with_all_words(query, canonicalizer):
    wanted = {token.text for token in canonicalizer.tokens(query.text, query.lang)}
    found = defaultdict(int)
    for article in articles():
        text = f"{article['title']}\n{strip_html(article['body'])}"
        if wanted <= {token.text for token in canonicalizer.tokens(text, article["lang"])}:
            found[article["story"]] += 1
    return found


def test_the_searches_cover_four_languages():
    assert len(queries()) >= 8
    assert {query.lang for query in queries()} == {"ru", "uk", "zh", "en"}


def test_every_search_explains_what_is_seen():
    assert all(query.shows.endswith(".") for query in queries())


@pytest.mark.long(every=4)
@pytest.mark.parametrize("query", queries(), ids=lambda query: query.text)
def test_a_search_finds_several_stories_and_many_copies(query, canonicalizer):
    found = stories_with_all_words(query, canonicalizer)
    assert len(found) >= 2
    assert sum(found.values()) >= len(found) + 3
