"""Texts decide where they are available: candidates by signature are compared word by word."""

import random

import numpy as np
import pytest

from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme
from shinglefold.sketch import verification as edit

WORDS = [
    "окно",
    "дверь",
    "мост",
    "река",
    "город",
    "поезд",
    "вокзал",
    "книга",
    "стол",
    "стена",
    "крыша",
    "школа",
    "завод",
    "берег",
    "остров",
]
CHANCE = random.Random(7)
TEXT = [f"{CHANCE.choice(WORDS)} {number}" for number in range(150)]


def edited(share):
    chance = random.Random(11)
    return " ".join(f"иначе {n}x" if chance.random() < share else one for n, one in enumerate(TEXT))


def folds(one, other, **options):
    scheme = make_scheme().with_options(**options) if options else make_scheme()
    return len(Fingerprinter(scheme).fingerprint_arrays([one, other]).pairs(scheme)) == 1


@pytest.mark.parametrize(("share", "folding"), [(0.05, True), (0.12, True), (0.3, False), (0.4, False)])
def test_a_pair_folds_by_how_many_of_its_words_are_the_same(share, folding):
    assert folds(" ".join(TEXT), edited(share)) is folding


def test_moved_passages_fold():
    assert folds(" ".join(TEXT), " ".join([*TEXT[75:], *TEXT[:75]]))


def test_the_words_of_a_text_in_no_order_at_all_are_no_copy_of_it():
    assert not folds(" ".join(TEXT), " ".join(random.Random(3).sample(TEXT, len(TEXT))), min_shared=2)


def test_what_the_text_refuses_the_signature_and_keywords_may_take():
    one, other = " ".join(TEXT), " ".join([*TEXT[:130], "совсем другие слова", *WORDS, *WORDS[::-1]])
    assert not folds(one, other, min_similarity=0.95)
    assert folds(one, other, verify="signature")
    assert folds(one, other, verify="keywords")


def test_a_threshold_says_what_decides():
    scheme = make_scheme()
    assert scheme.with_options(min_resemblance=0.7).decision.verify == "signature"
    assert scheme.with_options(min_similarity=0.7).decision.verify == "text"
    assert scheme.with_options(min_resemblance=0.7, verify="text").decision.verify == "text"
    with pytest.raises(ConfigError, match="one of them decides"):
        scheme.with_options(min_resemblance=0.7, min_similarity=0.7)


def test_what_verifies_is_no_part_of_the_id_of_a_scheme():
    assert make_scheme().with_options(verify="signature").id == make_scheme().id
    with pytest.raises(ConfigError, match="way to verify"):
        make_scheme().with_options(verify="texts")


def test_a_scheme_noted_before_there_was_a_text_stage_is_read():
    told = make_scheme().to_json()
    told["decision"] = {name: told["decision"][name] for name in ("min_shared", "min_resemblance")}
    assert make_scheme().from_json(told).decision.verify == "text"


def test_long_texts_fold_by_their_signatures(monkeypatch):
    one, other = " ".join(TEXT), " ".join([*TEXT[:130], "совсем другие слова", *WORDS, *WORDS[::-1]])
    monkeypatch.setattr(edit, "LONGEST", 100)
    assert folds(one, other, min_similarity=0.9, min_resemblance=0.6, verify="text")
    assert not folds(one, other, min_similarity=0.9, min_resemblance=0.95, verify="text")


def test_forms_of_a_word_are_two_words_as_written_and_one_token():
    one, other = "зелёный дом у реки ", "зеленые дома у рек "
    made = Fingerprinter(make_scheme()).fingerprint_arrays([one * 5, other * 5])
    assert made.texts.written.similarities(np.array([0]), np.array([1]), 0.0)[0] == pytest.approx(0.25)
    assert made.texts.token_overlap(np.array([0]), np.array([1]))[0] == 1
