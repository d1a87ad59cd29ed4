"""Every form of the field that an engine takes for it is found, and left out where it is foreign."""

import copy
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, fingerprint_of
from support.servers.choose import examples

from shinglefold.errors import InputError
from shinglefold.model.stored_fingerprint import DecodeProblems, Decoder, stored_parts, without_fingerprint
from shinglefold.model.values import LONGEST_DIGEST, Fingerprint

FORMS = {
    "nested": {"_dedup": {"digest": "x"}},
    "flat": {"_dedup.digest": "x"},
    "in a list": {"_dedup": [{"digest": "x"}]},
    "in a list of lists": {"_dedup": [[{"digest": "x"}]]},
}
DOTTED = {
    "nested": {"meta": {"_dedup": {"digest": "x"}}},
    "flat": {"meta._dedup.digest": "x"},
    "flat, then nested": {"meta._dedup": {"digest": "x"}},
    "nested, then flat": {"meta": {"_dedup.digest": "x"}},
    "in a list": {"meta": [{"n": 1}, {"_dedup.digest": "x"}]},
}
FOREIGN = {
    "dedupe": 1,
    "dedup_": {"digest": 2},
    "a": {"_dedup": 3},
    "metadata": {"_dedup": 4},
    "body": "_dedup.",
}


@pytest.mark.parametrize(
    ("path", "form"),
    [*(("_dedup", form) for form in FORMS.values()), *(("meta._dedup", form) for form in DOTTED.values())],
)
def test_the_field_is_found_and_left_out_in_every_form(path, form):
    document = {**FOREIGN, **form}
    before = copy.deepcopy(document)
    assert stored_parts(document, path) == {"digest": "x"}
    bare = without_fingerprint(document, path)
    assert stored_parts(bare, path) == {}
    assert {name: bare[name] for name in FOREIGN} == FOREIGN
    assert document == before


def test_what_stands_beside_the_field_stays():
    document = {"meta": {"_dedup": {"digest": "x"}, "site": "a"}, "meta.lang": "ru"}
    assert without_fingerprint(document, "meta._dedup") == {"meta": {"site": "a"}, "meta.lang": "ru"}


@pytest.mark.parametrize("beside", [{"dedupe": 1}, {"a\ndedup": 1}, {7: 1}, {7: 1, "_dedup ": {}}])
def test_names_that_nearly_are_the_field_and_names_that_are_no_text_stay(beside):
    assert without_fingerprint(beside, "_dedup") is beside
    assert without_fingerprint({**beside, "_dedup": {}, "_dedup.digest": "x"}, "_dedup") == beside


def test_a_document_without_the_field_is_the_same_object():
    document = {**FOREIGN, "list": [{"x": 1}]}
    assert without_fingerprint(document, "_dedup") is document


@pytest.mark.parametrize("value", [None, 5, "text", [1]])
def test_whatever_has_the_name_of_the_field_is_left_out(value):
    assert without_fingerprint({"_dedup": value, "n": 1}, "_dedup") == {"n": 1}
    assert stored_parts({"_dedup": value}, "_dedup") == {}


def test_parts_that_are_lists_are_joined_and_single_ones_stay():
    twice = {"_dedup": [{"supershingles": ["a", "b"], "lang": "ru"}, {"supershingles": "c"}]}
    assert stored_parts(twice, "_dedup") == {"supershingles": ["a", "b", "c"], "lang": "ru"}


def test_a_part_in_two_places_has_both_values():
    both = {"_dedup": {"digest": "x", "lang": "ru"}, "_dedup.digest": "y", "_dedup.supershingles": ["a"]}
    assert stored_parts(both, "_dedup") == {"digest": ["x", "y"], "lang": "ru", "supershingles": ["a"]}


@pytest.mark.parametrize("name", ["digest", "signature", "scheme", "lang", "shingles"])
def test_a_fingerprint_with_two_values_is_unreadable(name):
    stored = fingerprint_of(Spec()).to_field()
    twice = {**stored, name: [stored[name], stored[name]]}
    with pytest.raises(InputError, match=f"its {name} has 2 values"):
        Fingerprint.from_field(twice)


