"""Values of scopes and orders in documents: multi-fields, lists of objects, names with dots."""

import pytest
from support.maintenance import stored

from shinglefold.errors import ConfigError, InputError
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.field_values import Values
from shinglefold.grouping.gate.protocol.pending_document import numbers_of
from shinglefold.grouping.numbering import Numbering
from shinglefold.grouping.regroup import RegroupOptions, regroup
from shinglefold.grouping.rules import Rules
from shinglefold.ingest import index_documents
from shinglefold.model.recipe import Recipe
from shinglefold.model.values import Fingerprint

TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8}}}
PROPERTIES = {"site": TEXT, "pages": {"properties": {"host": {"type": "keyword"}}}, "day": {"type": "long"}}
#: A path, a document's part with the value a there, and one with another value.
PLACES = pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("site.keyword", {"site": "a"}, {"site": "b"}),
        ("site.keyword", {"site": ["a", "c"]}, {"site": "a"}),
        ("pages.host", {"pages": [{"host": "a"}, {"host": "c"}]}, {"pages": {"host": "a"}}),
        ("pages.host", {"pages.host": "a"}, {"pages": [{"host": "b"}]}),
    ],
)


@pytest.fixture
def index(engine) -> str:
    engine.put_mappings("texts", {"properties": PROPERTIES})
    return "texts"


def numbering(engine, rules):
    return Numbering(engine, "texts", Recipe.of(engine.mappings("texts"), "texts"), rules=rules)


def groups(engine):
    return {id_: source["_dedup"]["group"] for id_, source in stored(engine, "texts").items()}


@PLACES
def test_a_gate_compares_scope_values_of_documents(engine, index, pipeline, text, path, one, other):
    with Gate(engine, index, Policy("refuse", scope=(path,)), pipeline=pipeline) as gate:
        given = [{"id": f"{at}", "body": text("a", at), **part} for at, part in enumerate([one, other, one])]
        told = [(verdict.status, verdict.like and verdict.like.id) for verdict in gate.add_all(given)]
        assert told == [("accepted", None), ("accepted", None), ("refused", "0")]
        assert gate.add_all([{"id": "3", "body": text("a", 3), **one}])[0].like.id == "0"
    with Gate(engine, index, Policy("refuse", scope=(path,)), pipeline=pipeline) as gate:
        assert gate.add_all([{"id": "4", "body": text("a", 4), **other}])[0].like.id == "1"


@PLACES
def test_numbering_and_regrouping_respect_the_scope(engine, index, pipeline, text, path, one, other):
    documents = [{"id": f"{at}", "body": text("a", at), **part} for at, part in enumerate([one, other, one])]
    made = numbering(engine, Rules(scope=(path,)))
    for document in documents:
        assert index_documents(engine, index, [document], pipeline, workers=1, groups=made).failed == 0
    found = groups(engine)
    assert found["0"] == found["2"] != found["1"]
    assert regroup(engine, index).counts.planned == 0


def test_a_value_that_a_multi_field_ignores_is_an_error_for_a_gate(engine, index, pipeline, text):
    longer = {"site": "longer than eight"}
    with Gate(engine, index, Policy("refuse", scope=("site.keyword",)), pipeline=pipeline) as gate:
        (verdict,) = gate.add_all([{"id": "a", "body": text("a"), **longer}])
    assert (verdict.status, "values of 8 at most" in verdict.reason) == ("failed", True)
    documents = [{"id": f"{at}", "body": text("a", at), **longer} for at in range(2)]
    made = numbering(engine, Rules(scope=("site.keyword",)))
    index_documents(engine, index, documents, pipeline, workers=1, groups=made)
    found = groups(engine)
    assert found["0"] != found["1"]
    assert regroup(engine, index).counts.planned == 0


def test_a_text_field_is_refused_as_a_scope_and_its_multi_field_is_suggested(engine, index, pipeline):
    with pytest.raises(ConfigError, match=r"'site' is of type text, and site\.keyword would do"):
        Gate(engine, index, Policy("refuse", scope=("site",)), pipeline=pipeline)


PARTS = {"type": "nested", "properties": {"name": {"type": "keyword"}}}


