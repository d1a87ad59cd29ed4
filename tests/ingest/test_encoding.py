"""Documents are encoded as the JSON that the standard library writes."""

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.documents import is_plain, to_json

ENDS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(ENDS, lambda some: st.lists(some) | st.dictionaries(st.text(), some), max_leaves=8)


@given(st.dictionaries(st.text(), VALUES))
def test_it_is_read_as_what_was_written_on_one_line(document):
    made = to_json(document)
    assert json.loads(made) == document
    assert b"\n" not in made
    assert is_plain(document)


@pytest.mark.parametrize(
    "other", [float("nan"), float("inf"), (1, 2), date(2026, 1, 1), {1: 2}, Decimal(1), b"a", {1}]
)
@pytest.mark.parametrize("around", [lambda one: {"a": one}, lambda one: {"a": [1.5, {"b": one}]}])
def test_what_json_has_not_is_written_or_refused_as_the_standard_library_does(other, around):
    document = around(other)
    assert not is_plain(document)
    try:
        expected = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except TypeError:
        with pytest.raises(TypeError):
            to_json(document)
    else:
        assert to_json(document) == expected


def test_whole_numbers_of_any_length_stay_and_half_a_surrogate_pair_is_refused():
    assert to_json({"n": 2**70}) == b'{"n":1180591620717411303424}'
    with pytest.raises(UnicodeEncodeError):
        to_json({"text": "\ud800"})
    endless: dict[str, object] = {}
    with pytest.raises(ValueError, match="Circular"):
        to_json(endless | {"a": endless.setdefault("b", [endless])})
