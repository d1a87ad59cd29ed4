"""The counts of a report, and its HTML page."""

import re
from html.parser import HTMLParser

import pytest

from shinglefold.errors import ConfigError
from shinglefold.grouping.report import GroupTally, ReportFields, make_report
from shinglefold.grouping.report_html import page


def source(group, leads, host, day, lang="ru", title="Мост"):
    stored = {"scheme": "sf3-x", "lang": lang, "group": group, "leader": leads}
    return {"_dedup": stored, "url": f"https://{host}/page", "published": day, "title": title}


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


def test_a_group_with_several_leaders_is_reported(engine, index):
    # As where two runs that did not see each other let in the same text.
    again = source(1, True, "c.org", "2026-02-07")
    assert not engine.bulk([{"_index": index, "_id": "d8", "_source": again}]).failures
    made = make_report(engine, index)
    assert (made.led_by_several, made.copies) == (1, 4)
    for shares in (made.hosts, made.languages, made.months):
        assert sum(one.copies for one in shares) == 4
    assert "groups led by several" in page(made)


def test_documents_left_out_for_lack_of_a_value_are_counted(engine, index):
    bare = {"_dedup": {"scheme": "sf3-x", "lang": "ru", "group": 3, "leader": False}, "url": "mailto:a@b"}
    assert not engine.bulk([{"_index": index, "_id": "d8", "_source": bare}]).failures
    made = make_report(engine, index, listed=2)
    assert made.without == {"hosts": 1, "languages": 0, "months": 1}
    assert made.more == {"hosts": 1, "languages": 0, "months": 0}
    assert made.left_out("hosts") == "1 document without a host left out; 1 more host"
    assert made.left_out("languages") == ""
    assert "Not here: 1 document without a month left out." in page(made)
    assert made.to_json()["without"]["months"] == 1


def test_a_year_alone_is_that_year_where_the_field_is_a_date(engine, index):
    engine.put_mappings(index, {"properties": {"date": {"type": "date"}}})
    for number, day in enumerate(["2019", "2020-05", "2019-12-31T23:30:00-02:00"]):
        one = source(1, False, "a.org", "") | {"date": day, "published": None}
        assert not engine.bulk([{"_index": index, "_id": f"e{number}", "_source": one}]).failures
    made = make_report(engine, index, ReportFields(date="date"))
    assert [one.value for one in made.months] == ["2019-01", "2020-01", "2020-05"]


@pytest.mark.parametrize(
    ("form", "month"),
    [
        ("strict_date_optional_time||epoch_millis", "2026-01"),
        ("epoch_millis", "1970-01"),
    ],
)
@pytest.mark.parametrize("written", [2026, "2026"])
def test_a_number_is_a_year_or_a_moment_as_the_format_of_the_field_reads_it(
    engine, index, form, month, written
):
    engine.put_mappings(index, {"properties": {"day": {"type": "date", "format": form}}})
    one = source(1, False, "a.org", None) | {"day": written}
    assert not engine.bulk([{"_index": index, "_id": "d8", "_source": one}]).failures
    made = make_report(engine, index, ReportFields(date="day"))
    assert [one.value for one in made.months] == [month]
    assert [one.date[:7] for one in made.largest[0].members if one.date] == [month]


