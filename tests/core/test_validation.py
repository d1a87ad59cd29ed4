"""One validator says of every wrong value which option it is of, what is expected and what came."""

import pytest

from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.options.validation import (
    check_bool,
    check_choice,
    check_int,
    check_known,
    check_number,
    check_object,
    check_str,
    check_strings,
)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda: check_int("size", True, 0, 5), "size: expected a whole number of 0 to 5, got True"),
        (lambda: check_int("size", 6, 0, 5), "size: expected a whole number of 0 to 5, got 6"),
        (lambda: check_int("size", -1), "size: expected a whole number of at least 0, got -1"),
        (lambda: check_int("size", 1.0), "size: expected a whole number of at least 0, got 1.0"),
        (lambda: check_int("size", None), "size: expected a whole number of at least 0, got None"),
        (lambda: check_number("share", float("nan"), 0, 1), "share: expected a number of 0 to 1, got nan"),
        (lambda: check_number("share", 0, 0, 1, above=True), "expected a number above 0, at most 1, got 0"),
        (lambda: check_number("seconds", "3"), "seconds: expected a number of at least 0, got '3'"),
        (lambda: check_bool("fold", 1), "fold: expected true or false, got 1"),
        (lambda: check_str("name", ""), "name: expected text that is not empty, got ''"),
        (lambda: check_str("name", None, empty=True), "name: expected text, got None"),
        (lambda: check_strings("fields", "title", 3), "fields: expected a list of strings, got 'title'"),
        (lambda: check_strings("fields", ["a", 1], 3), r"fields: expected a list of strings, got \['a', 1\]"),
        (lambda: check_strings("fields", list("abcd"), 3), "fields: 4 are too many, at most 3"),
        (lambda: check_object("ext", [], "an object of options"), "ext: expected an object of options"),
        (lambda: check_choice("mode", "windw", ("window", "auto")), "did you mean 'window'"),
        (lambda: check_choice("mode", ["window"], ("window", "auto")), "unknown mode"),
        (lambda: check_known("option", {"sizee": 1}, ("size", "from")), "'sizee'; did you mean 'size'"),
    ],
)
def test_a_wrong_value_is_told_with_its_option_and_what_is_expected(check, said):
    with pytest.raises(ConfigError, match=said):
        check()


def test_the_least_and_the_greatest_value_are_taken_and_none_where_it_is_optional():
    for value in (0, 5):
        check_int("size", value, 0, 5)
        check_number("size", value, 0, 5)
    check_int("size", None, optional=True)
    check_number("size", None, optional=True)
    check_number("size", 5, 0, 5, above=True)
    assert check_str("name", "", empty=True) == ""


def test_a_room_refuses_with_its_own_error():
    with pytest.raises(UnsupportedQuery, match="size: expected a whole number"):
        check_int("size", "5", error=UnsupportedQuery)


def test_a_message_stays_short_however_long_the_value():
    with pytest.raises(ConfigError) as caught:
        check_bool("fold", "x" * 10**6)
    assert len(str(caught.value)) < 300
