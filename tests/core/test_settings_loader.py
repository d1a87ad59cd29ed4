"""One loader reads values of a dataclass from TOML and from the environment, and shows no secret."""

from dataclasses import dataclass

import pytest

from shinglefold.errors import ConfigError
from shinglefold.settings import check_toml_type, field_types, parse_variable, prefixed_variables, read_table


@dataclass(frozen=True)
class Options:
    name: str = ""
    size: int = 0
    share: float = 0.0
    on: bool = False
    codes: tuple[str, ...] = ()
    beside: object = None


def test_the_kind_of_each_field_is_that_of_the_dataclass():
    expected = {"name": str, "size": int, "share": float, "on": bool, "codes": tuple}
    assert field_types(Options, "beside") == expected


@pytest.mark.parametrize(
    ("value", "kind", "read"),
    [("a", str, "a"), (3, int, 3), (3, float, 3.0), (True, bool, True), (["a", "b"], tuple, ("a", "b"))],
)
def test_a_value_of_toml_gets_its_type(value, kind, read):
    found = check_toml_type("option", value, kind)
    assert (found, type(found)) == (read, kind)


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (True, int, "expected a whole number, got True"),
        (1, bool, "expected true or false, got 1"),
        (1.5, int, "expected a whole number, got 1.5"),
        ("a", tuple, "expected a list of strings, got 'a'"),
        (["a", 1], tuple, "expected a list of strings"),
    ],
)
def test_a_value_of_another_type_is_refused(value, kind, said):
    with pytest.raises(ConfigError, match=said):
        check_toml_type("option", value, kind)
    with pytest.raises(ConfigError) as caught:
        check_toml_type("option", 12345, str, secret=True)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "read"),
    [
        (" YES ", bool, True),
        ("0", bool, False),
        (" 7", int, 7),
        ("a, b,", tuple, ("a", "b")),
        ("2.5", float, 2.5),
    ],
)
def test_a_variable_gets_its_type(text, kind, read):
    assert parse_variable("SIZE", text, kind) == read


@pytest.mark.parametrize("kind", [int, float, bool])
def test_a_variable_that_says_none_of_its_type_is_refused_by_its_name(kind):
    with pytest.raises(ConfigError, match=r"SIZE: expected .* got 'much'"):
        parse_variable("SIZE", "much", kind)


def test_variables_come_by_the_rest_of_their_name():
    assert prefixed_variables("S_", {"S_B": "2", "S_A": "1", "T_A": "3"}) == {"a": "1", "b": "2"}


def test_a_file_with_secrets_is_not_quoted(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('password = "hidden')
    with pytest.raises(ConfigError, match=r"the connection file .*no TOML") as caught:
        read_table(file, "connection file", secret=True)
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ConfigError, match="cannot read the settings file"):
        read_table(file, "settings file")
