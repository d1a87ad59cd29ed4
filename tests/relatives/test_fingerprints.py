"""Rabin-Karp hashes, checksums, fingerprints by pieces, and the odds of collisions."""

import binascii

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import random_tokens, words_of_a_text

from shinglefold.errors import ConfigError, InputError
from shinglefold.relatives.fingerprints import (
    PRIMES,
    WIDTHS,
    base_of,
    birthday_table,
    collision_probability,
    crc32,
    crc64,
    direct,
    expected_collisions,
    most_shingles,
    multiply,
    powers,
    reduce,
    roll,
    rolling_fingerprints,
    width_for,
)
from shinglefold.relatives.piecewise_hash import Piecewise, piecewise, similarity, ssdeep, ssdeep_similarity

bits_of_fingerprints = st.sampled_from(sorted(PRIMES))


def by_python(words: list[int], width: int, bits: int, seed: int) -> list[int]:
    prime = PRIMES[bits]
    base = base_of(prime, seed)
    return [
        sum(word * base ** (width - 1 - place) for place, word in enumerate(words[at : at + width]))
        % prime.value
        for at in range(len(words) - width + 1)
    ]


@given(words_of_a_text(), st.integers(1, 12), bits_of_fingerprints, st.integers(0, 3))
def test_rolling_equals_the_direct_computation_on_every_window(words, width, bits, seed):
    expected = by_python(words.tolist(), width, bits, seed)
    assert rolling_fingerprints(words, width, bits, seed).tolist() == expected
    assert direct(words, width, bits, seed).tolist() == expected


@given(words_of_a_text(least=2), st.integers(1, 8), bits_of_fingerprints)
def test_a_step_subtracts_the_leaving_word_and_adds_the_entering_one(words, width, bits):
    windows = rolling_fingerprints(words, width, bits)
    entering = words[width:]
    stepped = roll(windows[: len(entering)], words[: len(entering)], entering, width, bits=bits)
    assert np.array_equal(stepped, windows[1:])


@pytest.mark.parametrize("bits", sorted(PRIMES))
def test_windows_go_on_over_blocks(bits):
    words = np.random.default_rng(1).integers(0, 2**64, 20_000, np.uint64)
    assert np.array_equal(rolling_fingerprints(words, 10, bits), direct(words, 10, bits))
    assert int(rolling_fingerprints(words, 10, bits).max()) < 2**bits


@given(bits_of_fingerprints, st.data())
def test_products_of_great_numbers_are_reduced_right(bits, data):
    prime = PRIMES[bits]
    near_the_prime = st.integers(0, prime.value - 1) | st.integers(prime.value - 100, prime.value - 1)
    a, b = data.draw(near_the_prime), data.draw(near_the_prime)
    found = multiply(np.array([a], np.uint64), np.array([b], np.uint64), prime)
    assert int(found[0]) == a * b % prime.value
    whole = a * b
    halves = (np.array([part], np.uint64) for part in (whole >> 64, whole & (2**64 - 1)))
    assert int(reduce(*halves, prime)[0]) == whole % prime.value


@pytest.mark.parametrize("prime", PRIMES.values(), ids=str)
def test_the_moduli_are_primes(prime):
    odd, twos = prime.value - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    # Miller and Rabin's test with these bases is proved for all numbers below 3.3 · 10^24.
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41):
        seen = [pow(base, odd << step, prime.value) for step in range(twos)]
        assert seen[0] == 1 or prime.value - 1 in seen


def test_powers_are_those_of_whole_numbers():
    prime = PRIMES[64]
    assert powers(3**30, 50, prime).tolist() == [pow(3**30, at, prime.value) for at in range(50)]


def test_other_widths_are_refused_by_name():
    words = np.arange(5, dtype=np.uint64)
    with pytest.raises(ConfigError, match="32, 40, 48, 56, 61, 64"):
        rolling_fingerprints(words, 2, 33)
    with pytest.raises(ConfigError, match="at least 1"):
        rolling_fingerprints(words, 0)


#: The check value every catalogue of checksums gives is that of these digits.
DIGITS = b"123456789"


def whole(data):
    return data, np.array([0]), np.array([len(data)])


def test_the_check_values_are_those_of_the_catalogue():
    assert crc32(*whole(DIGITS)).tolist() == [0xCBF43926]
    assert crc64(*whole(DIGITS)).tolist() == [0x995DC9BBDF1939FA]