@pytest.mark.parametrize(
    ("field", "mapping", "why"),
    [
        ("host", {"type": "keyword", "null_value": "none"}, "a field with a null_value"),
        (
            "host",
            {"type": "keyword", "script": {"source": "emit('a')"}},
            "a field whose values a script makes",
        ),
        ("host.parts.name", {"properties": {"parts": PARTS}}, r"'host\.parts\.name' is a field of nested"),
    ],
)
def test_a_field_whose_values_are_not_in_documents_is_refused_as_a_scope(field, mapping, why):
    with pytest.raises(ConfigError, match=why):
        Values.of({"properties": {"host": mapping}}, [field], "texts")


@pytest.mark.parametrize("targets", ["host", ["all", "host"]])
def test_a_field_that_others_are_copied_to_is_refused_as_a_scope(targets):
    """A document does not have the values that are copied into a field, so every copy would be accepted."""
    site = {"type": "keyword", "copy_to": targets}
    mappings = {"properties": {"host": {"type": "keyword"}, "page": {"properties": {"site": site}}}}
    with pytest.raises(ConfigError, match=r"'host' is filled by copy_to of page\.site"):
        Values.of(mappings, ["host"], "texts")
    assert Values.of(mappings, ["page.site"], "texts").source("page.site") == "page.site"


def test_an_alias_of_a_field_is_read_where_that_is():
    mappings = {"properties": {"at": {"type": "alias", "path": "site.keyword"}, "site": TEXT}}
    values = Values.of(mappings, ["at"], "texts")
    assert (values.source("at"), values.read({"_source": {"site": "a"}}, "at")) == ("site", ["a"])
    with pytest.raises(InputError, match="8 at most"):
        values.comparable_values("at", ["longer than eight"])


@pytest.mark.parametrize(("order", "first"), [("site.keyword", "3"), ("-site.keyword", "1")])
def test_regrouping_orders_by_a_multi_field(engine, index, pipeline, text, order, first):
    sites = [{}, {"site": "c"}, {"site": "b"}, {"site": "a"}]
    documents = [{"id": f"{at}", "body": text("a", at), **site} for at, site in enumerate(sites)]
    index_documents(engine, index, documents, pipeline, workers=1)
    regroup(engine, index, RegroupOptions("leader", order=order))
    hits = engine.search(index, {"size": 10})["hits"]["hits"]
    assert [hit["_id"] for hit in hits if hit["_source"]["_dedup"]["leader"]] == [first]


def test_an_order_field_without_values_is_refused(engine, index, pipeline, text):
    index_documents(engine, index, [{"id": "0", "body": text("a")}], pipeline, workers=1)
    with pytest.raises(ConfigError, match="no document of 'texts' has 'day'"):
        regroup(engine, index, RegroupOptions(order="-day"))
    with pytest.raises(ConfigError, match="names no field"):
        RegroupOptions(order="-")
    assert "group" not in engine.get(index, "0")["_source"]["_dedup"]


def test_equal_texts_without_a_value_in_the_scope_have_numbers_of_their_own(engine, index, pipeline, text):
    rules = Rules(scope=("site.keyword",))
    documents = [{"id": f"{at}", "body": text("a")} for at in range(7)]
    for _ in range(2):
        made = numbering(engine, rules)
        assert index_documents(engine, index, documents, pipeline, workers=1, groups=made).failed == 0
        found = groups(engine)
        assert len(set(found.values())) == len(documents)
    # Indexed again each has the number that it had.
    index_documents(engine, index, documents, pipeline, workers=1, groups=numbering(engine, rules))
    assert groups(engine) == found
    assert regroup(engine, index).counts.planned == 0


def test_a_gate_gives_equal_texts_without_a_value_in_the_scope_numbers_of_their_own(
    engine, index, pipeline, text
):
    with Gate(engine, index, Policy("tag", scope=("site.keyword",)), pipeline=pipeline) as gate:
        told = gate.add_all([{"id": f"{at}", "body": text("a")} for at in range(7)])
    assert len({verdict.group for verdict in told}) == len(told)


def test_a_document_without_a_value_has_one_number_of_its_own():
    made = Fingerprint("sf3-x", "en", 10, digest="0123")
    (own,) = numbers_of(made, [[]], "texts", "a")
    assert own not in numbers_of(made, [], "texts", "a")
    assert numbers_of(made, [()], "texts", "a") == (own,)
    assert numbers_of(made, [[]], "texts", "b") != (own,)
    assert len(numbers_of(made, [["x"]], "texts", "a")) > 1
