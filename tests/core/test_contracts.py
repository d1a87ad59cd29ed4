"""What engines say of themselves is a value: compared by what it says, and changed by nobody who reads it."""

from dataclasses import FrozenInstanceError, replace

import pytest

from shinglefold.contracts.engine import Capabilities


def test_two_engines_that_can_the_same_say_the_same():
    able = Capabilities(bulks_at_once=2, seq_no=True)
    assert able == replace(Capabilities(), bulks_at_once=2, seq_no=True)
    assert able != Capabilities()
    assert (able.bulks_at_once, able.takes_json, able.seq_no) == (2, False, True)


def test_nobody_changes_what_an_engine_can():
    with pytest.raises(FrozenInstanceError):
        Capabilities().bulks_at_once = 4  # type: ignore[misc]