@given(st.binary(max_size=80), st.data())
def test_each_piece_has_the_checksum_of_its_bytes(data, drawn):
    cuts = drawn.draw(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=5))
    starts, ends = np.array(cuts, np.int64).reshape(-1, 2).T
    pieces = [data[start:end] for start, end in cuts]
    assert crc32(data, starts, ends).tolist() == [binascii.crc32(piece) for piece in pieces]
    assert crc64(data, starts, ends).tolist() == [crc64(*whole(piece))[0] for piece in pieces]


@given(words_of_a_text())
def test_a_text_is_all_like_itself_and_its_hash_is_read_again(tokens):
    found = piecewise(tokens)
    assert Piecewise.parse(str(found)) == found
    assert similarity(found, found) == (1.0 if len(tokens) else 0.0)


def test_a_changed_word_changes_the_letters_around_it_only():
    tokens = random_tokens(1, 1_000)
    edited = tokens.copy()
    edited[500] = 7
    one, other = piecewise(tokens), piecewise(edited)
    assert one.size == other.size
    far = len(one.fine) // 2 - 10
    assert one.fine[:far] == other.fine[:far]
    assert one.fine[-far:] == other.fine[-far:]
    assert 0.9 < similarity(one, other) < 1.0


def test_words_put_in_front_shift_nothing():
    tokens = random_tokens(2, 600)
    longer = np.concatenate((random_tokens(3, 40), tokens))
    assert similarity(piecewise(tokens), piecewise(longer)) > 0.85


def test_strangers_share_few_letters_and_other_sizes_are_not_compared():
    tokens = random_tokens(4, 1_000)
    assert similarity(piecewise(tokens), piecewise(random_tokens(5, 1_000))) < 0.4
    assert similarity(piecewise(tokens), piecewise(tokens[:100])) == 0.0


@pytest.mark.parametrize("length", [1, 50, 400, 3_000])
def test_signatures_have_about_as_many_letters_as_asked_for(length):
    assert len(piecewise(random_tokens(6, length)).fine) <= 100
    assert len(piecewise(random_tokens(6, length)).fine) >= min(32, length // 4)


def test_the_bytes_are_hashed_as_ssdeep_does():
    text = np.random.default_rng(8).bytes(5_000)
    found = ssdeep(text)
    assert found.split(":")[0].isdigit()
    assert ssdeep_similarity(found, found) == 1.0
    assert ssdeep_similarity(found, ssdeep(text + b"more")) > 0.5


def test_what_is_no_hash_of_ssdeep_s_is_told():
    with pytest.raises(InputError):
        ssdeep_similarity("nonsense", "3:a:b")


def test_the_table_is_the_formula():
    by_bits = {row.bits: row for row in birthday_table()}
    assert by_bits[32].root == 65_536
    assert by_bits[64].root == 2**32
    assert by_bits[32].shingles == pytest.approx((9_292, 30_084, 66_241), abs=1)
    assert by_bits[72].shingles[0] == pytest.approx(9_292 * 2**20, rel=1e-4)


def test_the_literature_expects_12535_collisions_in_32_bits():
    assert expected_collisions(10_376_876, 32) == pytest.approx(12_535, abs=1)


@pytest.mark.parametrize("chance", [0.01, 0.1, 0.4])
def test_so_many_shingles_do_collide_so_often(chance):
    bits, runs = 20, 2_000
    count = round(most_shingles(bits, chance))
    drawn = np.random.default_rng(3).integers(0, 2**bits, (runs, count))
    drawn.sort(axis=1)
    collided = (np.diff(drawn) == 0).any(axis=1).mean()
    assert abs(collided - chance) < 4 * np.sqrt(chance * (1 - chance) / runs)


@given(st.integers(0, 10**8), st.floats(1e-4, 0.9))
def test_the_advised_width_is_the_narrowest_that_will_do(shingles, chance):
    bits = width_for(shingles, chance)
    assert collision_probability(shingles, bits) <= chance
    narrower = [width for width in WIDTHS if width < bits]
    assert all(collision_probability(shingles, width) > chance for width in narrower)


def test_too_many_shingles_are_told_what_to_do():
    with pytest.raises(ConfigError, match="128 bits"):
        width_for(10**12, 0.01)
