import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import words_of_a_text

from shinglefold.errors import ConfigError
from shinglefold.relatives.fingerprints import (
    PRIMES,
    base_of,
    direct,
    multiply,
    powers,
    reduce,
    roll,
    rolling,
)

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
    assert rolling(words, width, bits, seed).tolist() == expected
    assert direct(words, width, bits, seed).tolist() == expected


@given(words_of_a_text(least=2), st.integers(1, 8), bits_of_fingerprints)
def test_a_step_subtracts_the_leaving_word_and_adds_the_entering_one(words, width, bits):
    windows = rolling(words, width, bits)
    entering = words[width:]
    stepped = roll(windows[: len(entering)], words[: len(entering)], entering, width, bits=bits)
    assert np.array_equal(stepped, windows[1:])


@pytest.mark.parametrize("bits", sorted(PRIMES))
def test_windows_go_on_over_blocks(bits):
    words = np.random.default_rng(1).integers(0, 2**64, 20_000, np.uint64)
    assert np.array_equal(rolling(words, 10, bits), direct(words, 10, bits))
    assert int(rolling(words, 10, bits).max()) < 2**bits


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
        rolling(words, 2, 33)
    with pytest.raises(ConfigError, match="at least 1"):
        rolling(words, 0)