def test_a_placeholder_is_not_counted(engine, index):
    place = {"_dedup": {"pending": 1_900_000_000_000, "attempt": "a"}}
    assert not engine.bulk([{"_index": index, "_id": "coming", "_source": place}]).failures
    made = make_report(engine, index)
    assert (made.documents, made.without_group, made.placeholders) == (7, 1, 1)
    assert "Reserved ids without a document are not counted: 1." in page(made)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("01.02.2024", "2024-02-01"),
        ("1.2.2024", "2024-02-01"),
        ("01.02.2024 23:10", "2024-02-01"),
        ("01.02.2024, 23:10", "2024-02-01"),
        ("2024/02/01", "2024-02-01"),
        ("20240201", "2024-02-01"),
        ("2024", "2024-01-01"),
        (2024, "2024-01-01"),
        (2024.0, "2024-01-01"),
        (20240201, "2024-02-01"),
        ("2024-02-01T10:00:00+05:00", "2024-02-01"),
        ("Thu, 01 Feb 2024 10:00:00 GMT", "2024-02-01"),
        (1706745600000, "2024-02-01"),
        ("1706745600000", "2024-02-01"),
        # In some countries this is the second of January, in others the first of February.
        ("01/02/2024", None),
        ("32.13.2024", None),
        ("yesterday", None),
        ({"day": 1}, None),
    ],
)
def test_dates_are_read_as_people_write_them_and_the_others_are_told(engine, index, written, day):
    """The field is not mapped as a date, so that its values come as they were written."""
    for number in range(2):
        one = source(9, not number, "d.org", None) | {"day": written}
        assert not engine.bulk([{"_index": index, "_id": f"n{number}", "_source": one}]).failures
    made = make_report(engine, index, ReportFields(date="day"))
    assert [one.value for one in made.months] == ([day[:7]] if day else [])
    assert [one.newest for one in made.newest] == ([day] if day else [])
    assert made.unread_dates == (0 if day else 2)
    for told in (made.left_out("months"), page(made)):
        assert ("2 documents have dates that cannot be read, such as" in told) == (day is None)


def test_members_are_listed_with_titles_addresses_and_dates_the_original_first(engine, index):
    made = make_report(engine, index)
    assert [(one.id, one.title, one.url, one.host, one.date) for one in made.largest[0].members] == [
        ("d0", "Мост", "https://a.org/page", "a.org", "2026-01-05"),
        ("d1", "Мост", "https://b.org/page", "b.org", "2026-02-01"),
        ("d2", "Мост", "https://b.org/page", "b.org", "2026-02-03"),
    ]
    shown = page(made)
    assert '<a href="https://a.org/page" rel="noreferrer">Мост</a> <mark>original</mark>' in shown
    assert f"As of {made.made_at[:10]}" in shown
    assert "every other one is a <b>copy</b>" in shown
    assert "3 of 6 documents are copies (50.0%), and 2 texts have more than one document" in shown
    many = [
        {"_index": index, "_id": f"m{number:02}", "_source": source(4, number == 30, "m.org", "2026-01-01")}
        for number in range(31)
    ]
    assert not engine.bulk(many).failures
    largest = make_report(engine, index).largest[0]
    assert (largest.documents, len(largest.members), largest.members[0].id) == (31, 20, "m30")
    assert "and 11 more" in page(make_report(engine, index))


def test_an_address_that_is_no_page_is_no_link(engine, index):
    for url in ("javascript:alert(1)", 'https://x"onclick="y', "mailto:a@b"):
        one = source(1, False, "a.org", "2026-02-03") | {"url": url}
        assert not engine.bulk([{"_index": index, "_id": "d8", "_source": one}]).failures
        shown = page(make_report(engine, index))
        assert "javascript:" not in shown
        assert 'onclick="' not in shown
        assert "mailto:" not in shown


def test_a_multi_field_is_counted_by_the_values_of_its_parent(engine, index):
    engine.put_mappings(
        index, {"properties": {"site": {"type": "text", "fields": {"keyword": {"type": "keyword"}}}}}
    )
    one = source(1, False, "b.org", "2026-02-03") | {"site": "news.org"}
    assert not engine.bulk([{"_index": index, "_id": "d8", "_source": one}]).failures
    made = make_report(engine, index, ReportFields(host="site.keyword"))
    assert [(one.value, one.documents) for one in made.hosts] == [("news.org", 1)]


def test_the_largest_and_newest_groups_are_listed_by_their_leaders(engine, index):
    made = make_report(engine, index)
    assert [(one.group, one.documents, one.id, one.newest) for one in made.largest] == [
        (1, 3, "d0", "2026-02-03"),
        (3, 2, made.largest[1].id, "2026-03-09"),
    ]
    assert [one.group for one in made.newest] == [3, 1]
    assert {one.index for one in made.largest} == {index}
    assert [one.group for one in make_report(engine, index, listed=1).largest] == [1]


def test_fields_can_be_named_and_may_be_missing(engine, index):
    made = make_report(engine, index, ReportFields(host="nowhere", date="nothing"))
    assert (made.hosts, made.months, made.newest, made.copies) == ((), (), (), 3)
    assert "Copies by host" not in page(made)


