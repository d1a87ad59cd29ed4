import json

import pytest

from shinglefold.errors import InputError
from shinglefold.model.values import Fingerprint

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
