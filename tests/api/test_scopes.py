"""Scopes of a document that is not stored: the values that the index would have."""

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
        ("day:7d", {"day": 2026}),
        ("day:7d", {"day": "1767571200000.0"}),
    ],
)
def test_a_document_has_the_values_of_scopes_that_the_index_would_have(scoped, scope, values):
    assert [one.id for one in scoped.similar({"body": SAME, **values}, scope=scope).matches] == ["1"]


@pytest.mark.parametrize(
    ("form", "known"),
    [("yyyy-MM-dd HH:mm:ss||epoch_millis", True), ("dd.MM.yyyy", False), ("yyyy-MM-dd||basic_date", False)],
)
def test_days_of_a_document_are_known_if_the_format_writes_them_as_iso_does(site, form, known):
    document = {"body": SAME, "when": "2026-01-05 10:00:00"}
    mappings = {"site": {"properties": {"when": {"type": "date", "format": form}}}}
    given = (site.pipeline, site.recipe, document, [Scope.parse("when:7d")], mappings)
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
        ([{"type": "date", "format": "date_optional_time"}], False),
        ([{"type": "date_nanos"}], False),
    ],
)
def test_equal_days_of_a_document_are_known_if_engines_write_them_as_it_does(site, given, known):
    document = {"body": SAME, "when": "05.01.2026"}
    mappings = {str(place): {"properties": {"when": one}} for place, one in enumerate(given)}
    arguments = (site.pipeline, site.recipe, document, [Scope("when")], mappings)
    if known:
        assert query_document(*arguments).values == {"when": ["05.01.2026"]}
        return
    with pytest.raises(ConfigError, match=r"store (it|the document), and give its id"):
        query_document(*arguments)


_DEFAULT = "strict_date_optional_time||epoch_millis"


@pytest.mark.parametrize(
    ("form", "given", "value"),
    [
        # As OpenSearch 3.8 and Elasticsearch 9.2 read them.
        (None, 2026, "2026-01-01"),
        (None, "0005", "0005-01-01"),
        (None, 2026.0, 2026),
        (None, 999, 999),
        (None, 202601, 202601),
        (None, -1234567890123, -1234567890123),
        ("strict_date_optional_time", 2026, "2026-01-01"),
        ("epoch_millis", 2026, 2026),
        ("epoch_millis", "0005", 5),
        ("yyyy-MM-dd||epoch_millis", 2026, 2026),
        ("date_optional_time||epoch_millis", 999, "0999-01-01"),
        ("date_optional_time||epoch_millis", "2026-1", "2026-01-01"),
        ("date", "2026-1-5", "2026-01-05"),
    ],
)
def test_a_number_is_a_year_or_milliseconds_as_the_format_of_the_field_says(site, form, given, value):
    own = {"type": "date"} | ({} if form is None else {"format": form})
    mappings = {"site": {"properties": {"at": own}}}
    document, near = {"body": SAME, "at": given}, [Scope.parse("at:7d")]
    made = query_document(site.pipeline, site.recipe, document, near, mappings)
    assert made.values == {"at": [value]}


def test_a_number_that_two_indices_read_differently_is_refused(site):
    forms = {"a": _DEFAULT, "b": "yyyy-MM-dd||epoch_millis"}
    mappings = {
        name: {"properties": {"at": {"type": "date", "format": form}}} for name, form in forms.items()
    }
    near = [Scope.parse("at:7d")]
    made = query_document(site.pipeline, site.recipe, {"body": SAME, "at": 20261}, near, mappings)
    assert made.values == {"at": [20261]}
    with pytest.raises(ConfigError, match="store it, and give its id"):
        query_document(site.pipeline, site.recipe, {"body": SAME, "at": 2026}, near, mappings)


_SCOPE = {
    "an address of the older kind": ({"type": "ip"}, "::ffff:10.0.0.1", ["10.0.0.1"]),
    "a number as text": ({"type": "long"}, "5.7", [5]),
    "a value that the index ignores": ({"type": "keyword", "ignore_above": 3}, ["abcd", "abc"], ["abc"]),
    "a value that the index refuses": ({"type": "integer"}, "no number", []),
    "an object of no mapping": (None, "a.org", ["a.org"]),
}


