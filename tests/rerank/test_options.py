"""The options of a request: short forms, limits, names that nobody knows."""

import pytest

from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldOptions, Preference, Scope


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
            "across_languages": True,
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
        across_languages=True,
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
