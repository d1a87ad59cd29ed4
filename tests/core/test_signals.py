"""Ctrl-C and SIGTERM are told by their own words."""

import signal

import pytest

from shinglefold.runtime.signals import Interrupted, raise_interrupted, signal_word


@pytest.mark.parametrize(
    ("number", "word"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "interrupted")],
)
def test_a_signal_ends_a_run_with_its_word(number, word):
    assert signal_word(number) == word
    with pytest.raises(KeyboardInterrupt, match=word) as told:
        raise_interrupted(number, None)
    assert isinstance(told.value, Interrupted)
    assert told.value.signal == number


def test_without_a_signal_it_is_ctrl_c():
    assert Interrupted().signal == signal.SIGINT
