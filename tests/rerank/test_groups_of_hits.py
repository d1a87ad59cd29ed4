"""Groups of hits: by leader and by chains, what stays apart, and whom a group shows."""

import random
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, connected_groups, hits_of, leader_groups, match, specs
from support.servers.choose import examples

from shinglefold import registry
from shinglefold.errors import ConfigError
from shinglefold.model.scheme import PRESETS
from shinglefold.rerank import FoldOptions, Preference, RepresentativePolicy, Scope, collapse

policies = st.sampled_from(
    [
        (),
        (Preference("newest", "published"),),
        (Preference("oldest", "published"),),
        (Preference("longest"),),
        (Preference("prefer", "host", ("b.org", "a.org")), Preference("newest", "published")),
    ]
)


@given(specs)
@settings(max_examples=examples(200), deadline=None)
def test_groups_equal_those_of_the_exhaustive_comparison(made):
    folded = collapse(hits_of(made), SCHEME)
    assert [list(group.members) for group in folded.groups] == leader_groups(made)
    assert all(group.representative == group.members[0] for group in folded.groups)


@given(
    specs, st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0]), st.sampled_from([0.0, 0.5, 0.95]), st.integers(0, 5)
)
@settings(max_examples=examples(100), deadline=None)
def test_thresholds_of_the_request_decide(made, least, ratio, shared):
    options = FoldOptions(min_resemblance=least, min_length_ratio=ratio, min_shared=shared)
    folded = collapse(hits_of(made), SCHEME, options)
    expected = leader_groups(made, least=least, ratio=ratio, shared=shared)
    assert [list(group.members) for group in folded.groups] == expected


@given(specs, policies)
@settings(max_examples=examples(200), deadline=None)
def test_every_member_matches_the_one_shown_and_no_two_shown_match(made, preferences):
    groups = collapse(hits_of(made), SCHEME, FoldOptions(representative=preferences)).groups
    for group in groups:
        assert group.representative in group.members
        assert all(
            match(made[group.representative], made[member])
            for member in group.members
            if member != group.representative
        )
    shown = [made[group.representative] for group in groups]
    assert not any(match(a, b) for place, a in enumerate(shown) for b in shown[place + 1 :])


@given(specs, policies)
@settings(max_examples=examples(100), deadline=None)
def test_every_hit_is_in_one_group_and_groups_stand_at_their_best_rank(made, preferences):
    groups = collapse(hits_of(made), SCHEME, FoldOptions(representative=preferences)).groups
    assert sorted(member for group in groups for member in group.members) == list(range(len(made)))
    places = [group.members[0] for group in groups]
    assert places == sorted(places)
    assert all(list(group.members) == sorted(group.members) for group in groups)


@given(specs)
@settings(max_examples=50, deadline=None)
def test_hits_are_read_from_the_source_as_from_doc_values(made):
    hits = hits_of(made)
    stored = [
        {"_index": "pages", "_id": hit["_id"], "_source": {"_dedup": _nested(hit["fields"])}} for hit in hits
    ]
    assert collapse(stored, SCHEME) == collapse(hits, SCHEME)


def _nested(fields):
    own = {
        name.removeprefix("_dedup."): values for name, values in fields.items() if name.startswith("_dedup.")
    }
    return {name: values if name == "supershingles" else values[0] for name, values in own.items()}


@pytest.mark.parametrize("seed", range(4))
def test_among_many_alike_hits_length_language_scheme_and_signature_still_decide(seed):
    rng = random.Random(seed)
    made = [
        Spec(
            changed=rng.choice([0, 5, 20, 28, 31]),
            seed=rng.randrange(1000),
            shingles=rng.choice([300, 300, 360, 449, 450, 451, 900]),
            lang=rng.choice(["ru", "ru", "uk"]),
            digest=rng.choice(["", "", "", "x"]),
            signed=rng.random() > 0.1,
            scheme=SCHEME.id if rng.random() > 0.1 else "sf1-other",
        )
        for _ in range(90)
    ]
    folded = collapse(hits_of(made), SCHEME)
    assert [list(group.members) for group in folded.groups] == leader_groups(made)


def test_a_list_longer_than_a_block_is_folded_as_one():
    made = [Spec(original=number % 700, changed=20, seed=number, digest="") for number in range(1500)]
    folded = collapse(hits_of(made), SCHEME)
    assert len(folded.groups) == 700
    assert folded.groups[5].members == (5, 705, 1405)
    assert folded.folded == 800


CONNECTED = FoldOptions(linkage="connected")


@given(specs)
@settings(max_examples=examples(100), deadline=None)
def test_groups_are_the_connected_components(made):
    folded = collapse(hits_of(made), SCHEME, CONNECTED)
    assert [list(group.members) for group in folded.groups] == connected_groups(made)


def test_a_chain_is_one_group_where_a_leader_would_make_two():
    far = Spec(changed=70, seed=1)
    between = Spec(changed=0)
    other = Spec(changed=50, seed=2)
    chain = hits_of([other, between, Spec(changed=50, seed=3)])
    assert len(collapse(chain, SCHEME, CONNECTED).groups) == 1
    assert len(collapse(chain, SCHEME).groups) == 2
    assert len(collapse(hits_of([between, far]), SCHEME, CONNECTED).groups) == 2


def test_a_policy_chooses_among_all_members():
    made = [Spec(changed=50, seed=2, published=1), Spec(published=2), Spec(changed=50, seed=3, published=3)]
    options = FoldOptions(linkage="connected", representative=(Preference("newest", "published"),))
    assert collapse(hits_of(made), SCHEME, options).groups == ((2, (0, 1, 2)),)


