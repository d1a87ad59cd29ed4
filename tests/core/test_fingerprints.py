"""Fingerprints: their field, what is stored of them, and their seal."""

import copy
import json
import pickle
from base64 import b64encode
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, fingerprint_of
from support.servers.choose import examples

from shinglefold.errors import ConfigError, InputError
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.model.stored_fingerprint import DecodeProblems, Decoder, stored_parts, without_fingerprint
from shinglefold.model.values import LONGEST_DIGEST, Fingerprint

FULL = Fingerprint("sf1-x", "ru", 120, "digest", ("a", "b"), bytes(range(84)))


@pytest.mark.parametrize(
    "fingerprint", [FULL, Fingerprint("sf1-x", "und", 0), Fingerprint("sf1-x", "en", 1, "d")]
)
def test_a_stored_fingerprint_is_read_back(fingerprint):
    stored = json.loads(json.dumps(fingerprint.to_field()))
    assert Fingerprint.from_field(stored) == fingerprint


def test_doc_values_are_read_too():
    fields = {name: value if isinstance(value, list) else [value] for name, value in FULL.to_field().items()}
    assert Fingerprint.from_field(fields) == FULL


@pytest.mark.parametrize("size", [63, 64, 65])
def test_doc_values_without_padding_are_read_too(size):
    fingerprint = Fingerprint("sf1-x", "ru", 120, "digest", ("a", "b"), bytes(range(size)))
    fields = fingerprint.to_field()
    assert Fingerprint.from_field(fields | {"signature": [fields["signature"].rstrip("=")]}) == fingerprint


def test_without_a_signature_there_are_no_supershingles():
    assert Fingerprint("sf1-x", "en", 1, "d").to_field() == {
        "scheme": "sf1-x",
        "lang": "en",
        "shingles": 1,
        "digest": "sf1-x.en.1.d",
    }


@pytest.mark.parametrize("lang", ["ru", "zh-Hant.old"])
def test_the_stored_digest_alone_tells_what_a_window_needs(lang):
    whole = Fingerprint("sf1-x", lang, 120, "digest", (), bytes(range(84)))
    stored = whole.to_field()
    assert Fingerprint.from_field({name: stored[name] for name in ("digest", "signature")}) == whole


def test_texts_without_a_digest_still_tell_the_rest():
    assert Fingerprint("sf1-x", "und", 0).to_field()["digest"] == "sf1-x.und.0."


def test_parts_of_their_own_go_before_the_digest():
    told = Fingerprint.from_field({"scheme": "x", "lang": "uk", "shingles": 2, "digest": "of another kind"})
    assert told == Fingerprint("x", "uk", 2, "of another kind")


@pytest.mark.parametrize(
    "field",
    [
        {},
        {"scheme": []},
        {"digest": "abc"},
        {"digest": "x.ru.many.abc"},
        {"scheme": "x", "shingles": "many"},
        {"scheme": "x", "signature": "!"},
    ],
)
def test_what_is_no_fingerprint_is_refused(field):
    with pytest.raises(InputError, match="index the document again"):
        Fingerprint.from_field(field)


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


KEY = "a key that nobody else knows"
SEAL = Seal.parse(KEY)
MADE = Fingerprint(Scheme().id, "ru", 300, "Qx3", ("abc", "def"), bytes(range(252)))


def test_a_sealed_fingerprint_is_stored_and_read_back():
    sealed = SEAL.sealed(MADE)
    assert Fingerprint.from_field(sealed.to_field()) == sealed
    assert SEAL.fits(sealed)
    assert sealed.to_field()["digest"].startswith(MADE.to_field()["digest"] + ".")


def test_one_without_a_seal_is_stored_as_ever():
    assert MADE.to_field()["digest"].count(".") == 3
    assert Fingerprint.from_field(MADE.to_field()).seal == ""


@pytest.mark.parametrize(
    "altered",
    [
        {"scheme": "sf3-other"},
        {"lang": "uk"},
        {"shingles": 301},
        {"digest": "Qx4"},
        {"signature": bytes(252)},
        {"seal": ""},
        {"seal": "AAAAAAAAAAAAAAAA"},
        {"seal": "\ud800"},
        {"lang": "ru.3"},
    ],
)
def test_whatever_a_search_compares_is_covered(altered):
    assert not SEAL.fits(replace(SEAL.sealed(MADE), **altered))


def test_equal_fingerprints_have_equal_seals_and_another_key_has_others():
    assert SEAL.sealed(MADE) == Seal.parse(KEY).sealed(MADE)
    other = Seal.parse(KEY + "!")
    assert other.id != SEAL.id
    assert not other.fits(SEAL.sealed(MADE))


def test_a_seal_works_in_another_process():
    assert pickle.loads(pickle.dumps(SEAL)).fits(SEAL.sealed(MADE))


def test_a_key_may_be_text_hex_or_base64():
    raw = bytes(range(16, 48))
    given = (f"hex:{raw.hex()}", f"base64:{b64encode(raw).decode()}")
    assert {Seal.parse(text).id for text in given} == {Seal(raw).id}
    assert Seal.parse("x" * 300).id != Seal.parse("x" * 301).id


@pytest.mark.parametrize(
    "text", ["secret-short", "hex:secret-zz", "base64:sec ret", "hex:00ff", "base64:ключ"]
)
def test_a_key_that_is_not_valid_is_refused_and_not_quoted(text):
    with pytest.raises(ConfigError) as refused:
        Seal.parse(text)
    assert "seal's key" in str(refused.value)
    assert text.partition(":")[2] or text not in str(refused.value)
    assert "sec" not in str(refused.value).replace("secrets", "")
    assert refused.value.__cause__ is None


def test_the_key_is_in_no_repr():
    assert KEY not in repr(SEAL)
    assert repr(SEAL.key) not in repr(SEAL)
    assert SEAL.id in repr(SEAL)


@pytest.mark.parametrize(
    ("found", "seal", "said"),
    [
        (SEAL.id, None, "none is given"),
        (SEAL.id, Seal(bytes(16)), "the one given is"),
        ("", SEAL, "is not sealed"),
    ],
)
def test_an_index_of_another_key_is_refused_with_the_remedy(found, seal, said):
    with pytest.raises(ConfigError, match=said) as refused:
        check_sealed(found, seal, "index 'pages'")
    assert "SHINGLEFOLD_SEAL_KEY" in str(refused.value) or "setup --seal" in str(refused.value)
