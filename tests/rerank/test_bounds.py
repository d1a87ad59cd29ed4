"""Whatever a request or a stored fingerprint brings, its size is known before any work is done for it."""

import pytest
from support.hits import SCHEME, Spec, fingerprint_of, hits_of
from support.soon import soon

from shinglefold.errors import MOST, ConfigError, InputError, quote
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import FoldedSearch, FoldOptions, Preference, Scope, collapse
from shinglefold.rerank.explanation import explain, matched_passages
from shinglefold.rerank.request.fold_options import Explain

LONG = "9" * 5000
HUGE = 10**5000


@pytest.fixture
def folded(library):
    return FoldedSearch(library.engine, SCHEME)


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


@pytest.mark.parametrize("given", OPTIONS.values(), ids=OPTIONS)
def test_an_option_of_any_size_is_refused_at_once_and_hardly_quoted(library, folded, given):
    body = library.body(0, ext={"dedup": given()})
    with soon(), pytest.raises(ConfigError) as refused:
        folded.search("pages", body)
    assert len(str(refused.value)) < 2 * MOST + 300


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
}


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

    def tokens(text):
        looked_at.append(len(text))
        return []

    source = {"body": ["word " * 2_000_000] * 3}
    with soon():
        assert matched_passages(source, source, ["body"], tokens) == []
    assert sum(looked_at) <= 2_000_000


def test_ordinary_fingerprints_are_read_as_ever():
    stored = fingerprint_of(Spec()).to_field()
    assert Fingerprint.from_field(stored).to_field() == stored


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "'text'"),
        (7, "7"),
        (None, "None"),
        ({"a": [1, 2]}, "{'a': [1, 2]}"),
        (float("nan"), "nan"),
        ([1] * 20, "[1, 1, 1, 1, 1, 1, 1, 1, …]"),
        ([[[[[[1]]]]]], "[[[[[…]]]]]"),
    ],
)
def test_a_message_quotes_what_is_short_and_cuts_what_is_long(value, shown):
    assert quote(value) == shown


def test_a_message_tells_the_length_of_a_great_number():
    assert quote(HUGE) == "a number of about 5000 digits"


LARGE = {
    "text": "x" * 10_000_000,
    "object": {"y" * 300: "z" * 300},
    "lists": [["x" * 300] * 9] * 9,
    "bytes": b"x" * 900,
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_a_message_quotes_so_many_characters_at_most(value):
    with soon(walks=4):
        assert len(quote(value)) <= MOST


def test_what_takes_longer_than_its_bound_is_noticed():
    with pytest.raises(AssertionError, match="walks"), soon(walks=0.5):
        assert all(isinstance(one, int) for one in range(3_000_000))
