"""What a report counts, and the page it makes."""

import re
from html.parser import HTMLParser

import pytest

from shinglefold.errors import ConfigError
from shinglefold.groups.report import Names, make_report
from shinglefold.groups.report.page import page


def source(group, leads, host, day, lang="ru", title="Мост"):
    stored = {"scheme": "sf2-x", "lang": lang, "group": group, "leader": leads}
    return {"dedup": stored, "url": f"https://{host}/page", "published": day, "title": title}


DOCUMENTS = [
    source(1, True, "a.org", "2026-01-05"),
    source(1, False, "b.org", "2026-02-01"),
    source(1, False, "b.org", "2026-02-03"),
    source(2, True, "a.org", "2026-03-01", "uk", "<b>&"),
    # The leader of this one has gone: one of the two is no copy all the same.
    source(3, False, "b.org", "2026-03-09"),
    source(3, False, "c.org", "2026-03-02"),
    {"title": "without a group"},
]


@pytest.fixture
def index(engine):
    for number, one in enumerate(DOCUMENTS):
        assert not engine.bulk([{"_index": "texts", "_id": f"d{number}", "_source": one}]).failures
    return "texts"


def test_all_documents_are_counted_once(engine, index):
    made = make_report(engine, index)
    assert (made.documents, made.without_group, made.groups, made.shared, made.copies) == (7, 1, 3, 2, 3)
    assert [(one.size, one.groups, one.documents) for one in made.sizes if one.groups] == [
        ("1", 1, 1),
        ("2", 1, 2),
        ("3", 1, 3),
    ]
    for shares in (made.hosts, made.languages, made.months):
        assert sum(one.documents for one in shares) == 6
        assert sum(one.copies for one in shares) == made.copies
    assert [(one.value, one.documents, one.copies) for one in made.months] == [
        ("2026-01", 1, 0),
        ("2026-02", 2, 2),
        ("2026-03", 3, 1),
    ]
    assert {one.value: one.documents for one in made.hosts} == {"a.org": 2, "b.org": 3, "c.org": 1}


def test_the_largest_and_the_newest_groups_are_told_by_their_leaders(engine, index):
    made = make_report(engine, index)
    assert [(one.group, one.documents, one.id, one.newest) for one in made.largest] == [
        (1, 3, "d0", "2026-02-03"),
        (3, 2, made.largest[1].id, "2026-03-09"),
    ]
    assert [one.group for one in made.newest] == [3, 1]
    assert [one.group for one in make_report(engine, index, listed=1).largest] == [1]


def test_fields_can_be_named_and_may_be_missing(engine, index):
    made = make_report(engine, index, Names(host="nowhere", date="nothing"))
    assert (made.hosts, made.months, made.newest, made.copies) == ((), (), (), 3)
    assert "Copies by host" not in page(made)


def test_the_page_needs_no_network_and_shows_texts_as_they_are(engine, index):
    engine.bulk([{"_index": index, "_id": "d9", "_source": source(2, False, "x<y", "2026-03-01")}])
    made = page(make_report(engine, index))
    assert "&lt;b&gt;&amp;" in made
    assert "<b>" not in made
    assert not re.search(r"https?:|//|@import|<script|<link|<img|url\(", made)
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in {"meta", "html"}:
                tags.append(tag)

        def handle_startendtag(self, tag, attrs):
            """An empty element has no end of its own."""

        def handle_endtag(self, tag):
            if tag != "html":
                assert tags.pop() == tag

    Tags().feed(made.replace("<!doctype html>", ""))
    assert tags == []
    assert made.count("<svg") == 4


def test_an_index_without_numbers_says_how_to_get_them(engine):
    with pytest.raises(ConfigError, match="shinglefold regroup texts"):
        make_report(engine, "texts")
