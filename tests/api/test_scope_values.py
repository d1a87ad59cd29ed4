"""The values of scopes that a new document would have in an index, above all its dates."""

import pytest

import shinglefold
from shinglefold.api.documents import query_document
from shinglefold.errors import ConfigError
from shinglefold.rerank import Scope

SAME = "Мост через реку закрыли на ремонт до конца лета, сообщил в понедельник мэр города."


@pytest.fixture(scope="module")
def scoped(tmp_path_factory):
    """An open index with the same text on two sites."""
    properties = {
        "host": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "open": {"type": "boolean"},
        "day": {"type": "date"},
        "flag": {"type": "keyword"},
    }
    folder = tmp_path_factory.mktemp("scoped")
    shinglefold.setup(folder, "site", text=["body"], languages=["ru"], properties=properties)
    with shinglefold.open(folder, "site") as index:
        rows = [("1", "a.org", True, "2026-01-05"), ("2", "b.org", False, "2026-02-05")]
        index.index(
            {"id": one, "body": SAME, "host": host, "open": flag, "flag": flag, "day": day}
            for one, host, flag, day in rows
        )
        yield index


@pytest.mark.parametrize(
    ("scope", "values"),
    [
        ("host.raw", {"host": "a.org"}),
        ("host.raw", {"host": ["a.org", "a.org"]}),
        ("open", {"open": "true"}),
        ("open", {"open": True}),
        ("flag", {"flag": True}),
        ("day", {"day": "2026-01-05"}),
        ("day", {"day": 1767571200000}),
        ("day:7d", {"day": "2026-01-05T10:00:00"}),
        ("day:7d", {"day": "2026-01"}),
        ("day:7d", {"day": "2026"}),
    ],
)
def test_a_document_has_the_values_of_scopes_that_the_index_would_have(scoped, scope, values):
    assert [one.id for one in scoped.similar({"body": SAME, **values}, scope=scope).matches] == ["1"]


@pytest.mark.parametrize(
    ("form", "known"),
    [("yyyy-MM-dd HH:mm:ss||epoch_millis", True), ("dd.MM.yyyy", False), ("yyyy-MM-dd||basic_date", False)],
)
def test_days_of_a_document_are_known_if_the_format_writes_them_as_iso_does(scoped, form, known):
    document = {"body": SAME, "when": "2026-01-05 10:00:00"}
    mappings = [{"properties": {"when": {"type": "date", "format": form}}}]
    given = (scoped.pipeline, scoped.recipe, document, [Scope.parse("when:7d")], mappings)
    if known:
        assert query_document(*given).values == {"when": ["2026-01-05 10:00:00"]}
        return
    with pytest.raises(ConfigError, match="store it, and give its id"):
        query_document(*given)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ([{"type": "date", "format": "dd.MM.yyyy"}], True),
        ([{"type": "date", "format": "dd.MM.yyyy||epoch_millis"}], False),
        ([{"type": "date", "format": "dd.MM.yyyy"}, {"type": "date"}], False),
        ([{"type": "date_nanos"}], False),
    ],
)
def test_equal_days_of_a_document_are_known_if_engines_write_them_as_it_does(scoped, given, known):
    document = {"body": SAME, "when": "05.01.2026"}
    mappings = [{"properties": {"when": one}} for one in given]
    arguments = (scoped.pipeline, scoped.recipe, document, [Scope("when")], mappings)
    if known:
        assert query_document(*arguments).values == {"when": ["05.01.2026"]}
        return
    with pytest.raises(ConfigError, match="store it, and give its id"):
        query_document(*arguments)


@pytest.mark.parametrize("day", [10**18, -(10**18), 1e300, "no date"])
def test_a_document_of_a_day_that_no_calendar_has_is_like_no_other(scoped, day):
    assert not scoped.similar({"body": SAME, "day": day}, scope="day").matches


def test_a_date_that_engines_return_in_milliseconds_is_compared_so(scoped):
    mappings = {"properties": {"at": {"type": "date", "format": "epoch_millis"}}}
    document = {"body": SAME, "at": 1767571200000}
    made = query_document(scoped.pipeline, scoped.recipe, document, [Scope("at")], [mappings])
    assert made.values == {"at": [1767571200000]}
