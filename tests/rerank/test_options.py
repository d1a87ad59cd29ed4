"""The options of a request: short forms, limits of size, names that nobody knows."""

from dataclasses import fields

import pytest
from support.hits import SCHEME, Spec, hits_of
from support.soon import soon

from shinglefold.errors import MOST, ConfigError, InputError
from shinglefold.grouping import Policy
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import FoldedSearch, FoldOptions, Preference, Scope, collapse
from shinglefold.rerank.explanation import explain, matched_passages
from shinglefold.rerank.request.arguments import read_source_filter
from shinglefold.rerank.request.fold_options import Explain
from shinglefold.rerank.similar import SimilarOptions


def test_every_option_can_be_said_in_json():
    told = FoldOptions.parse(
        {
            "min_shared": 2,
            "min_resemblance": 0.7,
            "min_length_ratio": 0.5,
            "linkage": "connected",
            "representative": [
                {"prefer": {"field": "host", "values": ["a.org"]}},
                {"newest": "published"},
                "longest",
            ],
            "members": {"size": 3, "_source": ["title"]},
            "window": 50,
            "max_window": 400,
            "scope": [{"field": "published", "within": "7d"}, "host"],
            "fold": False,
            "explain": True,
        }
    )
    assert told == FoldOptions(
        min_shared=2,
        min_resemblance=0.7,
        min_length_ratio=0.5,
        linkage="connected",
        representative=(
            Preference("prefer", "host", ("a.org",)),
            Preference("newest", "published"),
            Preference("longest"),
        ),
        members=3,
        member_source=["title"],
        window=50,
        max_window=400,
        scope=(Scope("published", 604800.0), Scope("host")),
        fold=False,
        explain=True,
    )


def test_short_forms_mean_the_same():
    told = FoldOptions.parse(
        {"representative": "prefer:host=a.org,b.org", "scope": "published:12h", "members": 0}
    )
    assert told.representative == (Preference("prefer", "host", ("a.org", "b.org")),)
    assert told.scope == (Scope("published", 43200.0),)
    assert told.members == 0