@pytest.mark.parametrize(("own", "given", "values"), _SCOPE.values(), ids=_SCOPE)
def test_a_scope_has_the_values_that_its_type_makes(site, own, given, values):
    mappings = {"site": {"properties": {} if own is None else {"at": own}}}
    made = query_document(site.pipeline, site.recipe, {"body": SAME, "at": given}, [Scope("at")], mappings)
    assert made.values == {"at": values}


@pytest.mark.parametrize(
    "other",
    [
        {"at": {"type": "keyword", "normalizer": "lowercase"}},
        {"at": {"type": "keyword", "null_value": "none"}},
        {"at": {"type": "keyword"}, "site": {"type": "keyword", "copy_to": "at"}},
        {"at": {"type": "long"}},
        {"at": {"type": "date"}},
        {"at": {"type": "float"}},
    ],
)
def test_a_scope_that_one_of_several_indices_has_in_another_form_is_refused(site, other):
    mappings = {"a": {"properties": {"at": {"type": "keyword"}}}, "b": {"properties": other}}
    with pytest.raises(ConfigError, match="or store the document, and give its id"):
        query_document(site.pipeline, site.recipe, {"body": SAME, "at": "1"}, [Scope("at")], mappings)


@pytest.mark.parametrize("form", ["epoch_millis", "yyyy-MM-dd"])
def test_dates_that_two_indices_return_in_two_forms_are_refused(site, form):
    given = {"a": {"type": "date", "format": form}, "b": {"type": "date"}}
    mappings = {name: {"properties": {"at": own}} for name, own in given.items()}
    document = {"body": SAME, "at": "2026-01-05"}
    with pytest.raises(ConfigError, match=f"{form} and strict_date_optional_time|strict.* and {form}"):
        query_document(site.pipeline, site.recipe, document, [Scope("at")], mappings)
    made = query_document(site.pipeline, site.recipe, document, [Scope.parse("at:7d")], mappings)
    assert made.values == {"at": ["2026-01-05"]}


@pytest.mark.parametrize("day", [10**18, -(10**18), 1e300, "no date"])
def test_a_document_of_a_day_that_no_calendar_has_is_like_no_other(scoped, day):
    assert not scoped.similar({"body": SAME, "day": day}, scope="day").matches


def test_a_date_that_engines_return_in_milliseconds_is_compared_so(scoped):
    mappings = {"properties": {"at": {"type": "date", "format": "epoch_millis"}}}
    document = {"body": SAME, "at": 1767571200000}
    made = query_document(scoped.pipeline, scoped.recipe, document, [Scope("at")], {"site": mappings})
    assert made.values == {"at": [1767571200000]}


@pytest.mark.parametrize(
    ("scope", "other"),
    [
        ("host.raw", {}),
        ("day", {"day": 1767571200000}),
        ("day:2d", {"day": "2026-01-06"}),
        ("open", {"open": "true"}),
    ],
)
def test_explanations_compare_scopes_as_pages_do(tmp_path, scope, other):
    properties = {
        "host": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "day": {"type": "date"},
        "open": {"type": "boolean"},
    }
    shinglefold.setup(tmp_path, "site", text=["body"], languages=["ru"], properties=properties)
    first = {"body": SAME, "host": "a.org", "day": "2026-01-05", "open": True}
    apart = {"host": "b.org", "day": "2026-02-05", "open": False}
    with shinglefold.open(tmp_path, "site", dedup={"scope": scope}) as index:
        documents = [first, {**first, **other}, {**first, **apart}]
        index.index({**one, "id": f"{number}"} for number, one in enumerate(documents))
        assert len(index.search()["hits"]["hits"]) == 2
        assert index.explain("0", "1")["folds"]
        told = index.explain("0", "2")
        assert (told["folds"], told["decided_by"]) == (False, "scope")