def shown_of_each(made, **options):
    return [group.representative for group in collapse(hits_of(made), SCHEME, FoldOptions(**options)).groups]


#: By rule: the hits, the options, and who is shown_of_each.
_CASES = {
    "an empty digest is no text": (
        [Spec(signed=False, digest="x"), Spec(signed=False, digest="x"), Spec(signed=False)],
        {},
        [0, 2],
    ),
    "an equal text decides": ([Spec(digest="x"), Spec(original=1, digest="x", shingles=9000)], {}, [0]),
    "texts of two schemes": ([Spec(digest="x"), *[Spec(digest="x", scheme="sf1-old")] * 2], {}, [0, 1]),
    "lengths": ([Spec(shingles=100), Spec(shingles=200)], {}, [0, 1]),
    "any length": ([Spec(shingles=100), Spec(shingles=200)], {"min_length_ratio": 0.0}, [0]),
    "hosts": (
        [Spec(host="a"), Spec(host="b"), Spec(host="a"), Spec(host=None), Spec(host=None, digest="x")],
        {"scope": (Scope("host"),)},
        [0, 1, 3, 4],
    ),
    "whole numbers of two indices": (
        [Spec(host=host) for host in (5, 5.0, 5.5, 2**53, float(2**53))],
        {"scope": (Scope("host"),)},
        [0, 2, 3],
    ),
    "a time span to the one shown_of_each": (
        [Spec(published=0), Spec(published=80), Spec(published=150), Spec(published=None)],
        {"scope": (Scope("published", within=100.0),)},
        [0, 2, 3],
    ),
    "several scopes": (
        [Spec(host="a", published=0), Spec(host="a", published=900), Spec(host="a", published=10)],
        {"scope": (Scope("host"), Scope("published", 100.0))},
        [0, 1],
    ),
}


@pytest.mark.parametrize(("made", "options", "expected"), _CASES.values(), ids=_CASES)
def test_who_is_shown_where_hits_stay_separate(made, options, expected):
    assert shown_of_each(made, **options) == expected


def test_hits_without_any_fingerprint_stay_separate():
    folded = collapse(
        [{"_id": "1", "_source": {"title": "a"}}, {"_id": "2"}, {"_id": "3", "fields": {}}], SCHEME
    )
    assert (len(folded.groups), folded.counts.unsigned) == (3, 3)


def test_languages_are_counted_and_keep_no_hits_apart():
    made = [Spec(lang="ru"), Spec(lang="uk"), Spec(lang="ru"), Spec(original=1, lang="ru")]
    assert collapse(hits_of(made), SCHEME).counts.languages == {"ru": 3, "uk": 1}
    assert shown_of_each(made) == [0, 3]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("signature", "not base64 at all!"),
        ("signature", "AAAA"),
        ("signature", 12),
        ("digest", []),
        ("digest", 12),
        ("digest", {"id": 1}),
        ("digest", f"{SCHEME.id}.ru.{2**60}.x"),
    ],
)
def test_a_damaged_fingerprint_counts_as_unreadable_and_folds_with_nothing(part, value):
    hits = hits_of([Spec(digest="x"), Spec(digest="x")])
    for other in ("scheme", "lang", "shingles"):
        del hits[1]["fields"][f"_dedup.{other}"]
    hits[1]["fields"][f"_dedup.{part}"] = value if isinstance(value, list) else [value]
    folded = collapse(hits, SCHEME)
    assert len(folded.groups) == 2
    assert folded.counts.unreadable == 1


def test_dates_may_be_iso_text():
    hits = hits_of([Spec(), Spec(), Spec()])
    for hit, date in zip(
        hits, ("2024-05-01T00:00:00.000Z", "2024-05-01T23:00:00+00:00", "2024-05-03"), strict=True
    ):
        hit["fields"]["published"] = [date]
    scope = (Scope.parse("published:1d"),)
    assert [g.members for g in collapse(hits, SCHEME, FoldOptions(scope=scope)).groups] == [(0, 1), (2,)]


def test_asking_for_nothing_is_refused_because_it_would_fold_everything():
    with pytest.raises(ConfigError, match="would fold everything"):
        collapse([], SCHEME, FoldOptions(min_resemblance=0.0, min_shared=0))


def test_a_scheme_that_decides_by_supershingles_is_folded_by_them():
    scheme = PRESETS["fetterly"]
    words = [
        [f"{slot:02}x" for slot in range(6)],
        [f"{slot:02}{'x' if slot < 2 else 'y'}" for slot in range(6)],
    ]
    words.append([f"{slot:02}{'x' if slot < 1 else 'z'}" for slot in range(6)])
    hits = [_fetterly(scheme, rank, keywords) for rank, keywords in enumerate(words)]
    assert [group.members for group in collapse(hits, scheme).groups] == [(0, 1), (2,)]


def _fetterly(scheme, rank, keywords):
    fields = {
        "scheme": [scheme.id],
        "shingles": [50],
        "signature": ["A" * (4 * 28)],
        "supershingles": keywords,
    }
    return {"_id": str(rank), "fields": {f"_dedup.{name}": values for name, values in fields.items()}}


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


@pytest.mark.parametrize(("one", "other"), [(True, "true"), (False, "false"), (5, 5.0), (5, "5")])
def test_a_scope_may_be_written_as_a_value_or_as_its_text(one, other):
    hits = hits_of([Spec(original=1), Spec(original=1)])
    for hit, value in zip(hits, (one, other), strict=True):
        hit["fields"]["host"] = [value]
    assert len(collapse(hits, SCHEME, FoldOptions.parse({"scope": "host"})).groups) == 1