@pytest.mark.parametrize("name", ["digest", "signature"])
def test_among_columns_too_and_the_others_are_read(name):
    made = replace(fingerprint_of(Spec()), digest="d")
    stored, stored_signature = made.to_field(), made.signature
    rows = [
        {f"_dedup.{part}": [value] for part, value in stored.items() if part in ("digest", "signature")}
        for _ in range(3)
    ]
    rows[1][f"_dedup.{name}"] *= 2
    decoder, troubles = Decoder(SCHEME, "_dedup"), DecodeProblems()
    columns = decoder.decode(rows, decoder.keywords(rows), troubles)
    assert (troubles.unreadable, troubles.unsigned) == (1, 0)
    blank = bytes(decoder.size)
    assert columns.signatures == stored_signature + blank + stored_signature
    assert list(columns.shingles) == [stored["shingles"], -1, stored["shingles"]]
    assert columns.digests[0] == columns.digests[2] != columns.digests[1]


GOOD = replace(fingerprint_of(Spec()), digest="d").to_field()


def _decoded(**parts: object) -> tuple[bytes, int, DecodeProblems]:
    good = {f"_dedup.{part}": [GOOD[part]] for part in ("digest", "signature")}
    rows = [good, good | {f"_dedup.{part}": value for part, value in parts.items()}]
    decoder, troubles = Decoder(SCHEME, "_dedup"), DecodeProblems()
    columns = decoder.decode(rows, decoder.keywords(rows), troubles)
    assert columns.shingles[0] == GOOD["shingles"]
    return columns.signatures[decoder.size :], columns.shingles[1], troubles


def test_a_row_of_another_scheme_is_compared_with_none_and_told():
    signature, shingles, troubles = _decoded(digest=[GOOD["digest"].replace(SCHEME.id, "sf1-0")])
    assert (set(signature), shingles) == ({0}, -1)
    assert troubles == DecodeProblems(other_schemes=Counter({"sf1-0": 1}))


@pytest.mark.parametrize(
    "keywords", [["x" * (LONGEST_DIGEST + 1)], [7], ["x"] * (SCHEME.sketch.groups + 1), "x", {"x": 1}]
)
def test_a_row_whose_keywords_no_document_can_have_is_unreadable(keywords):
    assert _decoded(supershingles=["x" * LONGEST_DIGEST])[2] == DecodeProblems()
    signature, shingles, troubles = _decoded(supershingles=keywords)
    assert (set(signature), shingles, troubles.unreadable) == ({0}, -1, 1)


SIGNATURES = st.sampled_from(
    [
        GOOD["signature"],
        GOOD["signature"][:-4] + "AAAA",
        "",
        GOOD["signature"][:-1] + "=",
        GOOD["signature"][:-4] + "====",
        "=" + GOOD["signature"][1:],
        "!!!!" + GOOD["signature"][4:],
        "é" + GOOD["signature"][1:],
        GOOD["signature"] + "\n",
        GOOD["signature"] + "AAAA",
        GOOD["signature"][4:],
        7,
    ]
)
#: Counts and languages that no stored digest has, or that int() reads.
HEADS = ["ru.+3", "ru. 3", "ru.3_0", "ru.-3", "ru.", "ru.٣", "ru.²", ".3", "r.u.3"]
DIGESTS = st.sampled_from(
    [GOOD["digest"], GOOD["digest"].replace(SCHEME.id, "sf1-0"), "x", "", "a.b.c.d.e.f", "...", "\n", 7]
    + [f"{SCHEME.id}.{head}.x" for head in HEADS]
)


ROWS = st.fixed_dictionaries({}, optional={"digest": DIGESTS, "signature": SIGNATURES})


@pytest.mark.parametrize("head", HEADS)
def test_a_digest_is_read_among_sound_ones_as_it_is_alone(head):
    digest = f"{SCHEME.id}.{head}.x"
    try:
        shingles = Fingerprint.from_field(
            {**GOOD, "digest": digest, "shingles": None, "lang": None, "scheme": None}
        )
    except InputError:
        assert _decoded(digest=[digest])[1:] == (-1, DecodeProblems(unreadable=1))
    else:
        assert _decoded(digest=[digest])[1:] == (shingles.shingles, DecodeProblems())


@given(st.lists(ROWS, max_size=12))
@settings(max_examples=examples(300), deadline=None)
def test_rows_are_read_together_as_they_are_one_by_one(stored):
    rows = [{f"_dedup.{part}": [value] for part, value in one.items()} for one in stored]
    decoder, together, apart = Decoder(SCHEME, "_dedup"), DecodeProblems(), DecodeProblems()
    columns = decoder.decode(rows, decoder.keywords(rows), together)
    alone = [decoder.decode([row], decoder.keywords([row]), apart) for row in rows]
    assert columns.signatures == b"".join(one.signatures for one in alone)
    for part in ("shingles", "languages", "digests"):
        assert list(getattr(columns, part)) == [value for one in alone for value in getattr(one, part)]
    assert together == apart
