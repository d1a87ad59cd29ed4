import pytest

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import CanonOptions
from shinglefold.settings import Settings, load_settings


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
    with pytest.raises(ConfigError, match="SHINGLEFOLD_WORKERS: expected a whole number"):
        load_settings(environ={"SHINGLEFOLD_WORKERS": "many"})


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
