"""Whom a group shows."""

from importlib.metadata import EntryPoint

import pytest
from support.hits import SCHEME, Spec, hits_of

from shinglefold import registry
from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldOptions, RepresentativePolicy, collapse


def shown(hits, *representative):
    options = FoldOptions.parse({"representative": list(representative)})
    (group,) = collapse(hits, SCHEME, options).groups
    return group.representative


@pytest.fixture
def copies():
    hits = hits_of(
        [Spec(published=5, shingles=300), Spec(published=9, shingles=330), Spec(published=1, shingles=310)]
    )
    urls = ("http://a.org/page", "https://b.org/a/long/page", "https://c.org/p")
    for hit, url in zip(hits, urls, strict=True):
        hit["fields"]["url"] = [url]
        hit["fields"]["host"] = [url.split("/")[2]]
    return hits


@pytest.mark.parametrize(
    ("representative", "expected"),
    [
        ("rank", 0),
        ("newest:published", 1),
        ("oldest:published", 2),
        ("longest", 1),
        ("prefer:host=c.org,a.org", 2),
        ("prefer:host=nowhere.org", 0),
        ("shortest_url", 2),
        ("https_first:url", 1),
    ],
)
def test_a_policy_chooses(copies, representative, expected):
    assert shown(copies, representative) == expected


@pytest.mark.parametrize(("value", "written"), [(4.0, "4"), (4.0, "4.0"), (4, "4"), (True, "true")])
def test_a_preferred_number_or_flag_may_be_written_as_in_documents(copies, value, written):
    copies[1]["fields"]["host"] = [value]
    assert shown(copies, f"prefer:host=other,{written}") == 1


def test_of_several_dates_the_newest_or_the_oldest_counts(copies):
    copies[2]["fields"]["published"] = [0, 20_000, "no date"]
    assert (shown(copies, "newest:published"), shown(copies, "oldest:published")) == (2, 2)
    copies[0]["fields"]["published"] = [30_000, -5]
    assert (shown(copies, "newest:published"), shown(copies, "oldest:published")) == (0, 0)


def test_a_later_policy_decides_where_an_earlier_one_does_not(copies):
    assert shown(copies, "https_first", "shortest_url") == 2
    assert shown(copies, "shortest_url", "https_first") == 2
    assert shown(copies, "https_first", "newest:published") == 1


@pytest.mark.parametrize(
    "policy", ["newest:published", "oldest:published", "shortest_url", "prefer:host=b.org"]
)
def test_a_hit_without_a_value_is_chosen_last(copies, policy):
    for name in ("published", "url", "host"):
        del copies[0]["fields"][name]
    assert shown(copies, policy) != 0


@pytest.mark.parametrize(("policy", "expected"), [("newest:published", 1), ("oldest:published", 0)])
def test_the_first_moment_of_1970_is_a_date_like_others(copies, policy, expected):
    copies[0]["fields"]["published"] = [0]
    copies[1]["fields"]["published"] = [1]
    del copies[2]["fields"]["published"]
    assert shown(copies, policy) == expected


def test_dates_without_a_meaning_are_chosen_last(copies):
    copies[0]["fields"]["published"] = ["some day"]
    assert shown(copies, "oldest:published") == 2


def test_the_place_is_that_of_the_best_ranked():
    made = [Spec(original=1, published=1), Spec(original=2, published=2), Spec(original=1, published=3)]
    options = FoldOptions.parse({"representative": "newest:published"})
    assert collapse(hits_of(made), SCHEME, options).groups == ((2, (0, 2)), (1, (1,)))


def test_a_member_that_does_not_match_the_one_shown_stands_for_itself():
    """The first matches both others, which do not match each other."""
    made = [Spec(), Spec(changed=50, seed=2, published=1), Spec(changed=50, seed=3, published=2)]
    assert collapse(hits_of(made), SCHEME).groups == ((0, (0, 1, 2)),)
    options = FoldOptions.parse({"representative": "newest:published"})
    assert collapse(hits_of(made), SCHEME, options).groups == ((2, (0, 2)), (1, (1,)))


@pytest.mark.parametrize("policy", ["newest", "oldest", "prefer", "prefer:host"])
def test_a_policy_without_what_it_needs_is_refused(policy):
    with pytest.raises(ConfigError, match=policy.split(":")[0]):
        collapse([], SCHEME, FoldOptions.parse({"representative": policy}))


def test_an_unknown_policy_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="'newest'"):
        collapse([], SCHEME, FoldOptions.parse({"representative": "newst:published"}))


def shortest_title(preference):
    field = preference.field or "title"
    return RepresentativePolicy(
        lambda one: min(map(len, one.hit["fields"].get(field, ["~" * 999]))), (field,)
    )


@pytest.fixture
def install(monkeypatch):
    """Install a policy under the name ``theirs``."""

    def done(make):
        point = EntryPoint("theirs", f"{__name__}:theirs", registry.REPRESENTATIVES)
        monkeypatch.setattr(EntryPoint, "load", lambda self: make)
        monkeypatch.setattr(
            registry, "entry_points_of", lambda group: [point] if group == registry.REPRESENTATIVES else []
        )

    return done


def test_a_policy_of_others_is_found_by_its_entry_point(copies, install):
    install(shortest_title)
    copies[1]["fields"]["title"] = ["short"]
    assert shown(copies, "theirs") == 1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda preference: preference["field"], r"'theirs' fails: TypeError\("),
        (lambda _: RepresentativePolicy(lambda one: 1 / 0), r"'theirs' fails: ZeroDivisionError\("),
        (lambda _: lambda one: one.rank, "'theirs' returns function, expected a RepresentativePolicy"),
        (lambda _: RepresentativePolicy(lambda one: None if one.rank else 1), "costs that can't be compared"),
    ],
    ids=["making", "cost", "no policy", "no order"],
)
def test_a_fault_of_a_policy_of_others_is_told_as_its_own(copies, install, make, why):
    install(make)
    with pytest.raises(ConfigError, match=why):
        shown(copies, "theirs")


def test_what_a_policy_of_others_says_itself_is_told_as_it_is(copies, install):
    def refuses(preference):
        raise ConfigError("theirs needs a field")

    install(refuses)
    with pytest.raises(ConfigError, match=r"^theirs needs a field$"):
        shown(copies, "theirs")
