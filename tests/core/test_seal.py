"""The seal: made from a key, fitting what it was made for and nothing else, and shown nowhere."""

import pickle
from base64 import b64encode
from dataclasses import replace

import pytest

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal, check_sealed
from shinglefold.model.values import Fingerprint

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
