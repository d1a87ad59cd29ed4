"""Settings: from a file and the environment, each with its origin."""

from dataclasses import dataclass

import pytest

from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.model.scheme import CanonOptions
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
from shinglefold.settings import (
    Settings,
    check_toml_type,
    field_types,
    load_settings,
    parse_variable,
    prefixed_variables,
    read_table,
)


def written(folder, text):
    path = folder / "shinglefold.toml"
    path.write_text(text, "utf-8")
    return path


def test_without_a_file_and_environment_they_are_the_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}) == Settings()


def test_a_file_in_the_working_folder_is_read(tmp_path, monkeypatch):
    written(tmp_path, 'preset = "classic"\nworkers = 3\nlanguages = ["ru", "any"]')
    monkeypatch.chdir(tmp_path)
    settings = load_settings(environ={})
    assert (settings.preset, settings.workers, settings.languages) == ("classic", 3, ("ru", "any"))


def test_the_environment_wins(tmp_path):
    path = written(tmp_path, 'mode = "stem"\ndrop_adjectives = true')
    environ = {"SHINGLEFOLD_MODE": "surface", "SHINGLEFOLD_LANGUAGES": "en, any", "SHINGLEFOLD_WORKERS": "2"}
    settings = load_settings(path, environ)
    assert (settings.mode, settings.drop_adjectives) == ("surface", True)
    assert (settings.languages, settings.workers) == (("en", "any"), 2)


def test_a_language_may_have_options_of_its_own(tmp_path):
    path = written(tmp_path, 'mode = "stem"\n[language.uk]\nmode = "lemma"\ndrop_adjectives = true')
    scheme = load_settings(path, {}).scheme()
    options = {ref.code: ref.options for ref in scheme.languages}
    assert options["ru"] == Settings(mode="stem").canon_options()
    assert options["uk"] == CanonOptions("lemma", Settings().drop_function_words, drop_adjectives=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('pressset = "x"', r"in .*\.toml\) 'pressset'; did you mean 'preset'"),
        ("workers = true", r"workers \(in .*\.toml\): expected a whole number"),
        ("workers = 5000", r"workers \(in .*\.toml\): expected a whole number of 0 to 1024, got 5000"),
        ("workers = -1", r"workers \(in .*\.toml\): expected a whole number of 0 to 1024, got -1"),
        ("data_dir = ''", r"data_dir \(in .*\.toml\): expected text that is not empty"),
        ("field = ''", r"field \(in .*\.toml\): expected text that is not empty"),
        ("languages = 5", r"languages \(in .*\.toml\): expected a list of strings"),
        ("mode = [", "shinglefold.toml"),
        ("[language.ru]\nmod = 'stem'", "did you mean 'mode'"),
        ("language = 5", "expected tables"),
    ],
)
def test_what_can_not_be_meant_is_refused(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says):
        load_settings(written(tmp_path, text), {})


def test_a_bad_environment_value_names_the_variable():
    for value in ("many", "-1", "5000"):
        with pytest.raises(ConfigError, match="SHINGLEFOLD_WORKERS: expected a whole number"):
            load_settings(environ={"SHINGLEFOLD_WORKERS": value})


def test_other_variables_are_nobodys_business():
    assert load_settings(environ={"SHINGLEFOLD_TEST_URL": "x", "PATH": "y"}) == Settings()


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(ConfigError, match="settings file"):
        load_settings(tmp_path / "none.toml", {})


@pytest.mark.parametrize(
    ("name", "meant"),
    [("FEILD", "FIELD"), ("WORKER", "WORKERS"), ("LANGUAGE", "LANGUAGES"), ("PRSET", "PRESET")],
)
def test_a_mistyped_variable_is_told(name, meant):
    with pytest.raises(ConfigError, match=f"SHINGLEFOLD_{name}; did you mean SHINGLEFOLD_{meant}"):
        load_settings(environ={f"SHINGLEFOLD_{name}": "x"})


@pytest.mark.parametrize("name", ["DATA", "CACHE", "DEBUG", "TEST_SERVERS", "ENGINE_CA_FILE", "ENGINE_FILE"])
def test_variables_of_other_parts_are_no_settings(name):
    assert load_settings(environ={f"SHINGLEFOLD_{name}": "x"}) == Settings()


def test_any_need_not_be_named(tmp_path):
    path = written(tmp_path, 'languages = ["ru", "uk"]')
    assert [ref.code for ref in load_settings(path, {}).scheme().languages] == ["any", "ru", "uk"]


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