def test_what_is_not_said_is_as_in_the_base():
    base = FoldOptions(window=30, members=1)
    assert FoldOptions.parse({"members": 2}, base) == FoldOptions(window=30, members=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_resemblence": 0.5}, "'min_resemblance'"),
        ({"representatives": "rank"}, "'representative'"),
        ({"member_source": ["a"]}, "members"),
        ({"members": {"siz": 1}}, "'size'"),
        ({"scope": {"field": "a", "whithin": "7d"}}, "'within'"),
        ({"representative": {"prefer": {"field": "host", "value": ["a"]}}}, "'values'"),
        ({"linkage": "leaders"}, "'leader'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(given, said):
    with pytest.raises(ConfigError, match=said):
        FoldOptions.parse(given)


@pytest.mark.parametrize(
    "given",
    [
        {"min_shared": -1},
        {"min_shared": 1.5},
        {"min_resemblance": 1.01},
        {"min_resemblance": "0.5"},
        {"min_length_ratio": True},
        {"members": -1},
        {"members": "many"},
        {"window": 0},
        {"window": 1001},
        {"max_window": 10_001},
        {"window": 300, "max_window": 200},
        {"fold": "no"},
        {"explain": 1},
        {"scope": 7},
        {"scope": {"field": "date", "within": "a week"}},
        {"representative": {"a": "b", "c": "d"}},
        {"representative": {"prefer": {"field": "host", "values": "a.org"}}},
        [],
        "fold",
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(given):
    with pytest.raises(ConfigError):
        FoldOptions.parse(given)


@pytest.mark.parametrize("made", [FoldOptions, SimilarOptions])
@pytest.mark.parametrize("scope", ["host", ("host",), [Scope("host"), "lang"], None])
def test_a_scope_that_is_none_is_told_how_one_is_made(made, scope):
    with pytest.raises(ConfigError, match=r"scope: expected a tuple of Scope; Scope\.parse reads text"):
        made(scope=scope)
    assert made(scope=(Scope("host"),)).scope


def test_a_policy_of_choosing_whom_to_show_is_told_likewise():
    with pytest.raises(ConfigError, match=r"Preference\.parse reads text"):
        FoldOptions(representative="newest:date")


@pytest.mark.parametrize("scope", ["host", ("host", 5), None])
def test_the_scope_of_a_gate_is_a_list_of_fields(scope):
    with pytest.raises(ConfigError, match="scope: expected a list of strings"):
        Policy(scope=scope)
    assert Policy(scope=("host",)).scope == ("host",)


OWN = FoldOptions(scope=(Scope("host"),), members=3, window=100, max_window=500)
MAY = {
    "fold": False,
    "members": 2,
    "min_resemblance": 0.8,
    "min_length_ratio": 0.5,
    "window": 50,
    "max_window": 400,
    "cursor": True,
    "renew": True,
}
MAY_NOT = {
    "min_shared": 2,
    "linkage": "connected",
    "representative": "prefer:salary=1",
    "scope": "salary",
    "explain": {"passages": True, "fields": ["salary"]},
    "inner_hits": {"fields": ["salary"]},
    "mode": "native",
    "facets": "groups",
    "verify": "text",
    "on_trouble": "raise",
}


@pytest.mark.parametrize("name", MAY)
def test_a_visitor_may_set_what_shows_no_more(name):
    assert getattr(FoldOptions.untrusted({name: MAY[name]}, OWN), name) == MAY[name]


@pytest.mark.parametrize("name", MAY_NOT)
def test_a_visitor_may_not_name_fields_nor_choose_what_costs_more(name):
    with pytest.raises(ConfigError, match=f"'{name}' is reserved for the application"):
        FoldOptions.untrusted({name: MAY_NOT[name]}, OWN)


def test_every_option_is_either_the_visitors_or_the_applications():
    named = {one.name for one in fields(FoldOptions)} - {"closed"}
    # What an object `members` says beside its size.
    named -= {"member_source", "members_from", "member_filter"}
    assert named == MAY.keys() | MAY_NOT.keys()


@pytest.mark.parametrize("given", [{"from": "index"}, {"size": 1, "filter": {"match_all": {}}}])
def test_a_visitor_does_not_have_members_looked_for_beyond_the_results(given):
    with pytest.raises(ConfigError, match="of members is reserved for the application"):
        FoldOptions.untrusted({"members": given}, OWN)


@pytest.mark.parametrize("given", [{"members": 4}, {"window": 101}, {"max_window": 501}])
def test_a_visitor_has_no_more_attached_or_read_than_the_application(given):
    with pytest.raises(ConfigError, match="at most"):
        FoldOptions.untrusted(given, OWN)


def test_what_a_visitor_leaves_open_is_the_applications():
    told = FoldOptions.untrusted({"members": {"size": 1, "_source": ["title"]}}, OWN)
    assert (told.scope, told.window, told.members) == (OWN.scope, OWN.window, 1)
    assert read_source_filter(told.member_source).includes == ("title",)


def test_the_body_of_a_visitor_is_held_to_the_same(library):
    folded = FoldedSearch(library.engine, SCHEME)
    own = FoldOptions.untrusted({}, FoldOptions(window=100))
    body = library.body(0, ext={"dedup": {"scope": "salary"}})
    with pytest.raises(ConfigError, match="'scope' is reserved for the application"):
        folded.search("pages", body, own)
    body = library.body(0, ext={"dedup": {"window": 20}})
    assert folded.search("pages", body, own)["hits"]["hits"]


def test_no_body_can_open_what_was_closed():
    with pytest.raises(ConfigError, match="unknown dedup option 'closed'"):
        FoldOptions.parse({"closed": False}, FoldOptions.untrusted({}))


LONG = "9" * 5000
HUGE = 10**5000


def nested(levels):
    query = {"term": {"list": 0}}
    for _ in range(levels):
        query = {"bool": {"must": [query]}}
    return query


MANY = 100_000
# Made where they are tested: together they take 180 MB, which each process would keep to its end.
OPTIONS = {
    "scopes": lambda: {"scope": ["host"] * MANY},
    "scopes of different fields": lambda: {"scope": [f"field{number}" for number in range(MANY)]},
    "a scope of many characters": lambda: {"scope": "host." * MANY},
    "a span of many digits": lambda: {"scope": "published:" + "9" * MANY + "d"},
    "policies": lambda: {"representative": ["rank"] * MANY},
    "a policy of many characters": lambda: {"representative": "x" * MANY},
    "values of a policy": lambda: {"representative": "prefer:host=" + "a," * MANY},
    "values of a policy in JSON": lambda: {
        "representative": {"prefer": {"field": "host", "values": ["a"] * MANY}}
    },
    "a field that is none": lambda: {"representative": {"prefer": {"field": ["a"] * MANY, "values": ["a"]}}},
    "fields of passages": lambda: {"explain": {"passages": True, "fields": ["title"] * MANY}},
    "a field of many dots": lambda: {"explain": {"passages": True, "fields": ["a." * MANY]}},
    "patterns of members": lambda: {"members": {"size": 1, "_source": ["a"] * MANY}},
    "unknown options": lambda: {f"option{number}": 1 for number in range(MANY)},
    "an unknown option of many characters": lambda: {"x" * 10_000_000: 1},
    "a number of 5,000 digits": lambda: {"members": HUGE},
    "a linkage of 5,000 digits": lambda: {"linkage": HUGE},
    "a share of 5,000 digits": lambda: {"min_resemblance": HUGE},
    "a list for a truth": lambda: {"fold": [0] * MANY},
    "an explanation of many parts": lambda: {"explain": ["x"] * MANY},
}


BODIES = {
    "ext that is a list": lambda: {"ext": []},
    "ext that is a long list": lambda: {"ext": [1] * 1_000_000},
    "ext that is a text": lambda: {"ext": "x" * 10_000_000},
    "options that are a list": lambda: {"ext": {"dedup": [1] * 1_000_000}},
    "a query nested deeply": lambda: {"query": nested(20_000)},
    "lists nested deeply": lambda: {"ext": {"dedup": eval("[" * 150 + "]" * 150)}},
    "a size of 5,000 digits": lambda: {"size": HUGE},
    "a from of 5,000 digits": lambda: {"from": HUGE},
    "a term of 5,000 digits": lambda: {"query": {"term": {"list": HUGE}}},
    **{name: lambda given=given: {"ext": {"dedup": given()}} for name, given in OPTIONS.items()},
}


@pytest.mark.long(every=12)
@pytest.mark.parametrize("given", BODIES.values(), ids=BODIES)
def test_a_body_of_any_size_is_refused_at_once_and_hardly_quoted(folded, given):
    body = given()
    with soon(), pytest.raises(ConfigError) as refused:
        folded.search("pages", body)
    assert len(str(refused.value)) < 2 * MOST + 300


def test_what_is_given_in_python_is_bounded_too():
    with pytest.raises(ConfigError, match="too many"):
        FoldOptions(scope=(Scope("host"),) * 17)
    with pytest.raises(ConfigError, match="too many"):
        FoldOptions(representative=(Preference("rank"),) * 17)
    with pytest.raises(ConfigError, match="too many"):
        Explain(fields=("title",) * 33)


STORED = {
    "supershingles": lambda: {"_dedup.supershingles": [f"word{number}" for number in range(1_000_000)]},
    "supershingles that are none": lambda: {"_dedup.supershingles": [{}]},
    "a signature of 10 MB": lambda: {"_dedup.signature": ["A" * 10_000_000]},
    "a digest of 10 MB": lambda: {"_dedup.digest": [f"{SCHEME.id}.ru.300." + "x" * 10_000_000]},
    "a digest of many parts": lambda: {"_dedup.digest": ["." * 10_000_000]},
    "a language of 10 MB": lambda: {"_dedup.digest": [f"{SCHEME.id}." + "x" * 10_000_000 + ".300.x"]},
    "a scheme of 10 MB": lambda: {"_dedup.digest": ["x" * 10_000_000 + ".ru.300.x"]},
    "shingles of 5,000 digits": lambda: {"_dedup.digest": [f"{SCHEME.id}.ru.{LONG}.x"]},
    "shingles that are a great number": lambda: {"_dedup.digest": ["x"], "_dedup.shingles": [HUGE]},
    "shingles without end": lambda: {"_dedup.digest": ["x"], "_dedup.shingles": [float("inf")]},
}


@pytest.mark.long(every=5)
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_a_stored_fingerprint_of_any_size_is_unreadable_and_the_others_fold(stored):
    hits = hits_of([Spec(changed=0), Spec(changed=0, seed=1), Spec(changed=3)])
    hits[1]["fields"] |= stored()
    with soon():
        found = collapse(hits, SCHEME, FoldOptions(min_shared=1, scope=(Scope("host"),)))
        told = explain(hits[0], hits[1], SCHEME)
    assert [group.members for group in found.groups] == [(0, 2), (1,)]
    assert found.counts.unreadable == 1
    assert not found.counts.other_schemes
    assert told.keys() == {"_index", "_id"}


@pytest.mark.long(every=5)
@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_why_a_fingerprint_is_unreadable_is_hardly_quoted(stored):
    fields = {name.removeprefix("_dedup."): value for name, value in stored().items()}
    with soon(), pytest.raises(InputError) as refused:
        Fingerprint.from_field({"scheme": SCHEME.id, "lang": "ru", "shingles": 3} | fields)
    assert len(str(refused.value)) < 2 * MOST


DATES = {
    "digits": LONG,
    "a number of 5,000 digits": HUGE,
    "a number as a long text": "9" * 10_000_000,
    "infinite": float("inf"),
    "not a number": float("nan"),
    "a digit of another kind": "²",
    "the first day": "0001-01-01T00:00:00+14:00",
}


@pytest.mark.long(every=7)
@pytest.mark.parametrize("value", DATES.values(), ids=DATES)
def test_a_date_that_is_none_is_in_no_span(value):
    hits = hits_of([Spec(published=0), Spec(published=0)])
    hits[1]["fields"]["published"] = [value]
    options = FoldOptions(
        scope=(Scope.parse("published:7d"),), representative=(Preference("newest", "published"),)
    )
    with soon():
        assert len(collapse(hits, SCHEME, options).groups) == 2


def test_of_a_text_without_end_no_more_is_looked_at_than_is_aligned():
    looked_at = []

    def tokens(text, _):
        looked_at.append(len(text))
        return []

    source = {"body": ["word " * 2_000_000] * 3}
    with soon():
        assert matched_passages(source, source, ["body"], tokens) == []
    assert sum(looked_at) <= 2_000_000


def test_what_takes_longer_than_its_bound_is_noticed():
    with pytest.raises(AssertionError, match="walks"), soon(walks=0.5):
        assert all(isinstance(one, int) for one in range(3_000_000))
