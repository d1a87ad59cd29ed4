"""What must stay apart: no signature, another scheme, another length, another scope."""

import pytest
from support.hits import SCHEME, Spec, hits_of

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import PRESETS
from shinglefold.rerank import FoldOptions, Scope, collapse


def shown(made, **options):
    return [group.representative for group in collapse(hits_of(made), SCHEME, FoldOptions(**options)).groups]


#: By rule: the hits, the options, and who is shown.
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
    "a time span to the one shown": (
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
    assert shown(made, **options) == expected


def test_hits_without_any_fingerprint_stay_separate():
    folded = collapse(
        [{"_id": "1", "_source": {"title": "a"}}, {"_id": "2"}, {"_id": "3", "fields": {}}], SCHEME
    )
    assert (len(folded.groups), folded.counts.unsigned) == (3, 3)


def test_different_schemes_are_never_compared_but_counted():
    folded = collapse(hits_of([Spec(), Spec(scheme="sf1-old"), Spec(scheme="sf1-old"), Spec()]), SCHEME)
    assert [group.members for group in folded.groups] == [(0, 3), (1,), (2,)]
    assert folded.counts.other_schemes == {"sf1-old": 2}


def test_languages_are_counted_and_keep_no_hits_apart():
    made = [Spec(lang="ru"), Spec(lang="uk"), Spec(lang="ru"), Spec(original=1, lang="ru")]
    assert collapse(hits_of(made), SCHEME).counts.languages == {"ru": 3, "uk": 1}
    assert shown(made) == [0, 3]


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