def test_the_page_needs_no_network_and_shows_texts_as_they_are(engine, index):
    engine.bulk([{"_index": index, "_id": "d9", "_source": source(2, False, "x<y", "2026-03-01")}])
    made = page(make_report(engine, index))
    assert "&lt;b&gt;&amp;" in made
    assert "<b>&" not in made
    # Addresses of documents are links, which nobody loads before a click.
    bare = re.sub(r'<a href="https://[^"]*" rel="noreferrer">', "<a>", made)
    assert bare != made
    assert not re.search(r"https?:|//|@import|<script|<link|<img|url\(", bare)
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in {"meta", "html"}:
                tags.append(tag)

        def handle_startendtag(self, tag, attrs):
            """Handle an element without an end tag."""

        def handle_endtag(self, tag):
            if tag != "html":
                assert tags.pop() == tag

    Tags().feed(made.replace("<!doctype html>", ""))
    assert tags == []
    assert made.count("<svg") == 4


def test_an_index_without_numbers_says_how_to_get_them(engine):
    with pytest.raises(ConfigError, match="shinglefold regroup texts"):
        make_report(engine, "texts")


def tallied(*sources):
    tally = GroupTally("_dedup", ReportFields())
    tally.add([{"_index": "x", "_id": f"d{at}", "_source": one} for at, one in enumerate(sources)])
    return tally.report("x", 10)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.org:8080/x", "a.org"),
        ("a.org:8080", "a.org"),
        ("A.org/page", "a.org"),
        ("javascript:x", ""),
        ("mailto:me@b.org", ""),
        ("//c.org", "c.org"),
        ("[::1", ""),
    ],
)
def test_values_without_a_host_count_for_no_host(url, host):
    made = tallied({"_dedup": {"group": 1, "leader": True}, "url": url})
    assert [one.value for one in made.hosts] == ([host] if host else [])


def test_invalid_dates_are_ignored():
    dates = ["0001-02-03", 253402300800000 * 1000, "2026-01-01"]
    made = tallied(
        *(
            {"_dedup": {"group": at // 2, "leader": at % 2 == 0}, "date": day}
            for at, day in enumerate(dates * 2)
        )
    )
    assert [one.value for one in made.months] == ["0001-02", "2026-01"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", one.newest) for one in made.newest)


def texts_of(html: str) -> list[tuple[float, str, str]]:
    """Return position, anchor and words of each text in the plots."""
    found = re.findall(
        r'<text(?: class="\w+")? x="([\d.]+)" y="[\d.]+"(?: text-anchor="(\w+)")?>([^<]*)<', html
    )
    return [(float(x), anchor, told) for x, anchor, told in found]


def test_short_labels_take_no_room_from_the_bars():
    languages = ["ru", "uk", "en"]
    made = tallied(*({"_dedup": {"group": at, "leader": True, "lang": languages[at % 3]}} for at in range(9)))
    (start,) = {x for x, anchor, told in texts_of(page(made)) if anchor == "end" and told in languages}
    assert start < 60


def test_no_label_of_a_plot_leaves_it():
    hosts = [f"news{at}.with-a-very-long-name-of-a-host.example.org" for at in range(5)] + [
        "新闻" * 20 + ".cn"
    ]
    made = tallied(
        *(
            {
                "_dedup": {"group": at, "leader": True},
                "host": hosts[at % 6],
                "date": f"20{at % 20 + 10}-0{at % 9 + 1}-01",
            }
            for at in range(60)
        )
    )
    html = page(made)
    assert "@media(max-width:680px){svg text{font-size:16px}}" in html
    for x, anchor, told in texts_of(html):
        # As large as on a narrow screen, where the plot is drawn at half its size.
        width = sum(16 if ord(one) > 0x2E80 else 8.9 for one in told)
        left = x - width if anchor == "end" else x - width / 2 if anchor == "middle" else x
        assert left >= 0, told
        assert left + width <= 640, told
    # What tells hosts apart is not cut off.
    assert len({told for _, anchor, told in texts_of(html) if anchor == "end" and "…" in told}) == 6


def test_months_without_documents_are_drawn():
    days = ["2026-01-05", "2026-04-05"]
    html = page(
        tallied(*({"_dedup": {"group": at, "leader": True}, "date": day} for at, day in enumerate(days)))
    )
    assert "2026-02: 0 of 0" in html
    assert "2026-03: 0 of 0" in html
