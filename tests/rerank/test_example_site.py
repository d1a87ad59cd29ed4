"""The example site: real texts in four languages, fingerprinted, indexed and folded."""

from collections import Counter

import pytest
from support.hits import fill, groups

from shinglefold.canon import strip_html
from shinglefold.contracts.engine import Capabilities
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import UnsupportedQuery
from shinglefold.examples import articles
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions


@pytest.fixture(scope="module")
def pages():
    return list(articles())


@pytest.fixture(scope="module")
def site_engine(tmp_path_factory, scheme, canonicalizer, pages):
    texts = [strip_html(page["body"]) if page["format"] == "html" else page["body"] for page in pages]
    prints = Fingerprinter(scheme, canonicalizer).fingerprint(texts)
    with EmbeddedEngine(tmp_path_factory.mktemp("site"), canonicalizer) as engine:
        sources = {
            page["id"]: {name: page[name] for name in ("title", "host", "date")}
            | {"body": text, "_dedup": print_.to_field()}
            for page, text, print_ in zip(pages, texts, prints, strict=True)
        }
        types = {"title": "text", "body": "text", "host": "keyword", "date": "date"}
        fill(engine, "site", sources, mappings(scheme), **types)
        yield engine


@pytest.fixture(scope="module")
def site(site_engine, scheme):
    return FoldedSearch(site_engine, scheme)


def test_each_group_holds_copies_of_one_story_and_hardly_a_story_is_shown_twice(site, pages):
    story = {page["id"]: page["story"] for page in pages}
    found = groups(site.search("site", {"size": len(pages)}, FoldOptions(members=100)))
    assert sorted(id_ for group in found for id_ in group) == sorted(story)
    assert all(len({story[id_] for id_ in group}) == 1 for group in found)
    shown = Counter(story[group[0]] for group in found)
    assert sum(shown.values()) <= 1.02 * len(shown)


def test_a_search_in_each_language_folds_and_keeps_its_highlights(site):
    for text in ("ремонт моста", "бібліотека", "绿茶", "sourdough starter"):
        body = {"query": {"match": {"body": text}}, "highlight": {"fields": {"body": {}}}}
        answer = site.search("site", body)
        assert answer["dedup"]["folded"] > 0
        assert all("<em>" in hit["highlight"]["body"][0] for hit in answer["hits"]["hits"])


def test_the_newest_copy_is_shown_on_request(site, pages):
    date = {page["id"]: page["date"] for page in pages}
    options = FoldOptions.parse({"representative": "newest:date", "members": 100})
    found = groups(site.search("site", {"size": len(pages)}, options))
    assert any(len(group) > 1 for group in found)
    assert all(date[group[0]] == max(date[id_] for id_ in group) for group in found)


def test_an_engine_that_refuses_the_numbers_it_claims_is_read_with_ids(
    site, site_engine, scheme, monkeypatch
):
    body = {"query": {"match": {"title": "мост"}}, "size": 3}
    expected = site.search("site", body)["hits"]
    refused = []
    real = site_engine.search

    def strict(index, request):
        if "_seq_no" in str(request):
            refused.append(request)
            raise UnsupportedQuery("no doc values for _seq_no here")
        return real(index, request)

    monkeypatch.setattr(site_engine, "search", strict)
    monkeypatch.setattr(type(site_engine), "can", Capabilities(seq_no=True))
    search = FoldedSearch(site_engine, scheme)
    assert search.search("site", body)["hits"] == expected
    assert search.search("site", body)["hits"] == expected
    # Refused once, they are not asked for again.
    assert len(refused) == 1
